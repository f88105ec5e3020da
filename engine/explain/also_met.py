"""How often later conditions were true as well: what would still be caught without this one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from tollkeeper.engine.explain.explain import explain
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.registry.past_states import PastStates


class AlsoMet(Struct, frozen=True):
    """For how many of the newest `of` hits each later condition was true as well."""

    of: int
    conditions: Mapping[str, int]


async def also_met(
    journal: Journal, past_states: PastStates, account: int, payments: Iterable[str]
) -> AlsoMet:
    """Count the later conditions that were true for these payments, explained one after another;
    missing payments are skipped."""
    true: Counter[str] = Counter()
    explained = 0
    for payment in payments:
        explanation = await explain(journal, past_states, account, payment)
        if explanation is None or explanation.rule is None:
            continue
        explained += 1
        true.update(
            each.name
            for each in explanation.rule.conditions
            if each.outcome == "not reached" and each.when.value == "true"
        )
    return AlsoMet(explained, dict(true))
