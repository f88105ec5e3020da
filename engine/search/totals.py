"""Totals of blocks: by each value of a dimension, by what each source of labels said, and of an entity
that very many payments share, how many payments there are, what became of them and what they amount to.

They are stored for blocks that no longer change, and but for entities for bundles of such blocks, so that
figures over many blocks are added up from few totals, not counted.
"""

# ruff: noqa: S608 - only names of this module are put into the queries

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain

import msgspec

from tollkeeper.engine.search.blocks import MOST_LISTED, MOST_LISTED_BYTES, block_of, unpack
from tollkeeper.engine.search.commonest import keep_commonest
from tollkeeper.engine.search.figures import sums_of, totals_of_part
from tollkeeper.engine.search.parts import BUNDLE_LEVELS, blocks_within, bundle_of, parts_with
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
    """Drop the totals of blocks, given with their accounts, that change at a sequence number, and of
    their bundles.
    """
    blocks = sorted(changed)
    parts = sorted({(account, part) for account, block in blocks for part in parts_with(block)})
    for table, dropped in (("totals", parts), ("commonest", parts), ("settled", blocks)):
        index.executemany(f"DELETE FROM {table} WHERE account = ? AND block = ?", dropped)
    index.executemany(
        "INSERT OR REPLACE INTO changed VALUES (?, ?, ?)", [(*of, sequence) for of in blocks]
    )


def left_alone(index: sqlite3.Connection) -> tuple[int, int] | None:
    """Return an account and a settled block of it whose totals are still to be made."""
    found: tuple[int, int] | None = index.execute(_LEFT, (_LEFT_ALONE,)).fetchone()
    return found


def keep_totals(index: AccountIndex, block: int, give_way: Callable[[], None]) -> None:
    """Count a block, and store its totals unless it has few payments; and those of the bundles of which
    it is the last to be counted.
    """
    of = index.account, block
    if index.members(Facet.PAYMENT, 0, block).bit_count() > _FEW:
        counted = chain(totals_of_part(index, block), _shared_by_many(index, block))
        _put_totals(index, block, counted, give_way)
        keep_settled(index, block)
        give_way()
        keep_commonest(index, block)
    index.connection.execute("DELETE FROM changed WHERE account = ? AND block = ?", of)
    _keep_bundles(index, block, give_way)


def _keep_bundles(index: AccountIndex, block: int, give_way: Callable[[], None]) -> None:
    for level in BUNDLE_LEVELS:
        bundle = bundle_of(block, level)
        if not _is_counted(index, blocks_within(bundle)):
            return
        give_way()
        _put_totals(index, bundle, totals_of_part(index, bundle), give_way)
        keep_commonest(index, bundle)


def _put_totals(
    index: AccountIndex,
    part: int,
    counted: Iterable[tuple[Facet, Totals]],
    give_way: Callable[[], None],
) -> None:
    for facet, totals in counted:
        index.connection.executemany(
            "INSERT INTO totals VALUES (?, ?, ?, ?, ?)",
            [
                (index.account, part, facet, value, _encode(total))
                for value, total in totals.items()
            ],
        )
        give_way()


def _is_counted(index: AccountIndex, blocks: range) -> bool:
    """Whether all of these blocks are full, and none has changed since it was counted."""
    if block_of(index.last) < blocks.stop:
        return False
    query = "SELECT 1 FROM changed WHERE account = ? AND block >= ? AND block < ? LIMIT 1"
    found = index.connection.execute(query, (index.account, blocks.start, blocks.stop))
    return found.fetchone() is None


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
