"""Read the index: the sets of payments that match a filter, block by block."""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.instants import MINUTE
from tollkeeper.engine.journal.source import JournalSource, folder_of
from tollkeeper.engine.journal.tail import Tail
from tollkeeper.engine.labels.label import LabelSource, Verdict
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.search import index_file
from tollkeeper.engine.search.blocks import (
    SHIFT,
    SIZE,
    block_of,
    by_block,
    numbers_below,
    numbers_from,
    unpack,
)
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.numbers_by_bits import at_least
from tollkeeper.engine.search.outcomes import PIECE, PIECE_SHIFT, OutcomeCounts
from tollkeeper.engine.search.parts import blocks_within
from tollkeeper.engine.search.terms import NO_VALUE, Facet, Hashes, Term

MOST_BEGINNING = 10_000
"""The most payments whose ids may start with a given beginning."""
EVERY_VALUE = 2**63 - 1
"""The highest possible value of a term."""
_LAST = 2**63 - 1
_OF = "account = ? AND facet = ? AND block = ?"
_OF_BLOCKS = "account = ? AND facet = ? AND value = ? AND block IN (SELECT value FROM json_each(?))"


class Total(Struct, frozen=True, array_like=True, gc=False):
    """What became of some payments, and what they amount to by currency, in hundredths."""

    counts: OutcomeCounts
    money: Mapping[int, int]


Totals: TypeAlias = dict[int, Total]
"""Of the payments that have each value of a facet."""

ABSENT = -1
"""Stands for the value of a facet that payments without any have."""
TOTALLED = (
    *(Facet.ACTION, Facet.STATUS, Facet.LABEL, Facet.LABELLED, Facet.RULE, Facet.CONDITION),
    *(Facet.VERSION, Facet.MERCHANT, Facet.CURRENCY),
)
"""The facets of which totals are kept for every value, and for payments without any."""

_decode_total = msgspec.msgpack.Decoder(Total).decode
_encode_list = msgspec.json.Encoder().encode


