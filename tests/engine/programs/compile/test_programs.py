"""Scorecards, keys, series and monitors, compiled from their files."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.explain import Inputs, explain_scorecard
from tollkeeper.engine.programs.compile.functions import score
from tollkeeper.engine.programs.compile.python import (
    compile_reads,
    compile_rule,
    compile_scorecard,
)
from tollkeeper.engine.programs.compile.series import compile_series
from tollkeeper.engine.programs.event_type import load_event_type
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.parser import parse
from tollkeeper.tests.engine.programs.compile.payments import EMPTY, VOCABULARY, payment
from tollkeeper.tests.semantics.test_semantics import facts, fields_of


def checked(text: str, known: KnownNames | None = None) -> Any:
    file = parse(text).file
    assert file is not None, parse(text).diagnostics
    found = check(file, text, VOCABULARY, known or KnownNames())
    assert found.program is not None, found.diagnostics
    return found.program


def paid(text: str) -> Facts:
    return facts(fields_of(text))


SCORECARD = """
scorecard bots
  baseline 0.5
  signal small adds 2 when amount < 10
  signal share adds amount / 100
  signal user adds 1.5 when user.id == "a"
"""


def test_a_scorecard_adds_the_signals_that_are_met_and_there() -> None:
    score_of = compile_scorecard(checked(SCORECARD), VOCABULARY)
    assert score_of(paid("amount = 5"), (), EMPTY) == round(100 / (1 + math.exp(-2.05)))
    assert score_of(paid(""), (), EMPTY) == 50
    assert score_of(paid('amount = 100, user.id = "a"'), (), EMPTY) == 92


CURVES = """
scorecard steps
  baseline 0.5
  signal size curves amount rising { < 10: 0, < 20.5: 0.75, else 2 }
  signal orders curves length(order.id) { < 2: 0.5, else 0, missing: -1 }
  signal times curves timestamp - min(timestamp, timestamp) falling { < 1h: 1.5, else 0 }
"""


def test_a_curve_adds_what_the_step_of_its_value_says() -> None:
    scorecard = checked(CURVES)
    taken = {
        "amount = 9.99": ("< 10: 0", "missing: -1", "< 1h: 1.5"),
        'amount = 10, order.id = "a"': ("< 20.5: 0.75", "< 2: 0.5", "< 1h: 1.5"),
        'amount = 20.5, order.id = "abc"': ("else 2", "else 0", "< 1h: 1.5"),
        'currency = "BRL"': ("missing", "missing: -1", "< 1h: 1.5"),
    }
    for sent, steps in taken.items():
        inputs = Inputs(paid(sent), (), EMPTY)
        found = explain_scorecard(scorecard, {None: CURVES}, inputs, VOCABULARY)
        assert tuple(each.adds.text for each in found.signals) == steps
        added = (step.split()[-1] for step in steps if step != "missing")
        assert found.logit == sum(map(float, added))
        assert compile_scorecard(scorecard, VOCABULARY)(inputs.facts, (), EMPTY) == found.score


@given(st.floats(allow_nan=False))
def test_a_score_always_lies_between_0_and_100(logit: float) -> None:
    assert 0 <= score(logit) <= 100


@given(st.integers(0, 2**32))
def test_an_explained_score_is_the_score(seed: int) -> None:
    scorecard = checked(SCORECARD)
    seen = payment(Random(seed))
    explained = explain_scorecard(scorecard, {None: SCORECARD}, Inputs(seen, (), EMPTY), VOCABULARY)
    assert explained.score == compile_scorecard(scorecard, VOCABULARY)(seen, (), EMPTY)
    assert explained.logit == math.fsum([each.contribution for each in explained.signals])


HISTORIES = """
rule histories
  let spent = sum(payments.amount by user.id, currency over 7d where status == "succeeded")
  let waits = max(transactions.duration by order.id over 1d where status == "declined")
  let denied = any(payments by device.ip_address over 1h where decision.action == "deny")
  condition one when spent > 100 or waits > 5 or denied then deny
