"""An explanation says of each part what it was worth, and which condition came nearest."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from syrupy.assertion import SnapshotAssertion

from tollkeeper.engine.programs.compile.explain import Inputs, RuleExplanation, explain_rule
from tollkeeper.engine.programs.compile.python import compile_rule
from tollkeeper.grammar import program as p
from tollkeeper.tests.engine.programs.compile.payments import EMPTY, VOCABULARY, situation
from tollkeeper.tests.engine.programs.compile.programs import rules
from tollkeeper.tests.engine.programs.compile.test_programs import checked, paid
from tollkeeper.tests.examples import examples

RULE = """
rule checkout
  let declines = count(transactions by order.id over 24h where status == "declined")
  condition small "Small amounts" when amount < 10.00 and declines >= 3 then deny
  condition guessing
    when any(transactions where duration < 50)
      or score >= 0.6 and device.ip_address in ["10.0.0.0/8"]
    then challenge
  condition last when user.email ends with ".test" then allow
"""


def explained(text: str, **inputs: Any) -> RuleExplanation:
    read = Inputs(paid(text), inputs.get("values", (2,)), EMPTY, inputs.get("score"))
    return explain_rule(checked(RULE), {None: RULE}, read, VOCABULARY)


def drawn(explanation: RuleExplanation) -> str:
    return msgspec.json.format(msgspec.json.encode(explanation), indent=1).decode()


def test_every_part_is_shown_with_its_value(snapshot: SnapshotAssertion) -> None:
    found = explained(
        'amount = 9.90, order.id = "o", transactions = [{"duration": 51}, {}],'
        ' device.ip_address = "10.1.2.3", user.email = "a@b.test"',
        score=61,
    )
    assert drawn(found) == snapshot


def test_conditions_after_the_met_one_are_not_reached() -> None:
    found = explained("amount = 5", values=(3,))
    assert [each.outcome for each in found.conditions] == ["met", "not reached", "not reached"]
    assert (found.met, found.nearest) == ("small", None)


def test_a_missing_value_leaves_a_condition_undecided() -> None:
    found = explained("amount = 5", values=(None,))
    assert [each.outcome for each in found.conditions] == ["undecided", "undecided", "undecided"]


def test_the_condition_with_most_of_what_it_needs_came_nearest() -> None:
    assert explained("amount = 5").nearest == "small"
    assert explained("amount = 50", score=60).nearest == "guessing"


def test_a_let_is_as_near_as_what_it_stands_for() -> None:
    text = """
rule checkout
  let tiny = amount < 1.00
  let cheap_visit = not (amount >= 10.00 or user.email is present or order.id is present)
  condition first when tiny then deny
  condition second when cheap_visit then deny
"""
    read = Inputs(paid('amount = 5, order.id = "o"'), (), EMPTY)
    assert explain_rule(checked(text), {None: text}, read, VOCABULARY).nearest == "second"


def test_lets_that_build_on_each_other_are_looked_through_once() -> None:
    lets = ["  let l0 = amount < 1.00 and amount < 2.00"]
    lets += [
        f"  let l{number} = l{number - 1} and not not l{number - 1}" for number in range(1, 60)
    ]
    text = "\n".join(["rule checkout", *lets, "  condition all when l59 then deny", ""])
    read = Inputs(paid("amount = 5"), (), EMPTY)
    assert explain_rule(checked(text), {None: text}, read, VOCABULARY).nearest == "all"


def test_aggregates_with_very_many_parts_show_those_of_the_first_transactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = 'amount = 50, transactions = [{"duration": 51}, {"duration": 52}, {"duration": 1}]'
    whole = explained(sent)
    assert whole.transactions_shown is UNSET
    monkeypatch.setattr("tollkeeper.engine.programs.compile.explain.MAX_PARTS", 8)
    cut = explained(sent)
    assert cut.transactions_shown == 2
    assert cut.met == whole.met == "guessing"
    (every, some) = (found.conditions[1].when.parts[0] for found in (whole, cut))
    assert (every.value, len(every.parts)) == ("true", 3)
    assert (some.value, some.parts) == ("true", every.parts[:2])


@given(rules(), st.integers(0, 2**32))
@settings(max_examples=examples(50), deadline=None, suppress_health_check=list(HealthCheck))
def test_an_explanation_always_says_what_the_compiled_rule_decides(
    program: p.Rule, seed: int
) -> None:
    seen = situation(Random(seed), program.histories)
    inputs = Inputs(seen.facts, seen.values, seen.environment, seen.score)
    found = explain_rule(program, {None: ""}, inputs, VOCABULARY)
    decide = compile_rule(program, VOCABULARY)
    index = decide(seen.facts, seen.score, seen.values, seen.environment)
    assert found.met == (None if index < 0 else program.conditions[index].name)
    assert msgspec.json.decode(msgspec.json.encode(found), type=RuleExplanation) == found