class AccountIndex:
    """One account's part of the index, as of a `snapshot`, and the journal behind it."""

    def __init__(self, connection: sqlite3.Connection, tail: Tail, account: int) -> None:
        self.connection = connection
        self.tail = tail
        self.account = account
        followed = index_file.read_index_place(connection)
        self.last = followed.sequence
        self._arrived = followed.arrived
        self.hashes = Hashes(followed.key)
        self._names: dict[Facet, dict[int, str]] = {}
        # The facets of the block that was read last are cached: most questions go block by block.
        self._block = -1
        self._facets: dict[Facet, dict[int, int]] = {}

    def members(self, facet: Facet, value: int, block: int) -> int:
        """Return the payments of a block that have a term."""
        if block == self._block and facet in self._facets:
            return self._facets[facet].get(value, 0)
        rows = self._own(
            f"SELECT members FROM postings WHERE {_OF} AND value = ?", facet, block, value
        )
        return unpack(rows[0][0]) if rows else 0

    def blocks_having(self, facet: Facet, value: int, blocks: Sequence[int]) -> list[int]:
        """Return those of these blocks that have payments with a term, last first."""
        query = f"SELECT block FROM postings WHERE {_OF_BLOCKS} ORDER BY block DESC"
        return [block for (block,) in self._own(query, facet, value, _listed(blocks))]

    def stored_in(self, facet: Facet, value: int, blocks: Sequence[int]) -> dict[int, bytes]:
        """Return the payments that have a term, in stored form, for each of these blocks that has
        any.
        """
        query = f"SELECT block, members FROM postings WHERE {_OF_BLOCKS}"
        return dict(self._own(query, facet, value, _listed(blocks)))

    def stored_of(
        self, facet: Facet, values: Collection[int], blocks: Collection[int]
    ) -> dict[int, list[tuple[int, bytes]]]:
        """Return the payments of these blocks that have each of these values, in stored form, with
        their blocks; only of values that any have.
        """
        found: dict[int, list[tuple[int, bytes]]] = {}
        for block, value, members in self._own(
            "SELECT block, value, members FROM postings WHERE account = ? AND facet = ?"
            " AND block IN (SELECT value FROM json_each(?))"
            " AND value IN (SELECT value FROM json_each(?))",
            facet,
            _listed(sorted(blocks)),
            _listed(sorted(values)),
        ):
            found.setdefault(value, []).append((block, members))
        return found

    def members_in(self, facet: Facet, value: int, blocks: Sequence[int]) -> dict[int, int]:
        """`stored_in`, unpacked to sets."""
        stored = self.stored_in(facet, value, blocks)
        return {block: unpack(members) for block, members in stored.items()}

    def stored(self, facet: Facet, block: int) -> dict[int, bytes]:
        """Return each value of a facet in a block with its payments, in stored form."""
        return dict(self._own(f"SELECT value, members FROM postings WHERE {_OF}", facet, block))

    def facet(self, facet: Facet, block: int) -> Mapping[int, int]:
        """Return each value of a facet in a block with its set of payments."""
        if block != self._block:
            self._block, self._facets = block, {}
        found = self._facets.get(facet)
        if found is None:
            stored = self.stored(facet, block)
            found = {value: unpack(members) for value, members in stored.items()}
            self._facets[facet] = found
        return found

    def commonest(self, facet: Facet, block: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the values of a facet with the most payments in a block, with their sets in stored
        form.
        """
        query = (
            f"SELECT value, members FROM postings WHERE {_OF} ORDER BY length(members) DESC LIMIT ?"
        )
        return self._own(query, facet, block, limit)

    def outcomes_of(self, block: int) -> bytes:
        """Return the outcome bytes of a block, by position."""
        outcomes = bytearray(SIZE)
        first = block << SHIFT - PIECE_SHIFT
        for piece, stored in self.connection.execute(
            "SELECT piece, bytes FROM outcomes WHERE piece BETWEEN ? AND ?",
            (first, first + SIZE // PIECE - 1),
        ):
            begin = piece - first << PIECE_SHIFT
            outcomes[begin : begin + PIECE] = stored
        return bytes(outcomes)

    def outcomes_in(self, pieces: Collection[int]) -> dict[int, bytes]:
        """Return the outcome bytes of these pieces, by piece."""
        rows = self.connection.execute(
            "SELECT piece, bytes FROM outcomes WHERE piece IN (SELECT value FROM json_each(?))",
            (_listed(sorted(pieces)),),
        )
        return dict(rows.fetchall())

    def totals(self, facet: Facet, part: int) -> Totals:
        """Return the stored totals of a block or bundle by value of a facet; empty if nothing is
        stored.
        """
        rows = self._own(f"SELECT value, total FROM totals WHERE {_OF}", facet, part)
        return {value: _decode_total(total) for value, total in rows}

    def totals_in(self, facet: Facet, value: int, parts: Sequence[int]) -> dict[int, Total]:
        """Return a term's stored totals, for each of these blocks and bundles that has any."""
        query = f"SELECT block, total FROM totals WHERE {_OF_BLOCKS}"
        rows = self._own(query, facet, value, _listed(parts))
        return {part: _decode_total(total) for part, total in rows}

    def runs_made(self) -> dict[int, int]:
        """Return each run with the highest value up to which it is made."""
        return dict(self._own("SELECT run, through FROM runs_made WHERE account = ?"))

    def entries_in(
        self, values: Collection[int], runs: Collection[int]
    ) -> dict[int, list[tuple[int, bytes]]]:
        """Return the stored entries in these runs of each of these entities that has any, with their
        runs, first to last.
        """
        found: dict[int, list[tuple[int, bytes]]] = {}
        for run, value, entries in self._own(
            "SELECT run, value, entries FROM runs WHERE account = ? AND run IN"
            " (SELECT value FROM json_each(?)) AND value IN (SELECT value FROM json_each(?))"
            " ORDER BY run",
            _listed([*runs]),
            _listed([*values]),
        ):
            found.setdefault(value, []).append((run, entries))
        return found

    def value(self, facet: Facet, text: str | int) -> int:
        return self.hashes.value(self.account, facet, text)

    def names(self, facet: Facet) -> dict[int, str]:
        """Return the names of a facet's values."""
        found = self._names.get(facet)
        if found is None:
            query = "SELECT value, name FROM names WHERE account = ? AND facet = ?"
            found = self._names[facet] = dict(self._own(query, facet))
        return found

    def blocks(self, first: int, end: int) -> list[int]:
        """Return the blocks with payments from sequence number `first` to before `end`, last first."""
        if end <= first:
            return []
        rows = self._own(
            "SELECT block FROM postings WHERE account = ? AND facet = 0 AND block BETWEEN ? AND ?"
            " ORDER BY block DESC",
            block_of(first),
            block_of(end - 1),
        )
        return [block for (block,) in rows]

    def sequence_at(self, time: int | None, otherwise: int) -> int:
        """Return the first sequence number that arrived at a time (µs) or later."""
        if time is None:
            return otherwise
        if time % MINUTE == 0:
            return self._of_minute(time // MINUTE)
        # Arrivals grow with sequence numbers: none that is in the index came after the last.
        return self.last + 1 if 0 < self._arrived < time else self.tail.sequence_at(time)

    def _of_minute(self, minute: int) -> int:
        row = self.connection.execute(
            "SELECT first FROM minutes WHERE minute >= ? ORDER BY minute LIMIT 1", (minute,)
        ).fetchone()
        return self.last + 1 if row is None else int(row[0])

    def arrived(self, sequence: int) -> int:
        """Return when a payment arrived (µs); 0 for one that the journal no longer has."""
        return self.tail.arrival_of(sequence)

    def labels(self, sequence: int) -> dict[LabelSource, Verdict]:
        """Return a payment's labels by source."""
        query = "SELECT source, label FROM labels WHERE account = ? AND payment = ?"
        return dict(self._own(query, sequence))

    def lag(self, now: int) -> int:
        """Return how long (µs) the oldest entry outside the index has waited; 0 if there is none."""
        waiting = self.tail.next_arrival(self.last)
        return 0 if waiting is None else max(now - waiting, 1)

    def _own(self, query: str, *parameters: object) -> list[Any]:
        """All rows of a query whose first parameter is the account."""
        return self.connection.execute(query, (self.account, *parameters)).fetchall()


class IndexFile:
    """A data folder's index, open for reading; it takes one question at a time."""

    def __init__(self, source: JournalSource) -> None:
        """Raises `sqlite3.Error` if there is no index yet."""
        self._folder = folder_of(source)
        # Before it is opened: one that is put in its place meanwhile is not the file that is read.
        self._made = index_file.inode_of(self._folder)
        self._connection = index_file.connect_to_read(self._folder)
        self._tail = Tail(source)

    def close(self) -> None:
        self._connection.close()
        self._tail.close()

    def is_there(self) -> bool:
        """Whether the folder still has this file, not another in its place."""
        return index_file.is_in_place(self._folder, self._made)

    @contextmanager
    def of(self, account: int) -> Iterator[AccountIndex]:
        """An account's part, as of now."""
        with snapshot(self._connection):
            yield AccountIndex(self._connection, self._tail, account)


@contextmanager
def open_index(source: JournalSource, account: int) -> Iterator[AccountIndex]:
    """An account's index, for one question. Raises `sqlite3.Error` if there is no index yet."""
    with closing(IndexFile(source)) as opened, opened.of(account) as index:
        yield index


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold one state of the index, that of the first read, while the context lasts."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _listed(numbers: Sequence[int]) -> str:
    """Return numbers as a query's `json_each` reads them."""
    return _encode_list(numbers).decode()


class Selection:
    """The payments that match a filter."""

    def __init__(self, index: AccountIndex, wanted: Filter) -> None:
        """Raises `Invalid` if an id's beginning matches too many payments."""
        self._index = index
        self.first = index.sequence_at(wanted.since, 0)
        self.end = min(index.sequence_at(wanted.until, _LAST), index.last + 1)
        # Entities first: they leave the fewest payments to look at.
        either = sorted(wanted.terms, key=lambda terms: -max(facet for facet, _ in terms))
        self._either = [tuple(map(self._facet_value, terms)) for terms in either]
        self._wanted = wanted
        named = _payments_named(index, wanted)
        self._named = None if named is None else by_block(named)
        self._kept_by = self._find_kept_by()

    def blocks(self) -> list[int]:
        """Return the blocks that may have matching payments, last first."""
        found = self._index.blocks(self.first, self.end)
        if self._named is None:
            return found
        return [block for block in found if block in self._named]

    def totals(self, part: int, by: Facet | None) -> Totals | None:
        """What is kept of those of a block or bundle, by the values of a facet or any by which they are
        told apart; None where they have to be counted."""
        if self._kept_by is None:
            return None
        facet, values = self._kept_by
        if by not in (None, facet) and values is not None:
            return None
        if not self.has_whole(part):
            return None
        kept = self._index.totals(facet if by is None else by, part)
        if not kept or values is None:
            return kept or None
        return {value: total for value, total in kept.items() if value in values}

    def has_whole(self, part: int) -> bool:
        """Whether the time holds all payments of a block, or all numbers of a bundle."""
        blocks = blocks_within(part)
        if self.first <= blocks.start << SHIFT and blocks.stop << SHIFT <= self.end:
            return True
        if len(blocks) > 1:
            return False
        payments = self._index.members(Facet.PAYMENT, 0, part)
        within = numbers_from(part, self.first) & numbers_below(part, self.end)
        return payments & within == payments

    def _find_kept_by(self) -> tuple[Facet, frozenset[int] | None] | None:
        """The facet that totals tell the payments by, and of which values, None for all; None where
        no totals tell."""
        if self._named is not None or self._wanted.scored or len(self._either) > 1:
            return None
        if not self._either:
            return Facet.ACTION, None
        (terms,) = self._either
        facet = terms[0][0]
        # What several sources say of a payment may be true at once.
        sources = {str(text).partition(":")[0] for _, text in self._wanted.terms[0]}
        if facet not in TOTALLED or (facet is Facet.LABELLED and len(sources) > 1):
            return None
        return facet, frozenset(value for _, value in terms)

    def members(self, block: int) -> int:
        """Return a block's matching payments."""
        members = numbers_from(block, self.first) & numbers_below(block, self.end)
        if self._named is not None:
            members &= self._named.get(block, 0)
        for terms in self._either:
            if not members:
                return 0
            members &= reduce(or_, (self._having(facet, value, block) for facet, value in terms), 0)
        if members and self._wanted.scored:
            members = self._scored(members, block)
        return members & self._index.members(Facet.PAYMENT, 0, block) if members else 0

    def _scored(self, members: int, block: int) -> int:
        """Return the payments whose score is in the filter's range."""
        by_bit = self._index.facet(Facet.SCORE, block)
        members = at_least(by_bit, self._wanted.score_from + 1, members)
        highest = self._wanted.score_to
        return members if highest is None else members ^ at_least(by_bit, highest + 2, members)

    def _facet_value(self, term: Term) -> tuple[Facet, int]:
        facet, text = term
        if facet is Facet.LABEL and text == NO_VALUE:
            return facet, ABSENT
        return facet, self._index.value(facet, text)

    def _having(self, facet: Facet, value: int, block: int) -> int:
        if facet is Facet.LABEL and value == ABSENT:
            labelled = reduce(or_, self._index.facet(facet, block).values(), 0)
            return self._index.members(Facet.PAYMENT, 0, block) & ~labelled
        return self._index.members(facet, value, block)


def _payments_named(index: AccountIndex, wanted: Filter) -> Sequence[int] | None:
    """Return the payments that the filter names by id; None if it names none."""
    if not (wanted.ids or wanted.beginnings):
        return None
    found = {index.tail.payment_sequence(index.account, id_) for id_ in wanted.ids}
    for beginning in wanted.beginnings:
        several = index.tail.payments_beginning(index.account, beginning, MOST_BEGINNING + 1)
        if len(several) > MOST_BEGINNING:
            message = f"more than {MOST_BEGINNING} payments begin so: give more characters"
            raise Invalid.at("id", "invalid_value", message)
        found.update(several)
    return [sequence for sequence in found if sequence is not None]
