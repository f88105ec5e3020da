"""Live traffic's windows for a backtest, fed with partly decoded payments."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.labels.label import LabelSource, Verdict, add_label, decode_label
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.backtest.plan import ReplayPlan
from tollkeeper.engine.offline.replay import TEST_ACCOUNT
from tollkeeper.engine.velocity.account import AccountWindows
from tollkeeper.engine.velocity.contract import (
    BEFORE_ALL,
    Read,
    Record,
    State,
    Window,
)
from tollkeeper.engine.velocity.first_seen import MemorySeenTimes
from tollkeeper.engine.velocity.series import FASTEST
from tollkeeper.grammar.program import Value


class PlannedWindows:
    """Counts payments, updates and events in the order of the sequence."""

    def __init__(self, plan: ReplayPlan) -> None:
        self._plan = plan
        self._reads_decisions = plan.reads_decisions
        self._windows = AccountWindows(TEST_ACCOUNT, sys.maxsize, plan.late, _seen_times, FASTEST)
        self._windows.seal(self._windows.begin(1, 0, plan.series))
        self._sequence = 0
        self._own = (plan.reading.plan.windows,) if plan.reading.plan.own else ()
        # Payments that the windows no longer reach are dropped, so that years of history fit in memory.
        self._known: dict[str, State] = {}
        self._said: defaultdict[str, dict[LabelSource, Verdict]] = defaultdict(dict)
        self._forgets_at = BEFORE_ALL
        # The latest arrival of an update that no window counts: lateness is judged by the latest
        # arrival of all.
        self._arrived = BEFORE_ALL

    def count(self, id_: str, facts: Any, decision: Any, environment: Environment) -> None:
        """Count a payment that the candidate does not decide, with its recorded decision."""
        self._observe(id_, State(facts, environment=environment), decision, (), ())

    def read(
        self, id_: str, facts: Any, decision: Any, environment: Environment
    ) -> Sequence[Value | None]:
        """Count a payment and return the aggregates that it reads; `decision` is its recorded one.

        `environment` is that of its arrival.
        """
        reads = () if self._own else self._plan.reading.reads(facts, environment)
        state = State(facts, environment=environment)
        return self._observe(id_, state, decision, reads, self._own)

    def update(self, entry: Entry) -> None:
        """Count a payment's update."""
        before, changing = self._known.get(entry.id), self._plan.changing
        if before is None or changing is None:
            return
        facts = self._plan.update(entry)
        # The update arrives now, not the payment.
        facts.arrived = before.payment.arrived
        if changing(facts) == changing(before.payment):
            self._arrived = max(self._arrived, entry.arrived)
            return
        state = self._known[entry.id] = replace(before, payment=facts)
        record = Record(TEST_ACCOUNT, entry.id, facts.timestamp, entry.arrived, state, before)
        self._count(record)

    def tell(self, entry: Entry) -> None:
        """Count a payment's label."""
        before = self._known.get(entry.id)
        if before is None:
            return
        label = add_label(self._said[entry.id], decode_label(entry.body))
        state = self._known[entry.id] = replace(before, label=label)
        time = before.payment.timestamp
        record = Record(TEST_ACCOUNT, entry.id, time, entry.arrived, state, before)
        self._count(record)

    def occur(self, event: Record) -> None:
        """Count an event."""
        self._count(replace(event, account=TEST_ACCOUNT))

    def _observe(
        self,
        id_: str,
        state: State,
        decision: Any,
        reads: Sequence[Read],
        own: Sequence[tuple[Window, ...]],
    ) -> tuple[Value | None, ...]:
        facts = state.payment
        arrived = max(facts.arrived, self._arrived)
        record = Record(TEST_ACCOUNT, id_, facts.timestamp, arrived, state)
        values = self._count(record, reads, own)
        if self._reads_decisions and decision is not None:
            state = replace(state, decision=decision)
            self._windows.settle(self._sequence, record, state)
        if self._plan.changing is not None or self._plan.reads_labels:
            self._remember(id_, arrived, state)
        return values

    def _count(
        self, record: Record, reads: Sequence[Read] = (), own: Sequence[tuple[Window, ...]] = ()
    ) -> tuple[Value | None, ...]:
        self._windows.require(reads, own)
        self._sequence += 1
        return self._windows.observe(self._sequence, record, reads, own)

    def _remember(self, id_: str, arrived: int, state: State) -> None:
        self._known[id_] = state
        reach = self._plan.reach
        if reach is None or arrived < self._forgets_at:
            return
        self._forgets_at, horizon = arrived + reach, arrived - reach
        gone = [id_ for id_, each in self._known.items() if each.payment.timestamp <= horizon]
        for id_ in gone:
            del self._known[id_]
            self._said.pop(id_, None)


def _seen_times(_account: int, _series: str) -> MemorySeenTimes:
    return MemorySeenTimes()
