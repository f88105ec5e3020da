"""Read values from columns, in the representation that `grammar/types.py` defines."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context
from typing import Any, TypeAlias

import msgspec

from tollkeeper.engine.instants import to_microseconds
from tollkeeper.grammar import types as t

CarriedValues: TypeAlias = Sequence[Any]

BYTES = "_bytes"
"""The suffix of the column that has an address as 16 bytes."""
DECIMAL_DIGITS = 38
"""The most digits of a decimal."""
EXACT_DECIMALS = Context(prec=DECIMAL_DIGITS + 1)

_decode = msgspec.json.decode


def carried_values(kind: t.Type, values: CarriedValues) -> list[Any]:
    """The values of a column as `grammar/types.py` carries them."""
    match kind:
        case t.Number(scale=int(scale)) if scale:
            return [
                None if each is None else int(each.scaleb(scale, EXACT_DECIMALS)) for each in values
            ]
        case t.Instant():
            return [None if each is None else to_microseconds(each) for each in values]
        case t.Ip():
            return [None if each is None else int.from_bytes(each) for each in values]
        case t.Headers():
            return [None if each is None else dict(each) for each in values]
        case t.Metadata():
            return [None if each is None else _decode(each) for each in values]
        case _:
            return list(values)