"""


def test_the_keys_of_a_payment_stand_in_the_order_of_the_histories() -> None:
    rule = checked(HISTORIES)
    keys = compile_reads(rule, Digests(rule.lets), VOCABULARY)
    seen = paid('user.id = "a", currency = "BRL", order.id = "o"')
    assert keys(seen, EMPTY) == (("a", "BRL"), ("o",), None)
    assert keys(paid('user.id = "a"'), EMPTY) == (None, None, None)


def test_a_series_takes_the_values_of_what_its_where_lets_through() -> None:
    rule = checked(HISTORIES)
    spent, waits, denied = (
        compile_series(history.series, Digests(rule.lets), VOCABULARY) for history in rule.histories
    )
    succeeded = paid('amount = 5, status = "succeeded", user.id = "a", currency = "BRL"')
    assert spent.key(succeeded, None, None, None, None) == ("a", "BRL")
    assert spent.values(succeeded, None, None, None, None) == (500,)
    assert spent.values(paid('amount = 5, status = "declined"'), None, None, None, None) == ()
    assert spent.values(paid("amount = 5"), None, None, None, None) == ()
    assert spent.values(paid('status = "succeeded"'), None, None, None, None) == (None,)
    attempts = paid(
        'transactions = [{"status": "declined", "duration": 7}, {"status": "failed"},'
        ' {"status": "declined"}]'
    )
    assert waits.values(attempts, None, None, None, None) == (7, None)
    assert waits.values(paid(""), None, None, None, None) == ()
    assert denied.values(succeeded, Decision("deny"), None, None, None) == (True,)
    assert (
        denied.values(succeeded, Decision("allow", rule=AppliedRule("r", 1)), None, None, None)
        == ()
    )
    assert denied.values(succeeded, None, None, None, None) == ()


def test_histories_are_read_by_their_place() -> None:
    decide = compile_rule(checked(HISTORIES), VOCABULARY)
    assert decide(paid(""), None, (10_001, None, None), EMPTY) == 0
    assert decide(paid(""), None, (10_000, 5, None), EMPTY) == -1
    assert decide(paid(""), None, (None, None, True), EMPTY) == 0


def test_equal_series_of_different_rules_have_one_digest() -> None:
    one = checked(HISTORIES)
    other = checked(
        """
rule other
  let s = "succeeded"
  condition few when count(payments by user.id over 1h) > 9 then deny
  condition spends
    when sum(payments.amount by user.id, currency over 2h where status == "succeeded") > 5
    then deny
"""
    )
    digests = [Digests(other.lets).of(each.series) for each in other.histories]
    assert Digests(one.lets).of(one.histories[0].series) == digests[1]
    assert digests[0] != digests[1]


EVENT = """
event sign_in
  field user_id: string required
  field result: "success" | "failure" required
  field took: number
  metric failures = count(events by user_id over 1h where result == "failure")
  monitor brute_force when failures >= 10 and took < 2 by user_id every 10m
"""


def test_a_monitor_reads_the_event_and_its_metrics() -> None:
    event: p.EventType = checked(EVENT)
    (monitor,) = load_event_type(event, 1, EVENT, VOCABULARY).monitors
    data = {"user_id": "a", "result": "failure", "took": 1_999_999}
    assert monitor.when(None, data, (10,), EMPTY) is True
    assert monitor.when(None, data, (9,), EMPTY) is False
    assert monitor.when(None, {"user_id": "a"}, (10,), EMPTY) is None
    assert monitor.key(None, data, EMPTY) == ("a",)
    assert monitor.key(None, {}, EMPTY) is None
    assert compile_reads(event, Digests(event.lets), VOCABULARY)(None, data, EMPTY) == (("a",),)
    series = compile_series(event.histories[0].series, Digests(event.lets), VOCABULARY)
    assert series.values(None, None, data, None, None) == (True,)
    assert series.values(None, None, {"result": "success"}, None, None) == ()
