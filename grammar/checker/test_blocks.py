"""Check test blocks: given values exist and fit, and what is expected can occur."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, Final, cast

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import literals, names
from tollkeeper.grammar.checker.expressions import condition, name_in
from tollkeeper.grammar.checker.membership import LIST_TYPES
from tollkeeper.grammar.checker.names import METADATA_NUMBER
from tollkeeper.grammar.checker.scope import Scope, Work
from tollkeeper.grammar.habit_errors import quoted_action
from tollkeeper.grammar.syntax_errors import unknown_action
from tollkeeper.grammar.words import kind_of

_SCALARS = (t.Boolean, t.Number, t.String, t.Ip, t.Instant, t.Duration)
_FILES: Final = frozenset({"payment", "history"})
_OUTCOMES: Final = ["allow", "challenge", "deny", "default"]
_TARGETS = (p.Fact, p.HeaderFact, p.EventFact, p.LetValue, p.Score)


def tests(work: Work, file: s.File) -> tuple[p.Test, ...]:
    """Return a file's tests; one with an error is reported and left out."""
    seen: set[str] = set()
    found = []
    for test in (item for item in file.items if isinstance(item, s.Test)):
        if test.title.value in seen:
            work.report(say.duplicate_test(test.title.span, test.title.value))
        seen.add(test.title.value)
        given = _check_all_given(work, test)
        expected = [_check_expected(work, file, each) for each in test.expect]
        found.append(
            p.Test(
                test.span,
                test.title.value,
                tuple(each for each in given if each is not None),
                tuple(each for each in expected if each is not None),
            )
        )
    return tuple(found)


def _check_all_given(work: Work, test: s.Test) -> list[p.Given | None]:
    """What a test gives, and errors at what it gives a second time."""
    found: list[p.Given | None] = []
    seen: set[Hashable] = set()
    for part in test.given:
        checked = list(_check_given(work, part))
        if isinstance(part, s.GivenValues):
            for written, each in zip(part.assignments, checked, strict=True):
                target = _identity(work, each)
                if target in seen:
                    span = written.target.span
                    work.report(say.given_twice(span, work.text(span)))
                if each is not None:
                    seen.add(target)
        found += checked
    return found


def _identity(work: Work, given: p.Given | None) -> Hashable:
    """What a value is given to, however it is written."""
    match given:
        case p.GivenValue(target=p.LetValue(index=index)):
            return "let", index
        case p.GivenValue(target=p.MetadataFact(key=key, inner=inner)):
            return "metadata", key, inner
        case p.GivenValue(target=target):
            return "value", work.numbers.of(target)
        case p.GivenList(list=name):
            return "list", name
        case p.GivenRow(table=table, key=key, column=column):
            return "row", table, key, column
        case _:
            return None


def _check_given(work: Work, given: s.GivenValues | s.GivenFile) -> Iterable[p.Given | None]:
    if isinstance(given, s.GivenFile):
        return [p.GivenFile(given.kind, given.path.value)]
    return [_check_assignment(work, each) for each in given.assignments]


def _check_assignment(work: Work, given: s.Assignment) -> p.Given | None:
    match given.target:
        case s.ListName(name=name):
            return _list(work, given, name)
        case s.Attribute(base=s.Subscript(base=s.ListName()) as row, name=column):
            return _cell(work, given, row, column)
        case s.Name(text=kind, span=span) if kind in _FILES and isinstance(given.value, s.Text):
            between = s.Span(span.end, given.value.span.start)
            work.report(say.file_with_equals(between, kind, work.text(given.value.span)))
            return None
        case _:
            return _value(work, given)


def _list(work: Work, given: s.Assignment, name: str) -> p.GivenList | None:
    if name not in work.lists:
        if not work.is_excused(name):
            span = given.target.span
            work.report(say.unknown_list(span, name, work.lists, "string", work.header_end))
        return None
    use = work.lists[name]
    if not isinstance(given.value, s.ListLiteral):
        work.report(say.given_list(given.value.span, name))
        return None
    if use is None:
        return None
    items = [_item(work, use, item) for item in given.value.items]
    return p.GivenList(name, tuple(item for item in items if item is not None))


def _item(work: Work, use: p.ListUse, item: s.Expression) -> p.Constant | None:
    if not literals.is_literal(item):
        work.report(say.list_item(item.span))
        return None
    if use.type == "ip" and isinstance(item, s.Text):
        return None if literals.network(work, item) is None else literals.read(work, item)
    return literals.read_as(work, item, LIST_TYPES[use.type], f"@{use.name}")


def _cell(
    work: Work, given: s.Assignment, row: s.Subscript, column: s.Identifier
) -> p.GivenRow | None:
    """Check `@table[key].column = value`: the key is an exact row's, or a network for a table by
    network.
    """
    assert isinstance(row.base, s.ListName)
    name, key = row.base.name, row.keys[0]
    table = work.tables.get(name)
    if table is None or column.text not in table.columns:
        # Reports a wrong name.
        _target(work, given)
        return None
    value = _fitting(work, given, table.columns[column.text])
    if len(row.keys) > 1:
        work.report(say.one_table_key(row.span, name))
    elif not isinstance(key, s.Text):
        work.report(say.given_literal(key.span))
    elif table.by != "network" or literals.network(work, key) is not None:
        return None if value is None else p.GivenRow(name, key.value, column.text, value)
    return None


def _fitting(work: Work, given: s.Assignment, kind: t.Type) -> p.Constant | None:
    if not literals.is_literal(given.value):
        work.report(say.given_literal(given.value.span))
        return None
    return literals.read_as(work, given.value, kind, work.text(given.target.span))


