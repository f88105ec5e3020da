"""The replay of a labelled history, which scores each payment as it was known when it arrived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tollkeeper.engine.decide import analyse
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.labelled import FraudLabel, LabelledItem
from tollkeeper.engine.offline.replay import (
    TEST_ACCOUNT,
    ReplayedCreation,
    empty_windows,
    replay_live,
)
from tollkeeper.engine.offline.testing.history import happenings
from tollkeeper.engine.offline.testing.streams import StreamLine
from tollkeeper.engine.programs.decider import Programs
from tollkeeper.engine.programs.loaded import LoadedScorecard
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.engine.velocity.contract import Observation
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.grammar.program import Value


@dataclass(frozen=True, slots=True)
class ScoredPayment:
    """A payment with the aggregates that were read for it and its score in hundredths."""

    facts: Facts
    values: tuple[Value | None, ...]
    score: int
    label: FraudLabel | None


def score_history(
    history: Iterable[LabelledItem], scorecard: LoadedScorecard, environment: Environment
) -> Iterator[ScoredPayment]:
    """The payments of `history`, scored as live ones are.

    Earlier decisions that the scorecard reads are its own, with the default thresholds. Raises
    `StreamError` for an inconsistent history.
    """
    programs, labels = Programs(scorecard, None, recommends=True), dict[int, FraudLabel | None]()

    def items() -> Iterator[StreamLine]:
        for item, label in history:
            labels[item.line] = label
            yield item

    async def judge(windows: Windows, creation: ReplayedCreation) -> tuple[Observation, Decision]:
        facts = creation.record.state.payment
        return await analyse(windows, TEST_ACCOUNT, facts, programs, environment, Thresholds())

    windows = empty_windows(scorecard.series)
    for step in replay_live(happenings(items(), {}, Clients()), windows, judge):
        if step.decision is not None:
            facts, values = step.observed.record.state.payment, step.observed.values
            assert step.decision.score is not None
            label = labels.pop(step.happening.origin.line)
            yield ScoredPayment(facts, values, step.decision.score, label)
