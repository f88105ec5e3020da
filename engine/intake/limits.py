"""The bounds of a payment that an operator can set."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.intake.codes import CATEGORY_CODES, COUNTRIES, CURRENCIES


class Limits(Struct, frozen=True):
    """`clock_skew` and `backfill` are in microseconds, `metadata_size` in bytes as sent."""

    clock_skew: int = 0
    backfill: int = DAY
    metadata_size: int = 16 * 1024
    metadata_depth: int = 32
    currencies: frozenset[str] = CURRENCIES
    countries: frozenset[str] = COUNTRIES
    category_codes: frozenset[str] = CATEGORY_CODES


DEFAULT_LIMITS = Limits()
