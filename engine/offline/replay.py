"""The one replay: takes a history in the order in which it happened.

Tests, cases, fits and backtests pass their own history, and functions for what to do at each step.
All of them count in the windows of live traffic.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.velocity.contract import Observation, Read, Record, SeriesPlan, State
from tollkeeper.engine.velocity.windows import Windows

TEST_ACCOUNT = 1
"""The account number in a replay's windows, which have only one."""

T = TypeVar("T")


class OfKind(Protocol):
    """Anything with a `Kind`, like the journal's entries."""

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
    """The results of the functions for new payments, updates, events and labels, other than None.

    A history may depend on earlier results: each item is taken only after the former's result was
    yielded.
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
    """A new payment; `origin` is its item in the history."""

    record: Record
    origin: Any
    kind: ClassVar[int] = Kind.PAYMENT


@dataclass(frozen=True, slots=True)
class ReplayedUpdate:
    """An update or a label that arrives at `arrived` (µs); `amend` gives the payment's new state.

    `amend` gets None for an unknown payment.
    """

    id: str
    arrived: int
    amend: Callable[[State | None], State]
    origin: Any
    kind: ClassVar[int] = Kind.UPDATE


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event, and the reads to make at its arrival."""

    record: Record
    origin: Any
    reads: Sequence[Read] = ()
    kind: ClassVar[int] = Kind.EVENT


Happening: TypeAlias = ReplayedCreation | ReplayedUpdate | Occurrence


class ReplayStep(NamedTuple):
    """The result of a happening."""

    happening: Happening
    observed: Observation
    decision: Decision | None = None


Judge: TypeAlias = Callable[
    [Windows, ReplayedCreation], Coroutine[Any, Any, tuple[Observation, Decision | None]]
]
"""Counts a new payment in windows, and decides it where a decision is wanted."""


def replay_live(
    history: Iterable[Happening], windows: Windows, judge: Judge
) -> Iterator[ReplayStep]:
    """Count each happening in `windows`, as live traffic is counted; yields a step for each."""
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


def empty_windows(plans: Sequence[SeriesPlan]) -> Windows:
    """Empty windows in memory for these series, without a cap."""
    windows = Windows(cap=sys.maxsize, total_cap=sys.maxsize)
    finish(windows.seal(finish(windows.add(TEST_ACCOUNT, plans))))
    return windows


def finish(verb: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine of windows in memory, which never waits."""
    try:
        verb.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("a verb of windows in memory waited")
