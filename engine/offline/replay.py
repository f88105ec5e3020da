"""The one replay: what happened, taken in the order in which it happened.

Tests, cases, fits and backtests give their own history, and what is to be done with a new payment.
All but a backtest count in the windows of live traffic (`replay_live`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.velocity.contract import LATE, Observation, Read, Record, SeriesPlan, State
from tollkeeper.engine.velocity.windows import Windows

TEST_ACCOUNT = 1
"""The one account that a replay's windows have."""

T = TypeVar("T")


class OfKind(Protocol):
    """Whatever says which `Kind` of happening it is, as the journal's entries do."""

    @property
    def kind(self) -> int: ...


H = TypeVar("H", bound=OfKind)


def replay(
    history: Iterable[H],
    create: Callable[[H], T | None],
    update: Callable[[H], T | None],
    occur: Callable[[H], T | None],
    tell: Callable[[H], T | None],
) -> Iterator[T]:
    """What came of each new payment, update, event and label, where something did.

    A history may read what came of those before: each is taken only once that was given.
    """
    payment, changed, label = int(Kind.PAYMENT), int(Kind.UPDATE), int(Kind.LABEL)
    for happening in history:
        kind = happening.kind
        if kind == payment:
            step = create(happening)
        elif kind == changed:
            step = update(happening)
        elif kind == label:
            step = tell(happening)
        else:
            step = occur(happening)
        if step is not None:
            yield step


@dataclass(frozen=True, slots=True)
class ReplayedCreation:
    """A new payment; `origin` is what the history holds of it."""

    record: Record
    origin: Any
    kind: ClassVar[int] = Kind.PAYMENT


@dataclass(frozen=True, slots=True)
class ReplayedUpdate:
    """An update, or a label, that arrives at `arrived` (µs): from what is known of its payment to
    what is then.

    `amend` is given None for a payment that is not known.
    """

    id: str
    arrived: int
    amend: Callable[[State | None], State]
    origin: Any
    kind: ClassVar[int] = Kind.UPDATE


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event, and what is read as it arrives."""

    record: Record
    origin: Any
    reads: Sequence[Read] = ()
    kind: ClassVar[int] = Kind.EVENT


Happening: TypeAlias = ReplayedCreation | ReplayedUpdate | Occurrence


class ReplayStep(NamedTuple):
    """What came of a happening."""

    happening: Happening
    observed: Observation
    decision: Decision | None = None


Judge: TypeAlias = Callable[
    [Windows, ReplayedCreation], Coroutine[Any, Any, tuple[Observation, Decision | None]]
]
"""Counts a new payment in windows, and decides about it where something is to be decided."""


def replay_live(
    history: Iterable[Happening], windows: Windows, judge: Judge
) -> Iterator[ReplayStep]:
    """A step for each happening, counted by `windows` in memory, as live traffic is."""
    known: dict[str, State] = {}

    def create(happening: Any) -> ReplayStep:
        observed, decision = finish(judge(windows, happening))
        known[observed.record.id] = observed.record.state
        return ReplayStep(happening, observed, decision)

    def update(happening: Any) -> ReplayStep:
        before = known.get(happening.id)
        after = happening.amend(before)
        time, arrived = after.payment.timestamp, happening.arrived
        record = Record(TEST_ACCOUNT, happening.id, time, arrived, after, before)
        known[happening.id] = after
        return ReplayStep(happening, finish(windows.observe(record, ())))

    def occur(happening: Any) -> ReplayStep:
        return ReplayStep(happening, finish(windows.observe(happening.record, happening.reads)))

    return replay(history, create, update, occur, update)


def empty_windows(plans: Sequence[SeriesPlan], late: int = LATE) -> Windows:
    """Windows in memory, without a cap, that count these series from now on.

    `late` (µs) is how far behind the latest arrival a record's event time may be.
    """
    windows = Windows(cap=sys.maxsize, total_cap=sys.maxsize, late=late)
    finish(windows.seal(finish(windows.add(TEST_ACCOUNT, plans))))
    return windows


def finish(verb: Coroutine[Any, Any, T]) -> T:
    """What a verb of windows in memory gives; none of them ever waits."""
    try:
        verb.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("a verb of windows in memory waited")
