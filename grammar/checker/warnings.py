"""Findings that don't stop a file."""

from __future__ import annotations

from collections.abc import Iterator

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.checker.characters import odd_characters
from tollkeeper.grammar.checker.comparisons import always_the_same
from tollkeeper.grammar.checker.currencies import compared_amounts, of_lets, summed_amounts
from tollkeeper.grammar.checker.missing import Missing
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.checker.reachability import contradictions, unreachable
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.checker.walk import parts
from tollkeeper.grammar.diagnostics import Diagnostic


def warnings(work: Work, file: s.File, program: p.Program | None) -> Iterator[Diagnostic]:
    """All warnings of a file; those that need its whole meaning only when it has no error."""
    yield from odd_characters(file, work.source)
    if program is None:
        return
    if not work.lost:
        yield from _unused(work, file)
    numbers = Numbers(program.lets)
    missing = Missing(work.vocabulary, program.lets, numbers)
    money = of_lets(program.lets)
    lets = [let.value for let in program.lets if let.source is None]
    conditions = list(_conditions(program))
    for root in (*lets, *conditions):
        inner = list(parts(root))
        yield from always_the_same(inner, numbers)
        yield from summed_amounts(inner, money)
        if any(isinstance(part, p.Not) for part in inner):
            for negation, value in missing.negations(root):
                yield say.missing_under_not(
                    negation.span, work.text(value.span), work.text(negation.span)
                )
    for root in conditions:
        yield from compared_amounts(root, money)
    yield from _contradictions(file, program, numbers)


def _conditions(program: p.Program) -> Iterator[p.Expression]:
    match program:
        case p.Rule():
            yield from (condition.when for condition in program.conditions)
        case p.Scorecard():
            for signal in program.signals:
                yield signal.adds
                if signal.when is not None:
                    yield signal.when
        case p.EventType():
            yield from (monitor.when for monitor in program.monitors)
        case p.Definitions():
            pass


def _contradictions(file: s.File, program: p.Program, numbers: Numbers) -> Iterator[Diagnostic]:
    named = (s.Condition, s.Signal, s.Monitor)
    spans = {item.name.text: item.name.span for item in file.items if isinstance(item, named)}
    match program:
        case p.Rule():
            yield from unreachable(program, spans, numbers)
        case p.Scorecard() | p.EventType():
            yield from contradictions(program, spans, numbers)
        case p.Definitions():
            pass


def _unused(work: Work, file: s.File) -> Iterator[Diagnostic]:
    if file.kind == "definitions":
        return
    for item in file.items:
        match item:
            case s.Let() if item.name.text not in work.used:
                yield say.unused_let(item.name.span, item.name.text, _line_of(work, item))
            case s.ListDeclaration() | s.TableDeclaration() if (
                f"@{item.name.text}" not in work.used
            ):
                yield say.unused_list(item.name.span, item.name.text, _line_of(work, item))
            case s.Use() if not work.used & _names_of(work, item.name.text):
                yield say.unused_definitions(item.name.span, item.name.text, _line_of(work, item))
            case _:
                pass


def _line_of(work: Work, item: s.Item) -> s.Span:
    """An item with the white space around it that would be left on lines of its own."""
    start, end = item.span
    while work.source[start - 1 : start] in (" ", "\t"):
        start -= 1
    after = end
    while work.source[after : after + 1] in (" ", "\t", "\r"):
        after += 1
    is_alone = work.source[start - 1 : start] in ("", "\n")
    return (
        s.Span(start, after + 1)
        if is_alone and work.source[after : after + 1] == "\n"
        else item.span
    )


def _names_of(work: Work, definitions: str) -> set[str]:
    """The names that a definitions file offers."""
    taken = work.known.definitions[definitions]
    if taken is None:
        return set()
    return {
        *(let.name for let in taken.lets),
        *(f"@{use.name}" for use in taken.lists),
        *(f"@{table.name}" for table in taken.tables),
    }
