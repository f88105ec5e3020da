"""Columns for the aggregates that decisions read: one for each window, whichever version read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.programs.active import SCORECARD_NAME
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.explain import Sources, written_histories
from tollkeeper.engine.registry.changes import (
    ProgramKind,
    RecordedChange,
    ScorecardShipped,
    VersionStored,
)
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.velocity.contract import Window
from tollkeeper.engine.velocity.plan import plan
from tollkeeper.grammar.program import Rule, Scorecard
from tollkeeper.grammar.types import Type

_PREFIX = "read_"
_NAME_BYTES = 6


@dataclass(frozen=True, slots=True)
class WindowColumn:
    """The values of one window; `text` is the aggregate as an author wrote it."""

    name: str
    text: str
    type: Type


@dataclass(frozen=True, slots=True)
class ReadingVersion:
    """A version that decides, from sequence number `begins` on, and the columns of its reads.

    Number 0 is the shipped scorecard; releases may ship different ones.
    """

    kind: ProgramKind
    name: str
    number: int
    begins: int
    columns: tuple[WindowColumn, ...]


def window_columns(program: Rule | Scorecard, sources: Sources) -> tuple[WindowColumn, ...]:
    """A program's columns, one for each of its histories in order."""
    digests = Digests(program.lets)
    windows = plan(program.histories, program.lets, _not_compiled, digests.of).windows
    texts = written_histories(program, sources)
    return tuple(
        WindowColumn(_name(window), text, history.type)
        for window, text, history in zip(windows, texts, program.histories, strict=True)
    )


def _not_compiled(_series: Any) -> Any:
    return None


def _name(window: Window) -> str:
    description = f"{window.series} {window.function} {window.over} {window.earlier}"
    return _PREFIX + blake2b(description.encode(), digest_size=_NAME_BYTES).hexdigest()


def reading_versions(changes: Iterable[RecordedChange]) -> tuple[ReadingVersion, ...]:
    """The versions of rules and scorecards in an account's changes, in their order."""
    found = []
    for each in changes:
        match each.change:
            case VersionStored(kind="rule" | "scorecard") as stored:
                number, uses = stored.number, stored.uses
            case ScorecardShipped() as stored:
                number, uses = 0, {}
            case _:
                continue
        kind: ProgramKind = stored.kind if isinstance(stored, VersionStored) else "scorecard"
        program = decode_program(stored.program)
        assert isinstance(program, Rule | Scorecard)
        sources: dict[str | None, str] = {None: stored.text}
        columns = window_columns(program, sources | dict(uses.items()))
        found.append(ReadingVersion(kind, stored.name, number, each.sequence, columns))
    return tuple(found)


class ReadValues:
    """Finds the values that a decision read, by column."""

    def __init__(self, versions: Sequence[ReadingVersion]) -> None:
        self._rules = {
            (each.name, each.number): each.columns for each in versions if each.kind == "rule"
        }
        self._scorecards = {
            each.number: each.columns
            for each in versions
            if each.number and (each.kind, each.name) == ("scorecard", SCORECARD_NAME)
        }
        self._shipped = [(each.begins, each.columns) for each in versions if not each.number]

    def of(self, decision: Decision, sequence: int) -> dict[str, Any]:
        """The values by column, without windows that could not be exact."""
        found = {}
        for index, column in self._columns_of_reads(decision, sequence):
            if index not in decision.lost:
                found[column.name] = decision.reads[index]
        return found

    def lost(self, decision: Decision, sequence: int) -> list[str]:
        """The columns of the windows that could not be exact."""
        if not decision.lost:
            return []
        placed = self._columns_of_reads(decision, sequence)
        return [column.name for index, column in placed if index in decision.lost]

    def _columns_of_reads(
        self, decision: Decision, sequence: int
    ) -> list[tuple[int, WindowColumn]]:
        """The index of each read with its column: the scorecard's, then the rule's."""
        rule = decision.rule
        of_rule = () if rule is None else self._rules.get((rule.name, rule.version), ())
        split = len(decision.reads) - len(of_rule)
        of_score = self._of_scorecard(decision.scorecard, sequence)
        # With a score that was sent with the payment, no scorecard was evaluated.
        if len(of_score) != split:
            of_score = ()
        return [*enumerate(of_score), *enumerate(of_rule, split)] if split >= 0 else []

    def _of_scorecard(self, number: int, sequence: int) -> tuple[WindowColumn, ...]:
        if number:
            return self._scorecards.get(number, ())
        before = [columns for begins, columns in self._shipped if begins < sequence]
        return before[-1] if before else ()
