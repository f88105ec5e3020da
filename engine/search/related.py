"""What a payment shares with others: by each entity, how many, and what became of them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from msgspec import Struct

from tollkeeper.engine.search.blocks import SHIFT, is_list, members_listed, numbers_from, unpack
from tollkeeper.engine.search.outcomes import PIECE_SHIFT, count_outcomes, place_in_piece
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.tally import Tally, Tallying
from tollkeeper.engine.search.terms import Facet, entities_of, read_facts
from tollkeeper.engine.search.totals import may_have_totals


class RelatedPayments(Struct, frozen=True):
    """The payments that share the value `value` of `by`, this one among them; `first` and `last`
    arrived at these times (µs).
    """

    by: str
    value: str
    first: int
    last: int
    tally: Tally


def find_related(
    index: AccountIndex, payment_id: str, since: int | None, merchants: tuple[str, ...] = ()
) -> list[RelatedPayments] | None:
    """By each entity of a payment, the payments that arrived at `since` (µs) or later, of `merchants`
    where any is named.

    None when the index has no payment of the id.
    """
    sequence = index.tail.payment_sequence(index.account, payment_id)
    known = None if sequence is None else index.tail.known(sequence, index.last)
    if known is None:
        return None
    begin = index.sequence_at(since, 0)
    blocks = index.blocks(begin, index.last + 1)
    if not blocks:
        return []
    seen = _of_merchants(index, merchants, blocks)
    shared = [
        _Shared(
            index, begin, facet, value, index.stored_in(facet, index.value(facet, value), blocks)
        )
        for facet, value in entities_of(read_facts(known))
    ]
    for block in reversed(blocks):
        for each in shared:
            each.add(block, None if seen is None else seen.get(block, 0))
    pieces = {sequence >> PIECE_SHIFT for each in shared for sequence in each.alone}
    outcomes = index.outcomes_in(pieces)
    for each in shared:
        each.add_alone(outcomes)
    found = (each.related() for each in shared)
    return [each for each in found if each is not None]


def _of_merchants(
    index: AccountIndex, merchants: tuple[str, ...], blocks: list[int]
) -> dict[int, int] | None:
    """The payments of any of them, by their blocks; None where none is named."""
    if not merchants:
        return None
    found: dict[int, int] = {}
    for merchant in merchants:
        value = index.value(Facet.MERCHANT, merchant)
        for block, members in index.members_in(Facet.MERCHANT, value, blocks).items():
            found[block] = found.get(block, 0) | members
    return found


class _Shared:
    """Counts the payments from the sequence number `begin` on that share a value, block after block."""

    def __init__(
        self, index: AccountIndex, begin: int, facet: Facet, value: str, stored: dict[int, bytes]
    ) -> None:
        self._index = index
        self._begin = begin
        self._facet = facet
        self._value = value
        self._stored = stored
        shared = [block for block, members in stored.items() if may_have_totals(members)]
        self._totals = index.totals_in(facet, index.value(facet, value), shared) if shared else {}
        self._tallying = Tallying(index)
        self.alone: list[int] = []
        self._first: int | None = None
        self._last = 0

    def add(self, block: int, seen: int | None) -> None:
        """Counts those of a block that are `seen`, or all of them where that is None; of a few that
        no totals are kept of, what became of them is not known yet."""
        stored, base = self._stored.get(block), block << SHIFT
        if stored is None:
            return
        if seen is None and is_list(stored):
            bits = members_listed(stored, max(self._begin - base, 0))
            if bits:
                self._add_listed(block, bits)
                self._note(base + bits[0], base + bits[-1])
            return
        members = unpack(stored) & numbers_from(block, self._begin)
        if seen is not None:
            members &= seen
        if members:
            self._tallying.add(block, members)
            self._note(
                base + (members & -members).bit_length() - 1, base + members.bit_length() - 1
            )

    def _add_listed(self, block: int, bits: array[int]) -> None:
        totals = self._totals.get(block)
        if totals is not None and totals[0] == len(bits):
            self._tallying.add_counts(totals)
        else:
            base = block << SHIFT
            self.alone += [base + bit for bit in bits]

    def add_alone(self, outcomes: Mapping[int, bytes]) -> None:
        """Counts the few, whose bytes are among these pieces."""
        self._tallying.add_counts(
            count_outcomes(
                bytes(outcomes[each >> PIECE_SHIFT][place_in_piece(each)] for each in self.alone)
            )
        )

    def _note(self, first: int, last: int) -> None:
        self._first = first if self._first is None else self._first
        self._last = last

    def related(self) -> RelatedPayments | None:
        """All that were counted; None without any."""
        if self._first is None:
            return None
        return RelatedPayments(
            by=self._facet.name.lower(),
            value=self._value,
            first=self._index.arrived(self._first),
            last=self._index.arrived(self._last),
            tally=self._tallying.tally(),
        )
