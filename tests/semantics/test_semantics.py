"""The tables of this folder: expression, payment, outcome, in both evaluators.

Only what a line gives is present. An outcome is a value as an explanation shows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec import inspect

from tollkeeper.engine.facts.facts import Facts, StoredFacts, recall
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.programs.compile.explain import Inputs, scope_of
from tollkeeper.engine.programs.compile.interpreter import evaluate
from tollkeeper.engine.programs.compile.python import compile_rule, compile_values
from tollkeeper.engine.programs.compile.reckoning import carry
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.syntax import Span
from tollkeeper.tests.engine.programs.compile.payments import ENVIRONMENT, VOCABULARY, Situation

SPAN = Span(0, 0)
_CELL = re.compile(r" \|(?= )")
RULE = """rule line
  list strings: string
  list numbers: number
  list addresses: ip
  table rows by value: text: string, amount: number, flag: boolean
  table bins by prefix: text: string, amount: number, flag: boolean
  table places by network: text: string, amount: number, flag: boolean
  let outcome = {}
  condition holds when outcome is present then deny
"""


class Line(NamedTuple):
    table: str
    number: int
    expression: str
    payment: str
    outcome: str


def lines() -> Iterator[Any]:
    for table in sorted(Path(__file__).parent.glob("*.md")):
        for number, text in enumerate(table.read_text("utf-8").splitlines(), 1):
            if text.startswith("|") and not text.startswith(("| expression", "|---")):
                expression, given, outcome = (cell.strip() for cell in _CELL.split(text[1:-1]))
                line = Line(table.stem, number, expression, given, outcome)
                yield pytest.param(line, id=f"{table.stem}:{number}")


def fields_of(text: str) -> dict[str, Any]:
    """`a.b = 1, c = "x"` as nested objects."""
    found: dict[str, Any] = {}
    decoder = re.compile(r"\s*,?\s*([a-z_.]+) = ")
    at = 0
    while match := decoder.match(text, at):
        value, length = _value(text[match.end() :])
        at = match.end() + length
        *owners, last = match[1].split(".")
        place = found
        for owner in owners:
            place = place.setdefault(owner, {})
        place[last] = value
    assert not text[at:].strip(), text
    return found


def _value(text: str) -> tuple[Any, int]:
    return json.JSONDecoder().raw_decode(text)


PAYMENT = inspect.type_info(Payment)


def built(described: inspect.Type, value: Any) -> Any:
    """A value of a payment's type, with None for everything that is not given."""
    match described:
        case inspect.Metadata():
            return built(described.type, value)
        case inspect.UnionType():
            known = [each for each in described.types if not isinstance(each, inspect.NoneType)]
            return None if value is None else built(known[0], value)
        case inspect.StructType():
            fields = {
                field.encode_name: built(field.type, value[field.name])
                if value.get(field.name) is not None
                else None
                for field in described.fields
            }
            return described.cls(**fields)
        case inspect.VarTupleType():
            return tuple(built(described.item_type, each) for each in value)
        case inspect.DateTimeType():
            return datetime.fromisoformat(value)
        case inspect.FloatType():
            return float(value)
        case _:
            return value


def facts(fields: dict[str, Any]) -> Facts:
    fields = {"timestamp": "2026-01-01T00:00:00Z", **fields}
    payment = built(PAYMENT, fields)
    return recall(StoredFacts(payment), 0)


def checked(expression: str) -> p.Rule:
    text = RULE.format(expression)
    file = parse(text).file
    assert file is not None, parse(text).diagnostics
    found = check(file, text, VOCABULARY, KnownNames())
    assert isinstance(found.program, p.Rule), found.diagnostics
    return found.program


def situation_of(line: Line) -> Situation:
    """What a line gives, in the account of these tables."""
    fields = fields_of(line.payment)
    score = fields.pop("score", None)
    paid = facts(fields)
    if "timestamp" not in fields:
        paid = msgspec.structs.replace(paid, timestamp=None)
    return Situation(paid, None if score is None else round(score * 100), (), ENVIRONMENT)


@pytest.mark.parametrize("line", list(lines()))
def test_an_expression_has_the_outcome_of_its_table(line: Line) -> None:
    rule, seen = checked(line.expression), situation_of(line)
    meaning = rule.lets[0].value
    inputs = Inputs(seen.facts, (), ENVIRONMENT, seen.score)
    meant = evaluate(meaning, scope_of(rule, inputs, VOCABULARY))
    assert written_value(carry(meant, meaning.type), meaning.type) == line.outcome
    read = (seen.facts, seen.score, (), ENVIRONMENT)
    (value,) = compile_values([meaning], rule.lets, (), VOCABULARY)(*read)
    assert written_value(value, meaning.type) == line.outcome
    if isinstance(meaning.type, t.Boolean):
        decide = compile_rule(as_condition(meaning, rule), VOCABULARY)
        refuse = compile_rule(as_condition(opposite(meaning), rule), VOCABULARY)
        outcomes = {"true": (0, -1), "false": (-1, 0), "missing": (-1, -1)}
        assert (decide(*read), refuse(*read)) == outcomes[line.outcome]


def program_of(expression: str) -> p.Rule:
    """A rule of one condition: the expression, or that it is present when it is no boolean."""
    rule = checked(expression)
    meaning = rule.lets[0].value
    return as_condition(meaning, rule) if isinstance(meaning.type, t.Boolean) else rule


def opposite(node: p.Expression) -> p.Expression:
    return p.Not(0, SPAN, t.Boolean(), node)


def as_condition(node: p.Expression, rule: p.Rule) -> p.Rule:
    condition = p.Condition(0, SPAN, "c", None, node, "deny")
    return p.Rule("line", None, (), (), rule.lets, (condition,), None, (), ())
