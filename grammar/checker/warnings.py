"""Collect a file's warnings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.checker.absent import absent
from tollkeeper.grammar.checker.characters import odd_characters
from tollkeeper.grammar.checker.comparisons import always_the_same
from tollkeeper.grammar.checker.counts_itself import counts_itself
from tollkeeper.grammar.checker.currencies import compared_amounts, of_lets, summed_amounts
from tollkeeper.grammar.checker.first_seen import FIRST_SEEN, first_seen
from tollkeeper.grammar.checker.keys import odd_keys
from tollkeeper.grammar.checker.missing import Missing, is_negation
from tollkeeper.grammar.checker.never_sent import never_sent
from tollkeeper.grammar.checker.reachability import contradictions, empty_filters, unreachable
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.checker.truth import Subjects
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.walk import compounds, statements

MAX_WARNINGS: Final = 200


def warnings(work: Work, file: s.File, program: p.Program | None) -> Iterator[Diagnostic]:
    """Return a file's warnings; past the bound, one that says so."""
    found = _all(work, file, program)
    yield from islice(found, MAX_WARNINGS)
    for further in islice(found, 1):
        yield say.too_many_warnings(further.span, MAX_WARNINGS)


def _all(work: Work, file: s.File, program: p.Program | None) -> Iterator[Diagnostic]:
    """All warnings; those that need the program come only if the file has no errors."""
    yield from odd_characters(file, work.source)
    if program is None:
        return
    if not work.lost:
        yield from _unused_names(work, file)
    numbers = work.numbers
    subjects = Subjects(program.lets, numbers, work.vocabulary)
    missing = Missing(work.vocabulary, program.lets, numbers)
    money = of_lets(program.lets)
    lets = [let.value for let in program.lets if let.source is None]
    conditions = list(_conditions(program))
    asks_of_the_first = any(
        isinstance(part, p.History) and part.function in FIRST_SEEN
        for root in (*(let.value for let in program.lets), *conditions)
        for part in compounds(root)
    )
    for root in (*lets, *conditions):
        inner = list(compounds(root))
        yield from always_the_same(work, inner, numbers)
        yield from summed_amounts(inner, money)
        yield from counts_itself(work, inner, program.lets, numbers)
        yield from never_sent(work, inner, program.lets)
        yield from odd_keys(work, inner, numbers, is_rule=file.kind != "definitions")
        yield from absent(work, inner, program.lets, missing.needed)
        if asks_of_the_first:
            yield from first_seen(work, root, program.lets, missing, numbers)
        yield from empty_filters(inner, subjects)
        if any(map(is_negation, inner)):
            for negation, value in missing.negations(root):
                yield _of_negation(work, negation, value)
    yield from compared_amounts(conditions, money, program)
    yield from _contradictions(file, program, subjects)


def _of_negation(work: Work, negation: p.Expression, value: p.Expression) -> Diagnostic:
    name, written = work.text(value.span), work.text(negation.span)
    if isinstance(negation, p.Not):
        return say.missing_under_not(negation.span, name, written)
    sign = "!=" if isinstance(negation, p.Compare) else "not in"
    return say.negation_of_missing(negation.span, name, sign, written)


def _conditions(program: p.Program) -> Iterator[p.Expression]:
    if isinstance(program, p.EventType):
        yield from (monitor.when for monitor in program.monitors)
        yield from (label.when for label in program.labels)
    else:
        yield from statements(program)


def _contradictions(file: s.File, program: p.Program, subjects: Subjects) -> Iterator[Diagnostic]:
    named = (s.Condition, s.Signal, s.Monitor)
    spans = {item.name.text: item.name.span for item in file.items if isinstance(item, named)}
    match program:
        case p.Rule():
            yield from unreachable(program, spans, subjects)
        case p.Scorecard() | p.EventType():
            yield from contradictions(program, spans, subjects)
        case p.Definitions():
            pass


def _unused_names(work: Work, file: s.File) -> Iterator[Diagnostic]:
    if file.kind == "definitions":
        return
    for item in file.items:
        match item:
            case s.Let() if item.name.text not in work.names_read:
                yield say.unused_let(item.name.span, item.name.text, _line_of(work, item))
            case s.ListDeclaration() | s.TableDeclaration() if (
                f"@{item.name.text}" not in work.names_read
            ):
                yield say.unused_list(item.name.span, item.name.text, _line_of(work, item))
            case s.Use() if not work.names_read & _names_of(work, item.name.text):
                yield say.unused_definitions(item.name.span, item.name.text, _line_of(work, item))
            case _:
                pass


def _line_of(work: Work, item: s.Item) -> s.Span:
    """Return an item's span with the white space around it, so that removing it leaves no empty
    lines.
    """
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
    """Return the names that a definitions file declares."""
    taken = work.known.definitions[definitions]
    if taken is None:
        return set()
    return {
        *(let.name for let in taken.lets),
        *(f"@{use.name}" for use in taken.lists),
        *(f"@{table.name}" for table in taken.tables),
    }
