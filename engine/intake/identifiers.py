"""Identifiers for payments that come without one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from os import urandom
from struct import Struct
from typing import Any

try:
    from tollkeeper.engine.intake._identifiers import write_identifier
except ImportError:  # where C can't be built
    from uuid import UUID

    def write_identifier(time: int, chance: bytes, /) -> str:
        """A UUID of version 7 from milliseconds since the epoch and 10 random bytes."""
        number = int.from_bytes(time.to_bytes(6) + chance)
        return str(UUID(int=number & ~(0xF << 76 | 0x3 << 62) | 0x7 << 76 | 0x2 << 62))


_AT_ONCE = 256
_RANDOM = Struct("10s")


def _draw() -> Iterator[tuple[Any, ...]]:
    """Random bytes for many: asked of the system for each, they took as long as to read a payment's
    fields, and another thread could have the interpreter meanwhile."""
    return _RANDOM.iter_unpack(urandom(_AT_ONCE * _RANDOM.size))


# What iterates is all in C, so that no two threads get the same.
_chances = chain.from_iterable(iter(_draw, None))


def new_identifier(now: int) -> str:
    """A UUID of version 7 (RFC 9562) as text: sorted by `now` (µs), 74 bits nobody can guess."""
    return write_identifier(now // 1000, *next(_chances))
