"""The tables of `history/`: expression, earlier payments, payment, outcome.

Each is read from live windows and from those of a backtest, and worked out by both evaluators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.offline.backtest.plan import plan_rule
from tollkeeper.engine.offline.backtest.planned_windows import PlannedWindows
from tollkeeper.engine.offline.testing.history import empty_windows
from tollkeeper.engine.programs.compile.explain import Inputs, scope_of
from tollkeeper.engine.programs.compile.interpreter import evaluate
from tollkeeper.engine.programs.compile.python import compile_values
from tollkeeper.engine.programs.compile.reckoning import carry
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.engine.programs.loaded import LoadedRule, load_rule
from tollkeeper.engine.velocity.contract import LATE, Record, State
from tollkeeper.grammar.program import Rule, Value
from tollkeeper.tests.engine.programs.compile.payments import ENVIRONMENT, VOCABULARY
from tollkeeper.tests.semantics.test_semantics import _CELL, checked, facts, fields_of

START = 1_767_225_600_000_000
MINUTE = 60_000_000


class Line(NamedTuple):
    expression: str
    history: str
    payment: str
    outcome: str


def lines() -> Iterator[Any]:
    for table in sorted((Path(__file__).parent / "history").glob("*.md")):
        for number, text in enumerate(table.read_text("utf-8").splitlines(), 1):
            if text.startswith("|") and not text.startswith(("| expression", "|---")):
                cells = [cell.strip() for cell in _CELL.split(text[1:-1])]
                yield pytest.param(Line(*cells), id=f"{table.stem}:{number}")


def payments_of(line: Line) -> list[Facts]:
    """The payments of a line, a minute apart."""
    given = [*filter(None, line.history.split("; ")), line.payment]
    return [
        msgspec.structs.replace(
            facts({"id": f"p-{index}", **fields_of(each)}),
            timestamp=START + index * MINUTE,
            arrived=START + index * MINUTE,
        )
        for index, each in enumerate(given)
    ]


async def read_live(loaded: LoadedRule, happened: Sequence[Facts]) -> Sequence[Value | None]:
    windows = empty_windows(loaded.reading.plan.series)
    values: Sequence[Value | None] = ()
    for each in happened:
        record = Record(
            1, each.payment.id, each.timestamp, each.arrived, State(each, environment=ENVIRONMENT)
        )
        values = (await windows.observe(record, loaded.reading.reads(each, ENVIRONMENT))).values
    return values


def read_again(rule: Rule, loaded: LoadedRule, happened: Sequence[Facts]) -> Sequence[Value | None]:
    plan = plan_rule(rule, loaded.reading, VOCABULARY, LATE)
    windows = PlannedWindows(plan)
    values: Sequence[Value | None] = ()
    for each in happened:
        values = windows.read(each.payment.id, each, None, ENVIRONMENT)
    return values


@pytest.mark.parametrize("line", list(lines()))
def test_an_aggregate_over_history_has_the_outcome_of_its_table(line: Line) -> None:
    rule = checked(line.expression)
    loaded = load_rule(rule, 1, VOCABULARY)
    happened = payments_of(line)
    values = tuple(asyncio.run(read_live(loaded, happened)))
    assert tuple(read_again(rule, loaded, happened)) == values
    meaning = rule.lets[0].value
    inputs = Inputs(happened[-1], values, ENVIRONMENT, None)
    meant = evaluate(meaning, scope_of(rule, inputs, VOCABULARY))
    assert written_value(carry(meant, meaning.type), meaning.type) == line.outcome
    read = (happened[-1], None, values, ENVIRONMENT)
    (value,) = compile_values([meaning], rule.lets, rule.histories, VOCABULARY)(*read)
    assert written_value(value, meaning.type) == line.outcome
