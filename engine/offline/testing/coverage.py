"""Coverage: which conditions, signals and monitors were ever true and ever false in tests and
cases, and which operands ever decided.

An operand of an `and` decides when it alone makes it false, one of an `or` when it alone makes it
true. As in live traffic, conditions after the first true one are not evaluated. A let whose value
is given by a test does not count for its operands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from tollkeeper.engine.offline.testing.files import RuleFile
from tollkeeper.engine.offline.testing.outcomes import Ran, RanEvent
from tollkeeper.engine.programs.compile.interpreter import EvaluationScope, evaluate
from tollkeeper.grammar import program as p
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.walk import children

Seen: TypeAlias = Literal["met", "refused", "mattered"]


class Mark(NamedTuple):
    """Something that happened to the part `id` of a file."""

    path: Path
    id: int
    seen: Seen


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that should happen; `name` is the part's, `span` the text to highlight."""

    mark: Mark
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """`name` is the file's name for people."""

    name: str
    file: RuleFile
    goals: tuple[Goal, ...]
    missed: tuple[Goal, ...]


def marks(ran: Ran | RanEvent) -> Iterator[Mark]:
    """The marks that one payment or event leaves."""
    path, program, scope = ran.file.path, ran.program, ran.scope
    for let in program.lets:
        if let.source is None:
            yield from _operands_seen(path, let.value, scope)
    for stated in _statements(program):
        is_met = evaluate(stated.when, scope) is True
        yield Mark(path, stated.id, "met" if is_met else "refused")
        yield from _operands_seen(path, stated.when, scope)
        if is_met and isinstance(program, p.Rule):
            return


def coverage(name: str, file: RuleFile, seen: Collection[Mark]) -> FileCoverage:
    """A file's goals, and those of them that were missed."""
    goals = tuple(_goals(file))
    missed = tuple(goal for goal in goals if goal.mark not in seen)
    return FileCoverage(name, file, goals, missed)


def percent(covered: Collection[FileCoverage]) -> float:
    """The percentage of goals that were reached, 100 when there are none."""
    goals = sum(len(each.goals) for each in covered)
    missed = sum(len(each.missed) for each in covered)
    return 100.0 if goals == 0 else 100.0 * (goals - missed) / goals


@dataclass(frozen=True, slots=True)
class _NamedItem:
    """A condition, a monitor, or a signal that has a `when`."""

    id: int
    name: str
    span: Span
    when: p.Expression


def _statements(program: p.Program) -> list[_NamedItem]:
    match program:
        case p.Rule():
            return [_NamedItem(c.id, c.name, c.span, c.when) for c in program.conditions]
        case p.Scorecard():
            return [
                _NamedItem(s.id, s.name, s.span, s.when)
                for s in program.signals
                if s.when is not None
            ]
        case p.EventType():
            return [_NamedItem(m.id, m.name, m.span, m.when) for m in program.monitors]
        case p.Definitions():
            return []


def _goals(file: RuleFile) -> Iterator[Goal]:
    program = file.program
    for let in program.lets:
        if let.source is None:
            for operand in _operands(let.value):
                yield Goal(Mark(file.path, operand.id, "mattered"), let.name, operand.span)
    for stated in _statements(program):
        for seen in ("met", "refused"):
            yield Goal(Mark(file.path, stated.id, seen), stated.name, _head(file, stated))
        for operand in _operands(stated.when):
            yield Goal(Mark(file.path, operand.id, "mattered"), stated.name, operand.span)


def _head(file: RuleFile, stated: _NamedItem) -> Span:
    """`condition NAME`, as written."""
    start = stated.span.start
    keyword, *_ = file.text[start : stated.span.end].split(maxsplit=1)
    end = file.text.index(stated.name, start + len(keyword)) + len(stated.name)
    return Span(start, end)


def _join_parts(node: p.Expression) -> Iterator[p.And | p.Or]:
    """Every `and` and `or` outside aggregates."""
    if isinstance(node, p.And | p.Or):
        yield node
    if not isinstance(node, p.Fold | p.History):
        for each in children(node):
            yield from _join_parts(each)


def _operands(node: p.Expression) -> Iterator[p.Expression]:
    return (operand for joined in _join_parts(node) for operand in joined.operands)


def _operands_seen(path: Path, node: p.Expression, scope: EvaluationScope) -> Iterator[Mark]:
    for joined in _join_parts(node):
        true = [evaluate(operand, scope) is True for operand in joined.operands]
        wanted = isinstance(joined, p.Or)
        if true.count(wanted) == 1:
            yield Mark(path, joined.operands[true.index(wanted)].id, "mattered")
