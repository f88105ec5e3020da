"""Identifiers for payments that come without one."""

from __future__ import annotations

from itertools import chain
from os import urandom

_AT_ONCE = 256
_RANDOM_BYTES = 10
_VARIANT = dict(zip("0123456789abcdef", 4 * "89ab", strict=True))
"""The digit with the variant's bits, by one of four random bits, of which two are used."""


def _draw() -> list[str]:
    """Random hexadecimal digits for many: asked of the system for each, they took as long as to read
    a payment's fields, and another thread could have the interpreter meanwhile."""
    drawn, length = urandom(_AT_ONCE * _RANDOM_BYTES).hex(), 2 * _RANDOM_BYTES
    return [drawn[start : start + length] for start in range(0, len(drawn), length)]


# What iterates is all in C, so that no two threads get the same.
_chances = chain.from_iterable(iter(_draw, None))


def new_identifier(now: int) -> str:
    """A UUID of version 7 (RFC 9562) as text: sorted by `now` (µs), 74 bits nobody can guess."""
    time, chance = f"{now // 1000:012x}", next(_chances)
    variant = _VARIANT[chance[3]]
    return f"{time[:8]}-{time[8:]}-7{chance[:3]}-{variant}{chance[4:7]}-{chance[7:19]}"
