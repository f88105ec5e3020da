"""Whether people who were refused came back and paid."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.search.blocks import (
    SHIFT,
    SIZE,
    are_members,
    block_of,
    is_list,
    members_listed,
    sliceable,
    stretch,
)
from tollkeeper.engine.search.outcomes import OUTCOMES, POSITIONS
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
from tollkeeper.engine.search.terms import Facet, entities_of, read_facts

COME_BACK = 7 * DAY
"""How long after a refusal a payment by the same card or user counts as coming back."""
_SUCCEEDED = 1 + OUTCOMES.index((Facet.STATUS, "succeeded"))


class _Sought(NamedTuple):
    """A card or user of a refused payment, and the sequence numbers of the week after it."""

    refused: int
    facet: Facet
    value: int
    within: range


def came_back(index: AccountIndex, refused: Iterable[Entry]) -> set[int]:
    """Return the sequence numbers of those refused payments that one of the same card or user
    followed, and that succeeded.

    Runs and blocks are read for all of them at once.
    """
    followed = set[int]()
    unread: defaultdict[tuple[Facet, tuple[int, ...]], list[_Sought]] = defaultdict(list)
    for telling, left, alike in _by_runs(index, _sought(index, refused)):
        entries = index.entries_in({each.value for each in alike}, telling)
        for each in alike:
            of_runs = entries.get(each.value, ())
            if any(_succeeded_in_run(run, stored, each.within) for run, stored in of_runs):
                followed.add(each.refused)
                continue
            common = [run for run, stored in of_runs if stored == COMMON]
            if blocks := tuple(block for run in (*left, *common) for block in blocks_of(run)):
                unread[each.facet, blocks].append(each)
    followed.update(_followed_in_blocks(index, unread))
    return followed


def _sought(index: AccountIndex, refused: Iterable[Entry]) -> Iterator[_Sought]:
    for entry in refused:
        beyond = min(index.sequence_at(entry.arrived + COME_BACK, 0), index.last + 1)
        within = range(entry.sequence + 1, beyond)
        if within:
            for facet, text in entities_of(read_facts(entry)):
                if facet in (Facet.CARD, Facet.USER):
                    yield _Sought(entry.sequence, facet, index.value(facet, text), within)


def _by_runs(
    index: AccountIndex, sought: Iterable[_Sought]
) -> Iterator[tuple[Sequence[int], Sequence[int], list[_Sought]]]:
    """Yield the runs that hold values, the runs whose blocks must be read for them, and all that is
    sought there.
    """
    made = index.runs_made()
    ends = sorted(made.values())

    @cache
    def runs_of(blocks: range, end: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        telling, left = runs_for(runs_within(made, blocks), end)
        return tuple(telling), tuple(left)

    alike: defaultdict[tuple[tuple[int, ...], tuple[int, ...]], list[_Sought]] = defaultdict(list)
    for each in sought:
        blocks = range(block_of(each.within.start), block_of(each.within[-1]) + 1)
        # The same runs hold all values up to the next one at which a run ends.
        place = bisect_left(ends, each.value)
        end = ends[place] if place < len(ends) else each.value
        alike[runs_of(blocks, end)].append(each)
    for (telling, left), found in alike.items():
        yield telling, left, found


def _succeeded_in_run(run: int, stored: bytes, within: range) -> bool:
    """Whether one of a run's entries with these sequence numbers succeeded."""
    if stored == COMMON:
        return False
    entries = entries_from(run, stored, within.start)
    return any(
        _SUCCEEDED in POSITIONS[outcome] and sequence_of(run, entry) in within
        for entry, outcome in zip(entries, entry_outcomes(entries), strict=True)
    )


def _followed_in_blocks(
    index: AccountIndex, unread: Mapping[tuple[Facet, tuple[int, ...]], Sequence[_Sought]]
) -> Iterator[int]:
    """Yield the refused payments that were followed in the blocks that no run holds."""

    value = index.value(Facet.STATUS, "succeeded")

    @cache
    def succeeded_of(block: int) -> bytes:
        return sliceable(index.members(Facet.STATUS, value, block))

    for (facet, blocks), alike in unread.items():
        telling = index.blocks_having(Facet.STATUS, value, blocks)
        stored = index.stored_of(facet, {each.value for each in alike}, telling)
        for each in alike:
            if any(
                _succeeded_in(block, members, succeeded_of(block), each.within)
                for block, members in stored.get(each.value, ())
            ):
                yield each.refused


def _succeeded_in(block: int, stored: bytes, succeeded: bytes, within: range) -> bool:
    """Whether a payment of a stored set of a block, with one of these sequence numbers, is in
    `succeeded`.
    """
    low, high = max(within.start - (block << SHIFT), 0), min(within.stop - (block << SHIFT), SIZE)
    if low >= high:
        return False
    if is_list(stored):
        return any(are_members(succeeded, members_listed(stored, low, high)))
    return bool(stretch(stored, low, high) & stretch(succeeded, low, high))
