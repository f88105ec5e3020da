"""Which conditions held beside the one that decided: what would still be caught without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from tollkeeper.engine.explain.explain import explain
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.registry.past_states import PastStates


class AlsoMet(Struct, frozen=True):
    """Of the newest `of` hits, how many each later condition held for as well."""

    of: int
    conditions: Mapping[str, int]


async def also_met(
    journal: Journal, past_states: PastStates, account: int, payments: Iterable[str]
) -> AlsoMet:
    """Of payments given by their ids, explained one after another; those that are gone are left out."""
    held: Counter[str] = Counter()
    looked = 0
    for payment in payments:
        found = await explain(journal, past_states, account, payment)
        if found is None or found.rule is None:
            continue
        looked += 1
        held.update(
            each.name
            for each in found.rule.conditions
            if each.outcome == "not reached" and each.when.value == "true"
        )
    return AlsoMet(looked, dict(held))
