"""Run a candidate over a history, in the order in which it happened."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec import Struct

from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.backtest.candidate import (
    Candidate,
    CandidateOutcome,
    PastDecision,
    Situation,
    outcome_of,
)
from tollkeeper.engine.offline.backtest.planned_windows import PlannedWindows
from tollkeeper.engine.offline.replay import replay
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.stored_records import ReadEvent
from tollkeeper.grammar.program import Value

HistoryBatches: TypeAlias = Iterable[tuple[Situation, list[Entry]]]
"""Payments, updates and events by sequence number, each batch with the situation that it met."""


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """What happened; `total` is about how many entries there are.

    `begins` and `ends` (µs) are the arrivals of the first payment that is still kept and of the
    last one, None without any.
    """

    happened: HistoryBatches
    read_event: ReadEvent
    total: int = 0
    begins: int | None = None
    ends: int | None = None


class ReplayedPayment(Struct, gc=False):
    """A payment that the candidate decides: the recorded decision (`was`), and the candidate's
    (`now`).

    `arrived` in µs, scores in hundredths; `values` are the aggregates that the candidate read in
    `environment`.
    """

    id: str
    arrived: int
    facts: Any
    was: PastDecision | None
    now: CandidateOutcome
    score: int | None
    values: Sequence[Value | None]
    environment: Environment


class StatusUpdate(Struct, gc=False):
    """The payment `id` was updated; `entry` is its state from then on."""

    id: str
    entry: Entry
    read: Callable[[Entry], str]

    @property
    def status(self) -> str:
        return self.read(self.entry)


def try_candidate(
    candidate: Candidate, history: RecordedHistory, since: int
) -> Iterator[ReplayedPayment | StatusUpdate]:
    """The payments that arrived at `since` (µs) or later, and their updates.

    Earlier arrivals, and events, only fill the windows.
    """
    plan = candidate.plan
    situation: Situation
    facts_of, concerns, decide = plan.facts, candidate.concerns, candidate.decide
    decode_past, reads_decisions = candidate.decode_past, plan.reads_decisions
    windows = PlannedWindows(plan) if plan.series else None

    def entries() -> Iterator[Entry]:
        nonlocal situation
        for met, batch in history.happened:
            situation = met
            yield from batch

    def create(entry: Entry) -> ReplayedPayment | None:
        _, _, _, id_, arrived, _, _, outcome = entry
        facts = facts_of(entry)
        was = decode_past(outcome) if outcome and (arrived >= since or reads_decisions) else None
        if arrived < since:
            if windows is not None:
                windows.count(id_, facts, was, situation.environment)
            return None
        environment = situation.environment
        values = () if windows is None else windows.read(id_, facts, was, environment)
        if not concerns(facts, was, situation):
            return None
        now = decide(facts, was, values, situation)
        return ReplayedPayment(
            id_, arrived, facts, was, outcome_of(now), now.score, values, environment
        )

    def update(entry: Entry) -> StatusUpdate | None:
        if windows is not None:
            windows.update(entry)
        return StatusUpdate(entry.id, entry, plan.status) if entry.arrived >= since else None

    def occur(entry: Entry) -> None:
        record = history.read_event(entry)
        if windows is not None and record.event in plan.events:
            windows.occur(record)

    def tell(entry: Entry) -> None:
        if windows is not None:
            windows.tell(entry)

    return replay(entries(), create, update, occur, tell)


def replayed_payments(
    candidate: Candidate, history: RecordedHistory, since: int, progress: Progress
) -> Iterator[ReplayedPayment]:
    """The payments of `try_candidate` alone; `progress` gets the share of the history that is read."""
    last = max(1, history.total)
    for done, each in enumerate(try_candidate(candidate, history, since)):
        if done % 1000 == 0:
            progress(min(0.99, done / last))
        if isinstance(each, ReplayedPayment):
            yield each
    progress(1.0)


@contextmanager
def without_cycles() -> Iterator[None]:
    """A block without cyclic garbage collection: a replay makes no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
