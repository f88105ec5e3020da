"""Write a payment that the solver found as a test of the language."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from tollkeeper.engine.offline.prove.replay import ReplayedDecision
from tollkeeper.engine.offline.prove.witness import Witness
from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.files import RuleFile
from tollkeeper.engine.offline.testing.outcomes import BlockError
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.names import SCORE
from tollkeeper.grammar.formatter import format_file
from tollkeeper.grammar.syntax import Span

_MILLISECOND = 1_000
_NOWHERE = Span(0, 0)


def counterexample_test(
    rule: p.Rule, witness: Witness, decided: ReplayedDecision | None
) -> str | None:
    """The test's text; None if a test can't express the payment, or would come out otherwise.

    A test can't give transactions, rows of tables, rates or an object without a field, and an
    aggregate only through a let whose value it is.
    """
    if witness.facts.payment.transactions or witness.environment.rates:
        return None
    if any(rows.rows for rows in witness.environment.tables.values()):  # type: ignore[attr-defined]
        return None
    lets = _named_aggregates(rule)
    given = dict(witness.fields)
    if witness.score is not None:
        given["score"] = _given(p.Score(0, _NOWHERE, SCORE), witness.score)
    for digest, value in witness.values.items():
        if value is None:
            continue
        if digest not in lets:
            return None
        index = lets[digest]
        let = rule.lets[index]
        given[let.name] = _given(p.LetValue(0, _NOWHERE, let.value.type, index), value)
    lists = {name: _entries(held) for name, held in witness.lists.items() if held}
    expected = p.ExpectAction(_NOWHERE, rule.otherwise or "default", None)
    if decided is not None and decided.condition is not None:
        expected = p.ExpectAction(_NOWHERE, decided.action, decided.condition)
    values: list[p.Given] = [*given.values()]
    values += [p.GivenList(name, held) for name, held in lists.items()]
    if not _comes_out(rule, p.Test(_NOWHERE, "counterexample", tuple(values), (expected,))):
        return None
    written = [f"{name} = {_literal(each.value)}" for name, each in given.items()]
    written += [f"@{name} = [{', '.join(map(_literal, held))}]" for name, held in lists.items()]
    given_line = f"    given {', '.join(written)}\n" if written else ""
    by = f" by {expected.condition}" if expected.condition is not None else ""
    return _laid_out(f'  test "counterexample"\n{given_line}    expect {expected.action}{by}\n')


def tests_to_add(text: str, tests: Iterable[str]) -> list[str]:
    """The tests that a file lacks, with a number where their name is taken."""
    added: list[str] = []
    for test in tests:
        name, rest = test.split("\n", 1)
        if rest in text:
            continue
        named, number = name, 1
        while named in text:
            number += 1
            named = f'{name[:-1]} {number}"'
        added.append(f"{named}\n{rest}")
        text += added[-1]
    return added


def _given(target: p.LetValue | p.Score, value: p.Value) -> p.GivenValue:
    return p.GivenValue(target, p.Constant(0, _NOWHERE, target.type, value))


def _entries(held: Iterable[tuple[t.Type, p.Value]]) -> tuple[p.Constant, ...]:
    return tuple(p.Constant(0, _NOWHERE, kind, value) for kind, value in held)


def _comes_out(rule: p.Rule, test: p.Test) -> bool:
    """Whether the test passes in the rule's file."""
    file = RuleFile(Path(), None, rule, {None: ""}, {})
    try:
        return not run_test(file, test).failures
    except BlockError:
        return False


def _literal(constant: p.Constant) -> str:
    """The value as a file writes it."""
    value, kind = constant.value, constant.type
    match kind:
        case t.Ip() | t.Instant():
            return f'"{written_value(value, kind)}"'
        case t.Duration():
            return f"{Decimal(value) / _MILLISECOND:f}ms"
        case t.Number(scale=None):
            return f"{Decimal(value):f}"
        case _:
            return written_value(value, kind)


def _named_aggregates(rule: p.Rule) -> dict[str, int]:
    """The index of the let that is an aggregate, by the aggregate's digest."""
    digests = Digests(rule.lets)
    return {
        digests.of(let.value): index
        for index, let in enumerate(rule.lets)
        if isinstance(let.value, p.History)
    }


def _laid_out(test: str) -> str | None:
    """The formatted test; None for values that the language can't write, such as microseconds."""
    head = "rule r\n\n"
    try:
        return format_file(head + test).removeprefix(head)
    except ValueError:
        return None
