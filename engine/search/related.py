"""What a payment shares with others: by each entity, how many, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping

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
    counted = TallySets(index)
    seen = _of_merchants(index, merchants, blocks) if merchants else None
    found = []
    for facet, value in entities_of(read_facts(known)):
        shared = _sharing(index, counted, facet, value, begin, blocks, seen)
        if shared is not None:
            found.append(shared)
    return found


def _of_merchants(
    index: AccountIndex, merchants: tuple[str, ...], blocks: list[int]
) -> dict[int, int]:
    """The payments of any of them, by their blocks."""
    found: dict[int, int] = {}
    for merchant in merchants:
        value = index.value(Facet.MERCHANT, merchant)
        for block, members in index.members_in(Facet.MERCHANT, value, blocks).items():
            found[block] = found.get(block, 0) | members
    return found


def _sharing(
    index: AccountIndex,
    counted: TallySets,
    facet: Facet,
    value: str,
    begin: int,
    blocks: list[int],
    seen: Mapping[int, int] | None,
) -> RelatedPayments | None:
    sets = index.members_in(facet, index.value(facet, value), blocks)
    if seen is not None:
        sets = {block: members & seen.get(block, 0) for block, members in sets.items()}
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
