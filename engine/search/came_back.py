"""Whether somebody who was refused came back and paid."""

from __future__ import annotations

from collections.abc import Mapping

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.search.blocks import (
    SHIFT,
    SIZE,
    block_of,
    is_list,
    members_listed,
    set_of,
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
"""Whoever was refused and pays within this came back."""
_SUCCEEDED = 1 + OUTCOMES.index((Facet.STATUS, "succeeded"))


def came_back(index: AccountIndex, refused: Entry, made: Mapping[int, int]) -> bool:
    """Whether a payment of the same card or user followed a refused one, and succeeded.

    `made` are the runs that there are, as `AccountIndex.runs_made` returns them.
    """
    sequence = refused.sequence
    beyond = min(index.sequence_at(refused.arrived + COME_BACK, 0), index.last + 1)
    if beyond <= sequence + 1:
        return False
    within = range(sequence + 1, beyond)
    runs = runs_within(made, range(block_of(within.start), block_of(within[-1]) + 1))
    return any(
        _has_succeeded(index, runs, facet, index.value(facet, text), within)
        for facet, text in entities_of(read_facts(refused))
        if facet in (Facet.CARD, Facet.USER)
    )


def _has_succeeded(
    index: AccountIndex, made: Mapping[int, int], facet: Facet, value: int, within: range
) -> bool:
    """Whether a payment of an entity, with one of these sequence numbers, succeeded."""
    runs, left = runs_for(made, value)
    for run, stored in index.entries_in([value], runs).get(value, ()):
        if stored == COMMON:
            left.append(run)
            continue
        entries = entries_from(run, stored, within.start)
        for entry, outcome in zip(entries, entry_outcomes(entries), strict=True):
            if _SUCCEEDED in POSITIONS[outcome] and sequence_of(run, entry) in within:
                return True
    blocks = [block for run in left for block in blocks_of(run)]
    stored_in = index.stored_in(facet, value, blocks) if blocks else {}
    return any(_succeeded_in(index, block, stored, within) for block, stored in stored_in.items())


def _succeeded_in(index: AccountIndex, block: int, stored: bytes, within: range) -> bool:
    """Whether a payment of a stored set of a block, with one of these sequence numbers, succeeded."""
    low, high = max(within.start - (block << SHIFT), 0), min(within.stop - (block << SHIFT), SIZE)
    if not is_list(stored):
        members = stretch(stored, low, high) << low
    elif bits := members_listed(stored, low, high):
        members = set_of(bits)
    else:
        return False
    succeeded = index.members(Facet.STATUS, index.value(Facet.STATUS, "succeeded"), block)
    return bool(members & succeeded)
