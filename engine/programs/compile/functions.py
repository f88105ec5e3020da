"""The language's functions, on values represented as `types.py` says (docs/language.md).

No argument is ever None: the caller has checked for missing values. A result of None is missing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from ipaddress import IPv6Address
from typing import Any

from tollkeeper.engine.facts.facts import EntrySets
from tollkeeper.engine.lists.environment import RATE_SCALE, Environment
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.types import MAX_DIGITS, METADATA_LIMIT, METADATA_SCALE

LIMIT: int = 10**MAX_DIGITS
DURATION_LIMIT = 10**18
FIRST_INSTANT = -62_135_596_800_000_000
LAST_INSTANT = 253_402_300_799_999_999
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLION: int = 10**METADATA_SCALE
_BOUND: int = METADATA_LIMIT * _MILLION
_NUMBER = re.compile(r" *([+-]?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))? *")
_LONGEST_NUMBER = 64
SCANNED = 8
"""Longer lists in metadata are made sets, which the payment's facts hold: rules may ask for many
elements."""
_SHORT_NUMBER = 10
"""Numbers of this many digits are certainly within the bound."""
_MAPPED = 0xFFFF
_IPV4 = 0xFFFF_FFFF


# Numbers


def divided(dividend: int, divisor: int) -> int:
    """The quotient, rounded half away from zero; the divisor is positive."""
    size = (2 * abs(dividend) + divisor) // (2 * divisor)
    return size if dividend >= 0 else -size


def rounded(value: float, decimals: int) -> int:
    """The double's exact value times 10 ** decimals, rounded half away from zero."""
    dividend, divisor = value.as_integer_ratio()
    return divided(dividend * 10**decimals, divisor)


def total(values: Iterable[float]) -> float | None:
    """The exact sum, rounded once, so that the order never matters; missing on overflow."""
    values = list(values)
    try:
        return math.fsum(values)
    except OverflowError:
        pass
    try:
        return float(sum(map(Fraction, values)))
    except OverflowError:
        return None


def number(text: str) -> int | None:
    """`number(text)` at scale 6: spaces around, a sign, decimals and an exponent may be there."""
    if text.isdecimal() and text.isascii() and len(text) < _SHORT_NUMBER:
        return int(text) * _MILLION
    found = _NUMBER.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
    if found is None:
        return None
    sign, whole, decimals, exponent = found.groups(default="")
    digits = int(whole + decimals)
    scale = int(exponent or 0) - len(decimals) + METADATA_SCALE
    if digits == 0 or len(str(digits)) + scale < 0:
        return 0
    if len(str(digits)) + scale > len(str(_BOUND)):
        return None
    size: int = digits * 10**scale if scale >= 0 else divided(digits, 10**-scale)
    return None if size > _BOUND else -size if sign == "-" else size


def metadata_number(value: Any) -> int | None:
    """A JSON number at scale 6; missing for anything else and beyond the bound."""
    if isinstance(value, float):
        return number(repr(value))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= METADATA_LIMIT:
        return int(value) * _MILLION
    return None


def nested_entry(entry: Any, keys: Sequence[str]) -> Any:
    """The value at the end of `keys` in a metadata entry; missing when it does not exist."""
    for key in keys:
        entry = entry.get(key) if isinstance(entry, dict) else None
    return entry


def listed_entries(entry: Any) -> list[Any] | None:
    """A metadata entry that is a list; missing for anything else."""
    return entry if isinstance(entry, list) else None


def among(sets: EntrySets, keys: tuple[str, ...], entries: Sequence[Any], wanted: Value) -> bool:
    """Whether a text or truth value is an element of the list at the end of `keys` in metadata.

    `sets` are the payment's own.
    """
    of_type = type(wanted)
    if len(entries) <= SCANNED:
        return any(type(entry) is of_type and entry == wanted for entry in entries)
    found = sets.get((of_type, keys))
    if found is None:
        found = sets[of_type, keys] = frozenset(each for each in entries if type(each) is of_type)
    return wanted in found