def _target(work: Work, given: s.Assignment) -> p.Expression | None:
    """Resolve what is given a value; this doesn't count as a use of the name."""
    unread = set(work.names_read)
    target = name_in(work, Scope(), given.target)
    work.names_read &= unread
    return target


def _value(work: Work, given: s.Assignment) -> p.GivenValue | None:
    target = _target(work, given)
    if target is None:
        return None
    if isinstance(target, p.MetadataFact):
        return _entry(work, given, target)
    if not isinstance(target, _TARGETS) or not isinstance(target.type, _SCALARS):
        fields = names.fields_within(work, target.path) if isinstance(target, p.Fact) else []
        is_computed = isinstance(target.type, _SCALARS)
        work.report(
            say.given_target(
                given.target.span, kind_of(target.type), fields, is_computed=is_computed
            )
        )
        return None
    if not literals.is_literal(given.value):
        work.report(say.given_literal(given.value.span))
        return None
    constant = literals.meeting(work, given.value, target)
    if constant is None or not _has_its_decimals(work, given, constant, target.type):
        return None
    refusal = _refusal(work, target, constant)
    if refusal is not None:
        work.report(say.given_refused(given.value.span, work.text(given.target.span), refusal))
        return None
    return p.GivenValue(target, constant)


def _refusal(work: Work, target: p.Expression, constant: p.Constant) -> str | None:
    """Return why a payment or event with this value is refused; None if it isn't."""
    match target:
        case p.Fact():
            refuses = work.vocabulary.payment[".".join(target.path)].refuses
            return None if refuses is None else refuses(constant.value)
        case p.EventFact(type=t.String(choices=None)):
            return _refusal_of_text(str(constant.value))
        case _:
            return None


def _refusal_of_text(text: str) -> str | None:
    if len(text) > t.LONGEST_EVENT_TEXT:
        return f"it has at most {t.LONGEST_EVENT_TEXT} characters"
    return None if text else "it is missing rather than empty"


def _has_its_decimals(work: Work, given: s.Assignment, constant: p.Constant, kind: t.Type) -> bool:
    """Whether the target has enough decimals for the number."""
    if not isinstance(kind, t.Number) or kind.scale is None:
        return True
    exponent = literals.decimal(constant).normalize().as_tuple().exponent
    if isinstance(exponent, int) and -exponent > kind.scale:
        work.report(say.given_decimals(given.value.span, work.text(given.target.span), kind.scale))
        return False
    return True


def _entry(work: Work, given: s.Assignment, target: p.MetadataFact) -> p.GivenValue | None:
    """Give a metadata entry the type of its literal."""
    if not literals.is_literal(given.value):
        work.report(say.given_literal(given.value.span))
        return None
    constant = literals.read(work, given.value)
    if constant is not None and isinstance(constant.type, t.Duration):
        work.report(say.metadata_kind(given.value.span, kind_of(constant.type)))
        return None
    if constant is None or not literals.in_range(work, given.value, constant, _metadata(target)):
        return None
    return p.GivenValue(target, constant)


def _metadata(target: p.MetadataFact) -> p.MetadataFact:
    return replace(target, type=METADATA_NUMBER)


def _check_expected(
    work: Work,
    file: s.File,
    expected: s.ExpectAction | s.ExpectAlert | s.ExpectValue,
) -> p.Expected | None:
    match expected:
        case s.ExpectAction():
            return _action(work, file, expected)
        case s.ExpectAlert():
            return _alert(work, file, expected)
        case s.ExpectValue(value=s.Name(text=word)) if file.kind == "rule" and _means_nothing(
            work, word
        ):
            _report_outcome(work, file, expected.value.span, word)
            return None
        case s.ExpectValue(value=s.Text(value=word) as text) if word in _OUTCOMES:
            work.report(quoted_action(text.span, word))
            return None
        case s.ExpectValue():
            value = condition(work, Scope(), expected.value)
            return None if value is None else p.ExpectValue(expected.span, value)


def _means_nothing(work: Work, word: str) -> bool:
    known = (work.names, work.definition_lets, work.vocabulary.payment, work.lost)
    return word != "score" and not any(word in each for each in known)


def _report_outcome(work: Work, file: s.File, span: s.Span, word: str) -> None:
    """Report a word in place of an action: a condition's name, or an action of another language."""
    for item in file.items:
        if isinstance(item, s.Condition) and item.name.text == word:
            work.report(say.condition_alone(span, word, item.action.text))
            return
    work.report(unknown_action(span, word, _OUTCOMES))


def _action(work: Work, file: s.File, expected: s.ExpectAction) -> p.ExpectAction | None:
    if file.kind != "rule":
        work.report(say.expects_action(expected.span, file.kind))
        return None
    action = expected.action
    by = None if expected.by is None else expected.by.text
    if expected.by is not None:
        conditions = {item.name.text: item for item in file.items if isinstance(item, s.Condition)}
        named = conditions.get(expected.by.text)
        if named is None:
            if expected.by.text not in work.lost:
                work.report(say.unknown_condition(expected.by.span, expected.by.text, conditions))
        elif named.action.text != action.text:
            work.report(
                say.other_action(action.span, expected.by.text, named.action.text, action.text)
            )
    return p.ExpectAction(expected.span, cast("Any", action.text), by)


def _alert(work: Work, file: s.File, expected: s.ExpectAlert) -> p.ExpectAlert | None:
    if file.kind != "event":
        work.report(say.expects_alert(expected.span, file.kind))
        return None
    monitors = [item.name.text for item in file.items if isinstance(item, s.Monitor)]
    monitor = None if expected.monitor is None else expected.monitor.text
    if expected.monitor is not None and monitor not in {*monitors, *work.lost}:
        work.report(say.unknown_monitor(expected.monitor.span, expected.monitor.text, monitors))
    return p.ExpectAlert(expected.span, monitor, expected.negated)
