"""The results of tests, and what tests of every kind are given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.offline.testing.files import RuleFile
from tollkeeper.engine.offline.testing.streams import (
    EventLine,
    StreamLine,
    read_event_line,
    read_payment_line,
    read_stream,
)
from tollkeeper.engine.programs.compile.explain import (
    Inputs,
    RuleExplanation,
    ScorecardExplanation,
    explain_rule,
    explain_scorecard,
    scope_of,
)
from tollkeeper.engine.programs.compile.interpreter import EvaluationScope, evaluate
from tollkeeper.grammar import program as p
from tollkeeper.grammar.walk import parts


@dataclass(frozen=True, slots=True)
class Failure:
    """The expected and the actual result, and the reasons, one a line."""

    line: int
    expected: str
    came_out: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        lines = (f"expected  {self.expected}", f"came out  {self.came_out}", *self.reasons)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Ran:
    """A rule or scorecard as it ran, with a test's given lets, and its inputs."""

    file: RuleFile
    program: p.Rule | p.Scorecard
    inputs: Inputs

    @property
    def scope(self) -> EvaluationScope:
        """The scope in which the program's expressions have their values."""
        return scope_of(self.program, self.inputs, full_vocabulary())


@dataclass(frozen=True, slots=True)
class RanEvent:
    """An event type whose monitors were evaluated, with the scope of the evaluation."""

    file: RuleFile
    program: p.EventType
    scope: EvaluationScope


@dataclass(frozen=True, slots=True)
class UnmetExpectation:
    """The expectations of a test that were not met, and the run."""

    failures: tuple[Failure, ...]
    ran: Ran | RanEvent


class BlockError(Exception):
    """A test that can't be run: a missing file, an entry that its list does not accept."""


class DisagreementError(AssertionError):
    """The compiled program and the interpreter decide differently: a fault of ours."""


@dataclass(frozen=True, slots=True)
class GivenFiles:
    payment: Payment | None
    event: EventLine | None
    history: tuple[StreamLine, ...]


def given_files(file: RuleFile, test: p.Test) -> GivenFiles:
    """Read the files that the test refers to. Raises `StreamError`, `BlockError`."""
    payment: Payment | None = None
    event: EventLine | None = None
    history: list[StreamLine] = []
    for each in test.given:
        if isinstance(each, p.GivenFile):
            if file.folder is None:
                raise BlockError(f"it takes `{each.path}`, and no file came with the text")
            path = file.folder / each.path
            match each.kind:
                case "payment":
                    payment = read_payment_line(path)
                case "event":
                    event = read_event_line(path)
                case "history":
                    history += read_stream(path)
    return GivenFiles(payment, event, tuple(history))


def expected_histories(test: p.Test) -> Iterator[p.History]:
    """The aggregates over history that only the test's expectations read."""
    for each in test.expected:
        if isinstance(each, p.ExpectValue):
            yield from (part for part in parts(each.value) if isinstance(part, p.History))


def explained_rule(ran: Ran) -> RuleExplanation:
    assert isinstance(ran.program, p.Rule)
    return explain_rule(ran.program, ran.file.texts, ran.inputs, full_vocabulary())


def explained_scorecard(ran: Ran) -> ScorecardExplanation:
    assert isinstance(ran.program, p.Scorecard)
    return explain_scorecard(ran.program, ran.file.texts, ran.inputs, full_vocabulary())


def first_met(rule: p.Rule, scope: EvaluationScope) -> str | None:
    """The condition that decides by the interpreter, None if none is met."""
    met = (each.name for each in rule.conditions if evaluate(each.when, scope) is True)
    return next(met, None)


def agree(meant: object, decided: object) -> None:
    """Raise `DisagreementError` unless interpreter and compiled program agree."""
    if meant != decided:
        raise DisagreementError(f"the interpreter gives {meant}, the compiled program {decided}")
