"""Totals of blocks: by each value of a dimension, and of an entity that very many payments share, how
many payments there are and what became of them.

They are kept of blocks that were left alone, so that many values of many blocks are added up and
not counted.
"""

# ruff: noqa: S608 - only names of this module are put into the queries

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from itertools import chain

import msgspec

from tollkeeper.engine.search.blocks import MOST_LISTED, MOST_LISTED_BYTES, unpack
from tollkeeper.engine.search.figures import count_block
from tollkeeper.engine.search.reading import AccountIndex, Totals
from tollkeeper.engine.search.settled import keep_settled
from tollkeeper.engine.search.tally import count_set
from tollkeeper.engine.search.terms import ENTITIES, Facet

_LEFT_ALONE = 8192
"""How many sequence numbers came since a block changed: it may change with each of them."""
_FEW = MOST_LISTED
"""Up to so many payments are counted as fast as their totals are read."""

_encode = msgspec.msgpack.Encoder().encode


def drop_totals(
    index: sqlite3.Connection, changed: Collection[tuple[int, int]], sequence: int
) -> None:
    """Forgets those of blocks, by account, that change with a sequence number."""
    blocks = sorted(changed)
    for table in ("totals", "settled"):
        index.executemany(f"DELETE FROM {table} WHERE account = ? AND block = ?", blocks)
    index.executemany(
        "INSERT OR REPLACE INTO changed VALUES (?, ?, ?)", [(*of, sequence) for of in blocks]
    )


def left_alone(index: sqlite3.Connection) -> tuple[int, int] | None:
    """An account and a block of it that has no totals, and that may have some."""
    found: tuple[int, int] | None = index.execute(_LEFT, (_LEFT_ALONE,)).fetchone()
    return found


def keep_totals(index: AccountIndex, block: int) -> None:
    """Counts a block, and keeps what is worth it."""
    of = index.account, block
    if index.members(Facet.PAYMENT, 0, block).bit_count() > _FEW:
        index.connection.executemany(
            "INSERT INTO totals VALUES (?, ?, ?, ?, ?)",
            [
                (*of, facet, value, _encode(counts))
                for facet, totals in chain(count_block(index, block), _shared_by_many(index, block))
                for value, counts in totals.items()
            ],
        )
        keep_settled(index, block)
    index.connection.execute("DELETE FROM changed WHERE account = ? AND block = ?", of)


def _shared_by_many(index: AccountIndex, block: int) -> Iterator[tuple[Facet, Totals]]:
    """By each entity, the totals of its values that more payments of a block share than a list has."""
    for facet in ENTITIES:
        shared = index.connection.execute(
            _SHARED, (index.account, facet, block, MOST_LISTED_BYTES)
        ).fetchall()
        yield facet, {value: count_set(index, block, unpack(members)) for value, members in shared}


_SHARED = (
    "SELECT value, members FROM postings WHERE account = ? AND facet = ? AND block = ?"
    " AND length(members) > ?"
)
_LEFT = "SELECT account, block FROM changed WHERE sequence <= (SELECT sequence FROM followed) - ? LIMIT 1"
