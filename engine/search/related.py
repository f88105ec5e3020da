"""What a payment shares with others: by each entity, how many, and what became of them."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.engine.search.blocks import SHIFT, numbers_from
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.tally import Tally, TallySets
from tollkeeper.engine.search.terms import Facet, entities_of, read_facts


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
    index: AccountIndex, payment_id: str, since: int | None
) -> list[RelatedPayments] | None:
    """By each entity of a payment, the payments that arrived at `since` (µs) or later.

    None when the index has no payment of the id.
    """
    sequence = index.tail.payment_sequence(index.account, payment_id)
    known = None if sequence is None else index.tail.known(sequence, index.last)
    if known is None:
        return None
    begin = index.sequence_at(since, 0)
    blocks = index.blocks(begin, index.last + 1)
    counted = TallySets(index)
    found = []
    for facet, value in entities_of(read_facts(known)):
        shared = _sharing(index, counted, facet, value, begin, blocks)
        if shared is not None:
            found.append(shared)
    return found


def _sharing(
    index: AccountIndex,
    counted: TallySets,
    facet: Facet,
    value: str,
    begin: int,
    blocks: list[int],
) -> RelatedPayments | None:
    sets = index.members_in(facet, index.value(facet, value), blocks)
    if blocks and blocks[-1] in sets:
        sets[blocks[-1]] &= numbers_from(blocks[-1], begin)
    sets = {block: members for block, members in sets.items() if members}
    if not sets:
        return None
    first, last = min(sets), max(sets)
    return RelatedPayments(
        by=facet.name.lower(),
        value=value,
        first=index.arrived((first << SHIFT) + (sets[first] & -sets[first]).bit_length() - 1),
        last=index.arrived((last << SHIFT) + sets[last].bit_length() - 1),
        tally=counted.tally(sets.items()),
    )
