"""Of a block, the values of a dimension that most payments have, and how many have each.

They are stored for blocks that no longer change. So what stands out in an hour with very many payments
is added up, and only the blocks at the ends of the hour are counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, get_args

from tollkeeper.engine.search.blocks import size_of
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.terms import Facet

By: TypeAlias = Literal[
    "bin", "network", "ip", "device", "card", "user", "email", "merchant", "condition", "rule"
]
EVERY_BY: tuple[By, ...] = get_args(By)
MOST_LOOKED_AT = 1_000
"""The most values of a dimension that are looked at in a block: one with fewer payments than so many
others can't be very unusual.
"""


def facet_of(by: By) -> Facet:
    return Facet[by.upper()]


def keep_commonest(index: AccountIndex, block: int) -> None:
    """Store a block's commonest values; they are dropped when the block changes."""
    index.connection.executemany(
        "INSERT INTO commonest VALUES (?, ?, ?, ?, ?)",
        [
            (index.account, block, facet, *_packed(index.commonest(facet, block, MOST_LOOKED_AT)))
            for facet in map(facet_of, EVERY_BY)
        ],
    )


def stored_commonest(index: AccountIndex, facet: Facet, block: int) -> Mapping[int, int] | None:
    """Return a block's stored values with their numbers of payments; None if nothing is stored."""
    row = index.connection.execute(
        "SELECT value_list, counts FROM commonest WHERE account = ? AND block = ? AND facet = ?",
        (index.account, block, facet),
    ).fetchone()
    return None if row is None else dict(zip(array("q", row[0]), array("I", row[1]), strict=True))


def _packed(found: Iterable[tuple[int, bytes]]) -> tuple[bytes, bytes]:
    values, counts = array("q"), array("I")
    for value, members in found:
        values.append(value)
        counts.append(size_of(members))
    return values.tobytes(), counts.tobytes()