def number_among(
    sets: EntrySets, keys: tuple[str, ...], entries: Sequence[Any], number: float, scale: int | None
) -> bool:
    """Whether an element of the list at the end of `keys` in metadata is the number of this scale.

    `sets` are the payment's own.
    """
    wanted = as_entry(number, scale)
    if wanted is None or len(entries) <= SCANNED:
        return wanted is not None and any(metadata_number(entry) == wanted for entry in entries)
    numbers = sets.get((int, keys))
    if numbers is None:
        numbers = sets[int, keys] = frozenset(map(metadata_number, entries))
    return wanted in numbers


def amount_in(environment: Environment, amount: int, currency: str, wanted: str) -> int | None:
    """The amount of scale 2 in another currency, exactly, of scale 12."""
    rate = 10**RATE_SCALE if currency == wanted else environment.rates.get((currency, wanted))
    return None if rate is None else amount * rate


def score(logit: float) -> int:
    """The probability of a logit in hundredths, rounded half away from zero."""
    # The smaller power never overflows.
    power = math.exp(-abs(logit))
    probability = 1 / (1 + power) if logit >= 0 else power / (1 + power)
    return math.floor(probability * 100 + 0.5)


# Text


def lower(text: str) -> str:
    """Lower case, code point by code point, where the mapping is one code point."""
    if text.isascii():
        return text.lower()
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def upper(text: str) -> str:
    """Upper case, code point by code point, where the mapping is one code point."""
    if text.isascii():
        return text.upper()
    return "".join(high if len(high := char.upper()) == 1 else char for char in text)


def left(text: str, characters: int) -> str:
    """The first code points of the text, all of it when it has fewer."""
    return text[:characters]


def email_domain(text: str) -> str | None:
    """What stands after the last `@`, or all of it without one, in lower case."""
    return lower(text.rpartition("@")[2]) or None


def email_local(text: str) -> str | None:
    """What stands before the last `@`."""
    return text.rpartition("@")[0] or None


def entropy(text: str) -> float:
    """Shannon entropy in bits per code point."""
    size = len(text)
    counts = Counter(text).values()
    return math.fsum(count / size * math.log2(size / count) for count in counts)


def header(headers: Mapping[str, str], name: str) -> str | None:
    """The first header of that name, which is in lower case, without regard to case."""
    for sent, value in headers.items():
        if sent.lower() == name:
            return value
    return None


# Time and addresses


def hour(instant: int, zone: tzinfo) -> int | None:
    """The hour of the day, 0 to 23; missing where the local time leaves the years 1 to 9999."""
    local = _local(instant, zone)
    return None if local is None else local.hour


def weekday(instant: int, zone: tzinfo) -> str | None:
    """The weekday's English name; missing where the local time leaves the years 1 to 9999."""
    local = _local(instant, zone)
    return None if local is None else WEEKDAYS[local.weekday()]


def _local(instant: int, zone: tzinfo) -> datetime | None:
    try:
        return (_EPOCH + timedelta(microseconds=instant)).astimezone(zone)
    except OverflowError:
        return None


def ip_network(address: int, bits: int, bits6: int) -> str:
    """The network that holds the address: `bits` for IPv4, `bits6` for IPv6."""
    if address >> 32 == _MAPPED:
        kept = address & _IPV4 >> (32 - bits) << (32 - bits)
        return f"{kept >> 24}.{kept >> 16 & 255}.{kept >> 8 & 255}.{kept & 255}/{bits}"
    return f"{IPv6Address(address >> (128 - bits6) << (128 - bits6))}/{bits6}"


# What an account has configured


def on_list(environment: Environment, name: str, value: Value | None, at: int) -> bool:
    """Whether the list has an entry that holds the value; an account without the list has none."""
    entries = environment.lists.get(name)
    return entries is not None and value is not None and entries.contains(value, at)


def as_entry(value: float, scale: int | None) -> int | None:
    """A number as an entry of scale 6 that equals it; missing when there can be none."""
    if scale is None:
        if abs(value) > METADATA_LIMIT:
            return None
        entry = rounded(value, METADATA_SCALE)
        return entry if entry / _MILLION == value else None
    entry, rest = divmod(int(value) * _MILLION, 10**scale)
    return None if rest else entry


def in_table(environment: Environment, name: str, key: Value, column: str, at: int) -> Value | None:
    """The column of the row that holds the key."""
    table = environment.tables.get(name)
    row = None if table is None else table.find(key, at)
    return None if row is None else row.get(column)
