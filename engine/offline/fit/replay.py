"""A labelled history through the engine: each payment as it was known when it arrived."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from tollkeeper.engine.decide import analyse
from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.facts.facts import Facts, derive
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.labelled import Label, Labelled
from tollkeeper.engine.offline.testing.history import (
    ACCOUNT,
    Known,
    already_there,
    empty_windows,
    update_record,
)
from tollkeeper.engine.offline.testing.streams import Updated
from tollkeeper.engine.programs.decider import Programs
from tollkeeper.engine.programs.loaded import LoadedScorecard
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.grammar.program import Value


@dataclass(frozen=True, slots=True)
class Scored:
    """A payment with the aggregates that were read for it and its score in hundredths."""

    facts: Facts
    values: tuple[Value | None, ...]
    score: int
    label: Label | None


async def replay(
    history: Iterable[Labelled], scorecard: LoadedScorecard, environment: Environment
) -> AsyncIterator[Scored]:
    """The payments of `history`, scored one by one as live ones are.

    What a scorecard reads of earlier decisions is the score's own, by the default thresholds.
    Raises `StreamError` for a history that doesn't fit together.
    """
    windows, clients = await empty_windows(scorecard.reading.plan.series), Clients()
    programs, known = Programs(scorecard, None, recommends=True), Known()
    for item, label in history:
        if isinstance(item, Updated):
            record = update_record(known, item)
            known[item.id] = record.state
            await windows.observe(record, ())
            continue
        id_ = item.payment.id
        if id_ in known:
            raise already_there(item)
        facts = derive(item.payment, item.arrived, clients)
        observed, decision = await analyse(
            windows, ACCOUNT, facts, programs, environment, Thresholds()
        )
        assert decision.score is not None
        known[id_] = observed.record.state
        yield Scored(facts, observed.values, decision.score, label)
