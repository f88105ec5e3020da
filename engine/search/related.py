"""Related payments: for each entity of a payment, how many payments share it, and their outcomes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from msgspec import Struct

from tollkeeper.engine.search.blocks import (
    SHIFT,
    bit_of,
    block_of,
    is_list,
    members_listed,
    numbers_from,
    sliceable,
    unpack,
)
from tollkeeper.engine.search.outcomes import PIECE, PIECE_SHIFT, count_outcomes
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.runs import (
    COMMON,
    blocks_of,
    entries_from,
    entry_outcomes,
    runs_for,
    runs_within,
    sequence_of,
)
from tollkeeper.engine.search.tally import Tally, Tallying
from tollkeeper.engine.search.terms import Facet, entities_of, read_facts


class RelatedPayments(Struct, frozen=True):
    """The payments, including this one, that share the value `value` of `by`; the `first` and the
    `last` arrived at these times (µs).
    """

    by: str
    value: str
    first: int
    last: int
    tally: Tally


class FindRelated(Struct, frozen=True, tag=True):
    """For each entity of a payment, the payments that share it and arrived at `since` (µs) or
    later; only of `merchants` where given.
    """

    payment: str
    since: int | None
    merchants: tuple[str, ...] = ()

    def answer(self, index: AccountIndex) -> list[RelatedPayments] | None:
        """None if the index has no payment of this id."""
        sequence = index.tail.payment_sequence(index.account, self.payment)
        known = None if sequence is None else index.tail.known(sequence, index.last)
        if known is None:
            return None
        begin = index.sequence_at(self.since, 0)
        seen = _of_merchants(index, self.merchants, begin)
        shared = [
            _Shared(index, begin, seen, facet, value)
            for facet, value in entities_of(read_facts(known))
        ]
        _add_runs(index, shared, range(block_of(begin), block_of(index.last) + 1))
        # Block by block, since the sets of the block that was read last are cached.
        for block in sorted({block for each in shared for block in each.stored}):
            for each in shared:
                each.add(block)
        pieces = index.outcomes_in({each >> PIECE_SHIFT for one in shared for each in one.alone})
        for each in shared:
            each.add_alone(pieces)
        # A card, its device and its user mostly have the same first and last payment.
        arrived = cache(index.arrived)
        found = (each.related(arrived) for each in shared)
        return [each for each in found if each is not None]


def _of_merchants(
    index: AccountIndex, merchants: tuple[str, ...], begin: int
) -> dict[int, int] | None:
    """Return the payments of these merchants from a sequence number on, by block; None without
    merchants.
    """
    if not merchants:
        return None
    found: dict[int, int] = {}
    blocks = index.blocks(begin, index.last + 1)
    for merchant in merchants:
        value = index.value(Facet.MERCHANT, merchant)
        for block, members in index.members_in(Facet.MERCHANT, value, blocks).items():
            found[block] = found.get(block, 0) | members
    return found


def _add_runs(index: AccountIndex, shared: Iterable[_Shared], within: range) -> None:
    """Count what made runs hold of these blocks, with one query for all values that the same runs
    hold.
    """
    made = runs_within(index.runs_made(), within)
    held_alike: dict[tuple[int, ...], tuple[list[int], list[_Shared]]] = {}
    for each in shared:
        telling, left = runs_for(made, each.value)
        held_alike.setdefault(tuple(telling), (left, []))[1].append(each)
    for runs, (left, alike) in held_alike.items():
        entries = index.entries_in([each.value for each in alike], runs)
        for each in alike:
            each.add_runs(entries.get(each.value, ()), left, within)


class _Shared:
    """Counts the payments that share a value, from sequence number `begin` on; only those in `seen`
    (by block) unless it is None.

    Most are read from runs. Of blocks without a run, few payments are counted by their outcome
    bytes, many as a set. Where a run holds a value only as common, the totals of its blocks are
    added.
    """

    def __init__(
        self,
        index: AccountIndex,
        begin: int,
        seen: Mapping[int, int] | None,
        facet: Facet,
        value: str,
    ) -> None:
        self._index = index
        self._begin = begin
        self._seen = seen
        self._facet = facet
        self._name = value
        self.value = index.value(facet, value)
        self.stored: Mapping[int, bytes] = {}
        self._outcomes = bytearray()
        self._tallying = Tallying(index)
        self._first = self._last = -1
        self.alone: list[int] = []

    def add_runs(
        self, of_runs: Iterable[tuple[int, bytes]], left: Iterable[int], within: range
    ) -> None:
        """Count the entries of runs, and read the sets of the blocks of `left`, which no run holds.

        Blocks without payments are queried too: to find out which those are would take longer.
        """
        common = list[int]()
        for run, entries in of_runs:
            if entries == COMMON:
                common += (block for block in blocks_of(run) if block in within)
            else:
                self._add_entries(run, entries_from(run, entries, self._begin))
        alone = self._add_totals(common)
        alone += (block for run in left for block in blocks_of(run) if block in within)
        if alone:
            self.stored = self._index.stored_in(self._facet, self.value, alone)

    def _add_entries(self, run: int, entries: array[int]) -> None:
        if self._seen is not None:
            entries = array("I", filter(self._seen_in(run), entries))
        if entries:
            self._outcomes += entry_outcomes(entries)
            self._note(sequence_of(run, entries[0]), sequence_of(run, entries[-1]))

    def _seen_in(self, run: int) -> Callable[[int], bool]:
        """Return the test of whether an entry's payment is in `seen`."""
        assert self._seen is not None
        seen = {block: sliceable(self._seen.get(block, 0)) for block in blocks_of(run)}

        def is_seen(entry: int) -> bool:
            sequence = sequence_of(run, entry)
            members, bit = seen[block_of(sequence)], bit_of(sequence)
            return bool(members) and bool(members[bit >> 3] >> (bit & 7) & 1)

        return is_seen

    def _add_totals(self, blocks: list[int]) -> list[int]:
        """Add the stored totals of blocks, except of the first and last ones, which are needed for
        the first and last payment. Returns the blocks that are left.
        """
        whole = [block for block in blocks if block << SHIFT >= self._begin]
        if self._seen is not None or not whole:
            return blocks
        totals = self._index.totals_in(self._facet, self.value, whole)
        inner = set(sorted(totals)[1:-1])
        for block in inner:
            self._tallying.add_counts(totals[block].counts)
        return [block for block in blocks if block not in inner]

    def add(self, block: int) -> None:
        """Count a block's set; where it is small, `add_alone` does the rest."""
        stored, base = self.stored.get(block), block << SHIFT
        if stored is None:
            return
        if self._seen is None and is_list(stored):
            bits = members_listed(stored, max(self._begin - base, 0))
            if bits:
                self.alone += [base + bit for bit in bits]
                self._note(base + bits[0], base + bits[-1])
            return
        members = unpack(stored) & numbers_from(block, self._begin)
        if self._seen is not None:
            members &= self._seen.get(block, 0)
        if members:
            self._tallying.add(block, members)
            self._note(
                base + (members & -members).bit_length() - 1, base + members.bit_length() - 1
            )

    def add_alone(self, pieces: Mapping[int, bytes]) -> None:
        """Add the outcome bytes, found in these pieces, of the payments in `alone`."""
        self._outcomes += bytes(
            [pieces[each >> PIECE_SHIFT][each & PIECE - 1] for each in self.alone]
        )

    def _note(self, first: int, last: int) -> None:
        self._first = first if self._first < 0 else min(self._first, first)
        self._last = max(self._last, last)

    def related(self, arrived: Callable[[int], int]) -> RelatedPayments | None:
        """Return the result; None without payments. `arrived` returns a payment's arrival (µs)."""
        if self._first < 0:
            return None
        self._tallying.add_counts(count_outcomes(self._outcomes))
        return RelatedPayments(
            by=self._facet.name.lower(),
            value=self._name,
            first=arrived(self._first),
            last=arrived(self._last),
            tally=self._tallying.tally(),
        )
