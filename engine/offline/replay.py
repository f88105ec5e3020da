"""The one replay: what happened, counted and decided in the order in which it happened.

Tests, cases, fits and backtests give their own history, and their own judge of a new payment. The
windows are those of live traffic.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.velocity.contract import (
    BEFORE_ALL,
    Observation,
    Read,
    Record,
    SeriesPlan,
    State,
    Windows,
)
from tollkeeper.engine.velocity.memory import MemoryWindows

TEST_ACCOUNT = 1
"""The one account that a replay's windows have."""


class ReplayedCreation(NamedTuple):
    """A new payment; `origin` is what the history holds of it."""

    record: Record
    origin: Any


class ReplayedUpdate(NamedTuple):
    """An update that arrives at `arrived` (µs): from what is known of its payment to what is then.

    `amend` is given None for a payment that is not known, and gives None where nothing is counted.
    """

    id: str
    arrived: int
    amend: Callable[[State | None], State | None]
    origin: Any


class Occurrence(NamedTuple):
    """An event, and what is read as it arrives."""

    record: Record
    origin: Any
    reads: Sequence[Read] = ()


Happening: TypeAlias = ReplayedCreation | ReplayedUpdate | Occurrence


class ReplayStep(NamedTuple):
    """What came of a happening; `observed` is None where nothing was counted."""

    happening: Happening
    observed: Observation | None
    decision: Decision | None = None


Judge: TypeAlias = Callable[
    [Windows, ReplayedCreation], Awaitable[tuple[Observation | None, Decision | None]]
]
"""Counts a new payment in windows, and decides about it where something is to be decided."""


async def replay(
    history: Iterable[Happening], windows: Windows, judge: Judge, reach: int | None = None
) -> AsyncIterator[ReplayStep]:
    """A step for each happening, as it is reached: a history may read what steps before it gave.

    Updates are counted that arrive up to `reach` (µs) after their payment, with None all of them.
    """
    known = _Known(reach)
    for happening in history:
        if isinstance(happening, ReplayedCreation):
            observed, decision = await judge(windows, happening)
            if observed is not None:
                known.put(observed.record)
            yield ReplayStep(happening, observed, decision)
        elif isinstance(happening, ReplayedUpdate):
            before = known.find(happening.id)
            after = happening.amend(before)
            observed = None
            if before is not None and after is not None:
                time, arrived = before.payment.timestamp, happening.arrived
                record = Record(TEST_ACCOUNT, happening.id, time, arrived, after, before)
                observed = await windows.observe(record, ())
                known.put(record)
            yield ReplayStep(happening, observed)
        else:
            yield ReplayStep(happening, await windows.observe(happening.record, happening.reads))


async def empty_windows(plans: Sequence[SeriesPlan]) -> Windows:
    """Windows without a cap that count these series from now on."""
    windows = MemoryWindows(cap=sys.maxsize)
    await windows.seal(await windows.add(TEST_ACCOUNT, plans))
    return windows


class _Known:
    """What is known of payments that arrived at most `reach` (µs) ago, None for all of them.

    They stand in two generations; the older one goes when the younger is as old as the reach.
    """

    def __init__(self, reach: int | None) -> None:
        self._reach = reach
        self._older: dict[str, State] = {}
        self._younger: dict[str, State] = {}
        self._until = BEFORE_ALL

    def put(self, record: Record) -> None:
        if self._reach is not None and record.arrived >= self._until:
            self._older, self._younger = self._younger, {}
            self._until = record.arrived + self._reach
        self._younger[record.id] = record.state

    def find(self, id_: str) -> State | None:
        return self._younger.get(id_) or self._older.get(id_)
