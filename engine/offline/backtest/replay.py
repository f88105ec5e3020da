"""A candidate taken through what happened, in the order in which it happened."""

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
from tollkeeper.engine.stored_records import ReadEvent
from tollkeeper.grammar.program import Value

HistoryBatches: TypeAlias = Iterable[list[Entry] | Situation]
"""Payments, updates and events in the order of the sequence, each new situation where it began."""


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """What happened, from a situation on; `total` is about how many entries that is.

    `begins` (µs) is when the first payment that is still kept arrived, None when there is none.
    """

    situation: Situation
    happened: HistoryBatches
    read_event: ReadEvent
    total: int
    begins: int | None


class ReplayedPayment(Struct, gc=False):
    """A payment that the candidate has a say in: what was decided, and what it would have got.

    `arrived` in µs, scores in hundredths; `values` are the aggregates that the candidate read,
    `environment` the lists and tables that it met.
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
    """The payment `id` got a final status; `entry` is what was known of it from then on."""

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

    What arrived before fills the windows, and so do events.
    """
    plan, situation = candidate.plan, history.situation
    facts_of, concerns, decide = plan.facts, candidate.concerns, candidate.decide
    decode_past, reads_decisions = candidate.decode_past, plan.reads_decisions
    windows = PlannedWindows(plan) if plan.series else None

    def entries() -> Iterator[Entry]:
        """The entries but for the situations, each of which is that of the entries behind it."""
        nonlocal situation
        for batch in history.happened:
            if isinstance(batch, Situation):
                situation = batch
            else:
                yield from batch

    def create(entry: Entry) -> ReplayedPayment | None:
        _, _, _, id_, arrived, _, _, outcome = entry
        facts = facts_of(entry)
        was = decode_past(outcome) if outcome and (arrived >= since or reads_decisions) else None
        if arrived < since:
            if windows is not None:
                windows.count(id_, facts, was, situation.environment)
            return None
        met = situation.environment
        values = () if windows is None else windows.read(id_, facts, was, met)
        if not concerns(facts, was, situation):
            return None
        now = decide(facts, was, values, situation)
        return ReplayedPayment(id_, arrived, facts, was, outcome_of(now), now.score, values, met)

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


@contextmanager
def without_cycles() -> Iterator[None]:
    """Nothing that a replay makes refers to itself, so looking for such garbage is put off."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
