"""Check a file: its declarations first, then each statement; all errors in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.checker import declarations, events, scorecards, test_blocks
from tollkeeper.grammar.checker.cost import too_costly
from tollkeeper.grammar.checker.expressions import condition
from tollkeeper.grammar.checker.scope import KnownNames, Scope, TooManyError, Work
from tollkeeper.grammar.checker.warnings import warnings
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import BUILT_IN_EVENT
from tollkeeper.grammar.vocabulary import Vocabulary
from tollkeeper.grammar.walk import compounds


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The program, None if there is an error; and all diagnostics, by place."""

    program: p.Program | None
    diagnostics: tuple[Diagnostic, ...]


def check(
    file: s.File,
    text: str,
    vocabulary: Vocabulary,
    known: KnownNames,
    lost: frozenset[str] = frozenset(),
) -> CheckOutcome:
    """Check names, types, ranges and reachability of a parsed file (docs/language.md).

    `lost` are the names declared by items with syntax errors: their uses are not reported.
    """
    declared = frozenset(item.name.text for item in file.items if isinstance(item, s.Let))
    header_end = (file.title or file.name).span.end
    work = Work(text, vocabulary, known, None, lost, header_end, declared=declared)
    # Node ids ascend: the file is numbered after all its parts, and the comments after the file.
    work.next_id = 1 + max(node.id for node in (file, *file.comments))
    program: p.Program | None = None
    with suppress(TooManyError):
        program = _program(work, file)
    if program is not None and not _has_error(work):
        work.found.extend(too_costly(work, program))
    if _has_error(work):
        program = None
    work.found.extend(warnings(work, file, program))
    return CheckOutcome(program, tuple(sorted(work.found, key=lambda each: each.span)))


def _has_error(work: Work) -> bool:
    return any(found.severity == "error" for found in work.found)


def _program(work: Work, file: s.File) -> p.Program:
    if file.kind == "event":
        work.event = file.name.text
        if file.name.text != BUILT_IN_EVENT:
            work.fields = events.own_fields(work, _items_of_kind(file, s.Field))
    _items(work, file)
    program = _PROGRAMS[file.kind](work, file)
    tests = test_blocks.tests(work, file)
    if isinstance(program, p.Definitions):
        return program
    # A test's expectation may be the first to read a let of definitions.
    return replace(program, tests=tests, lets=tuple(work.lets))


def _items_of_kind(file: s.File, kind: type[Any]) -> list[Any]:
    return [item for item in file.items if isinstance(item, kind)]


def _items(work: Work, file: s.File) -> None:
    """Check declarations and lets in the order written; statements follow later."""
    scope = Scope(score=file.kind in ("rule", "definitions"))
    for item in file.items:
        match item:
            case s.Use():
                declarations.use(work, item)
            case s.ListDeclaration():
                declarations.list_declaration(work, item)
            case s.TableDeclaration():
                declarations.table_declaration(work, item)
            case s.Let():
                declarations.let(work, item, scope)
            case s.Metric():
                events.metric(work, item)
            case _:
                pass


def title_of(item: Any) -> str | None:
    return None if item.title is None else item.title.value


def unique(work: Work, items: Iterable[Any]) -> None:
    """Report statements that repeat the name of an earlier one."""
    seen: set[str] = set()
    for item in items:
        if item.name.text in seen:
            work.report(say.duplicate(item.name.span, item.name.text))
        seen.add(item.name.text)


def _rule(work: Work, file: s.File) -> p.Rule:
    unique(work, _items_of_kind(file, s.Condition))
    found = []
    for item in _items_of_kind(file, s.Condition):
        when = condition(work, Scope(), item.when)
        if when is not None:
            found.append(
                p.Condition(
                    item.id, item.span, item.name.text, title_of(item), when, item.action.text
                )
            )
    closing = _items_of_kind(file, s.Otherwise)
    otherwise = closing[0].action.text if closing else "default"
    return p.Rule(
        **_common_members(work, file),
        conditions=tuple(found),
        otherwise=None if otherwise == "default" else otherwise,  # type: ignore[arg-type]
        histories=_histories(work, [each.when for each in found]),
        tests=(),
        promises=tuple(_promises(work, _items_of_kind(file, s.Must))),
    )


def _promises(work: Work, items: Iterable[s.Must]) -> Iterator[p.Promise]:
    for item in items:
        when = condition(work, Scope(), item.when)
        if when is not None:
            actions = tuple(action.text for action in item.actions)
            yield p.Promise(item.span, title_of(item), when, item.never, actions)  # type: ignore[arg-type]


def _scorecard(work: Work, file: s.File) -> p.Scorecard:
    unique(work, _items_of_kind(file, s.Signal))
    baseline = scorecards.baseline(work, file.name, _items_of_kind(file, s.Baseline))
    found = scorecards.signals(work, _items_of_kind(file, s.Signal))
    read = [part for each in found for part in (each.when, each.adds) if part is not None]
    return p.Scorecard(
        **_common_members(work, file),
        baseline=baseline,
        signals=found,
        histories=_histories(work, read),
        tests=(),
    )


def _event(work: Work, file: s.File) -> p.EventType:
    unique(work, _items_of_kind(file, s.Monitor))
    found = [events.monitor(work, item) for item in _items_of_kind(file, s.Monitor)]
    monitors = tuple(each for each in found if each is not None)
    labels = [events.label(work, item) for item in _items_of_kind(file, s.LabelStatement)]
    valid_labels = tuple(each for each in labels if each is not None)
    read = [part for each in monitors for part in (each.when, *each.by)]
    read += [part for each in valid_labels for part in (each.payment, each.when)]
    return p.EventType(
        **_common_members(work, file),
        fields=() if work.fields is None else tuple(work.fields.values()),
        metrics=events.metrics(work, _items_of_kind(file, s.Metric)),
        monitors=monitors,
        histories=_histories(work, read),
        tests=(),
        labels=valid_labels,
    )


def _definitions(work: Work, file: s.File) -> p.Definitions:
    return p.Definitions(**_common_members(work, file))


_PROGRAMS: Mapping[str, Callable[[Work, s.File], p.Program]] = {
    "rule": _rule,
    "scorecard": _scorecard,
    "event": _event,
    "definitions": _definitions,
}


def _common_members(work: Work, file: s.File) -> dict[str, Any]:
    """Return the fields that every kind of program has: what it declares, and what it reads of
    definitions.
    """
    declared = {item.name.text for item in file.items if isinstance(item, s.ListDeclaration)}
    declared |= {item.name.text for item in file.items if isinstance(item, s.TableDeclaration)}
    declared |= {name.removeprefix("@") for name in work.names_read if name.startswith("@")}
    return {
        "name": file.name.text,
        "title": title_of(file),
        "lists": tuple(each for each in work.lists.values() if each and each.name in declared),
        "tables": tuple(each for each in work.tables.values() if each and each.name in declared),
        "lets": tuple(work.lets),
    }


def _histories(work: Work, read: Iterable[p.Expression]) -> tuple[p.History, ...]:
    """Return each aggregate over history once, those of lets first, then those of `read`."""
    found: dict[int, p.History] = {}
    for root in (*(let.value for let in work.lets), *read):
        for part in compounds(root):
            if isinstance(part, p.History):
                found.setdefault(work.numbers.of(part), part)
    return tuple(found.values())
