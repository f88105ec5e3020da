"""Totals of blocks: by each value of a dimension, by what each source of labels said, and of an entity
that very many payments share, how many payments there are, what became of them and what they amount to.

They are stored for blocks that no longer change, so that figures over many blocks are added up, not
counted.
"""

# ruff: noqa: S608 - only names of this module are put into the queries

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from itertools import chain

import msgspec

from tollkeeper.engine.search.blocks import MOST_LISTED, MOST_LISTED_BYTES, unpack
from tollkeeper.engine.search.commonest import keep_commonest
from tollkeeper.engine.search.figures import count_block, sums_of
from tollkeeper.engine.search.reading import AccountIndex, Total, Totals
from tollkeeper.engine.search.settled import keep_settled
from tollkeeper.engine.search.tally import count_set
from tollkeeper.engine.search.terms import ENTITIES, Facet

_LEFT_ALONE = 8192
"""A block counts as settled once this many sequence numbers came after its last change."""
_FEW = MOST_LISTED
"""Up to this many payments are counted as fast as their totals are read."""

_encode = msgspec.msgpack.Encoder().encode


def drop_totals(
    index: sqlite3.Connection, changed: Collection[tuple[int, int]], sequence: int
) -> None:
    """Drop the totals of blocks, given with their accounts, that change at a sequence number."""
    blocks = sorted(changed)
    for table in ("totals", "settled", "commonest"):
        index.executemany(f"DELETE FROM {table} WHERE account = ? AND block = ?", blocks)
    index.executemany(
        "INSERT OR REPLACE INTO changed VALUES (?, ?, ?)", [(*of, sequence) for of in blocks]
    )


def left_alone(index: sqlite3.Connection) -> tuple[int, int] | None:
    """Return an account and a settled block of it whose totals are still to be made."""
    found: tuple[int, int] | None = index.execute(_LEFT, (_LEFT_ALONE,)).fetchone()
    return found


def keep_totals(index: AccountIndex, block: int) -> None:
    """Count a block, and store its totals unless it has few payments."""
    of = index.account, block
    if index.members(Facet.PAYMENT, 0, block).bit_count() > _FEW:
        index.connection.executemany(
            "INSERT INTO totals VALUES (?, ?, ?, ?, ?)",
            [
                (*of, facet, value, _encode(total))
                for facet, totals in chain(count_block(index, block), _shared_by_many(index, block))
                for value, total in totals.items()
            ],
        )
        keep_settled(index, block)
        keep_commonest(index, block)
    index.connection.execute("DELETE FROM changed WHERE account = ? AND block = ?", of)


def _shared_by_many(index: AccountIndex, block: int) -> Iterator[tuple[Facet, Totals]]:
    """For each entity, the totals of values that too many payments of a block share for a list."""
    for facet in ENTITIES:
        shared = index.connection.execute(
            _SHARED, (index.account, facet, block, MOST_LISTED_BYTES)
        ).fetchall()
        yield facet, {value: _total(index, block, unpack(members)) for value, members in shared}


def _total(index: AccountIndex, block: int, members: int) -> Total:
    return Total(count_set(index, block, members), sums_of(index, block, members))


_SHARED = (
    "SELECT value, members FROM postings WHERE account = ? AND facet = ? AND block = ?"
    " AND length(members) > ?"
)
_LEFT = "SELECT account, block FROM changed WHERE sequence <= (SELECT sequence FROM followed) - ? LIMIT 1"
