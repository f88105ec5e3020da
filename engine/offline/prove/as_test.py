"""Write a payment that the solver found as a test of the language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from tollkeeper.engine.offline.prove.replay import ReplayedDecision
from tollkeeper.engine.offline.prove.witness import Witness
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.names import SCORE
from tollkeeper.grammar.formatter import format_file

_MILLISECOND = 1_000


def counterexample_test(
    rule: p.Rule, witness: Witness, decided: ReplayedDecision | None
) -> str | None:
    """The test's text; None if a test can't express the payment.

    A test can't give transactions, rows of tables or rates, and an aggregate only through a let
    whose value it is.
    """
    if witness.facts.payment.transactions or witness.environment.rates:
        return None
    if any(rows.rows for rows in witness.environment.tables.values()):  # type: ignore[attr-defined]
        return None
    lets = _named_aggregates(rule)
    given = [f"{name} = {_literal(value, kind)}" for name, (kind, value) in witness.fields.items()]
    if witness.score is not None:
        given.append(f"score = {_literal(witness.score, SCORE)}")
    for digest, value in witness.values.items():
        if value is None:
            continue
        if digest not in lets:
            return None
        name, kind = lets[digest]
        given.append(f"{name} = {_literal(value, kind)}")
    given += _lists(witness)
    expected = "default"
    if decided is not None and decided.condition is not None:
        expected = f"{decided.action} by {decided.condition}"
    elif rule.otherwise is not None:
        expected = rule.otherwise
    given_line = f"    given {', '.join(given)}\n" if given else ""
    return _laid_out(f'  test "counterexample"\n{given_line}    expect {expected}\n')


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


def _literal(value: p.Value, kind: t.Type) -> str:
    """The value as a file writes it."""
    match kind:
        case t.Ip() | t.Instant():
            return f'"{written_value(value, kind)}"'
        case t.Duration():
            return f"{Decimal(value) / _MILLISECOND:f}ms"
        case t.Number(scale=None):
            return f"{Decimal(value):f}"
        case _:
            return written_value(value, kind)


def _named_aggregates(rule: p.Rule) -> dict[str, tuple[str, t.Type]]:
    digests = Digests(rule.lets)
    return {
        digests.of(let.value): (let.name, let.value.type)
        for let in rule.lets
        if isinstance(let.value, p.History)
    }


def _lists(witness: Witness) -> Iterator[str]:
    for name, entries in witness.lists.items():
        if entries:
            yield f"@{name} = [{', '.join(_literal(value, kind) for kind, value in entries)}]"


def _laid_out(test: str) -> str | None:
    """The formatted test; None for values that the language can't write, such as microseconds."""
    head = "rule r\n\n"
    try:
        return format_file(head + test).removeprefix(head)
    except ValueError:
        return None
