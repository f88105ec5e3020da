"""Of a block, the values of a dimension that most payments have, and how many have each.

They are stored for blocks that no longer change and bundles of them. So what stands out in an hour with
very many payments is added up, and only the blocks at the ends of the hour are counted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from heapq import nlargest
from operator import itemgetter
from typing import Literal, TypeAlias, get_args

from tollkeeper.engine.search.blocks import size_of
from tollkeeper.engine.search.parts import smaller_parts
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.terms import Facet

By: TypeAlias = Literal[
    "bin", "network", "ip", "device", "card", "user", "email", "merchant", "condition", "rule"
]
EVERY_BY: tuple[By, ...] = get_args(By)
MOST_LOOKED_AT = 1_000
"""The most values of a dimension that are looked at in a block or bundle: one with fewer payments than
so many others can't be very unusual.
"""


def facet_of(by: By) -> Facet:
    return Facet[by.upper()]


def keep_commonest(index: AccountIndex, part: int) -> None:
    """Store the commonest values of a block, or of a bundle by those of its parts; they are dropped when
    a block of it changes.
    """
    index.connection.executemany(
        "INSERT INTO commonest VALUES (?, ?, ?, ?, ?)",
        [
            (index.account, part, facet, *_packed(_commonest(index, facet, part)))
            for facet in map(facet_of, EVERY_BY)
        ],
    )


def _commonest(index: AccountIndex, facet: Facet, part: int) -> Iterable[tuple[int, int]]:
    """Return the values of a block or bundle with the most payments, and how many each has."""
    smaller = smaller_parts(part)
    if not smaller:
        found = index.commonest(facet, part, MOST_LOOKED_AT)
        return [(value, size_of(members)) for value, members in found]
    counts: dict[int, int] = {}
    for each in smaller:
        add_numbers(counts, stored_commonest(index, facet, each) or _commonest(index, facet, each))
    return nlargest(MOST_LOOKED_AT, counts.items(), key=itemgetter(1))


def add_numbers(counts: dict[int, int], more: Iterable[tuple[int, int]]) -> None:
    """Add numbers of payments by value."""
    before = counts.get
    for value, count in more:
        counts[value] = before(value, 0) + count


def stored_commonest(
    index: AccountIndex, facet: Facet, part: int
) -> Sequence[tuple[int, int]] | None:
    """Return the stored values of a block or bundle with their numbers of payments; None if nothing is
    stored.
    """
    row = index.connection.execute(
        "SELECT value_list, counts FROM commonest WHERE account = ? AND block = ? AND facet = ?",
        (index.account, part, facet),
    ).fetchone()
    return None if row is None else [*zip(array("q", row[0]), array("I", row[1]), strict=True)]


def _packed(found: Iterable[tuple[int, int]]) -> tuple[bytes, bytes]:
    values, counts = array("q"), array("I")
    for value, count in found:
        values.append(value)
        counts.append(count)
    return values.tobytes(), counts.tobytes()
