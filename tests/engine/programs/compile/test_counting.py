"""One function for all series of a program brings what each series' own functions bring."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tollkeeper.engine.programs.load import SHIPPED, full_vocabulary
from tollkeeper.engine.programs.loaded import load_rule, load_scorecard
from tollkeeper.engine.velocity.contract import SeriesPlan, State
from tollkeeper.engine.velocity.elements import add_record, elements_of, plan_counting
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import Rule, Scorecard
from tollkeeper.tests.engine.programs.compile.payments import decision, payment

OWN = """rule own
  let domain = email_domain(user.email)
  let is_refused = status == "declined" or status == "failed"
  let refused = count(payments by user.id over 1h where is_refused and decision.action == "deny")
  let refused_cards = distinct(
    payments.method.card.fingerprint by user.id, domain over 24h
    where is_refused or decision.action == "deny"
  )
  let spent = sum(payments.amount by coalesce(user.id, device.fingerprint.id), currency over 7d)
  let is_all = all(payments by domain over 1h where status == "declined")
  let is_any = any(payments by domain over 1h where device.client.consistent)
  let attempts = count(transactions by order.id over 24h where status == "declined")
  let slow = sum(
    transactions.duration by user.id, domain over 24h
    where connector.meaning == "no_funds" or duration > 5 or is_refused
  )
  let seen = age(payments by method.card.bin where amount > 5)
  condition met
    when refused > 1 or refused_cards > 1 or spent > 1 or is_all or is_any or attempts > 1
      or seen < 1d or slow > 5
    then deny
"""
SHARED = """rule shared
  let is_refused = status == "declined" or status == "failed" or status == "blocked"
  let refused = count(payments by user.id over 1h where is_refused)
  let slow = count(transactions by user.id over 1h where duration > 5 and is_refused)
  condition met when refused > 1 or slow > 5 then deny
"""
"""The let is computed once before the loop over transactions, and read in it."""
FILES = {path.stem: path.read_text() for path in sorted(SHIPPED.glob("*.rule"))} | {
    "own": OWN,
    "shared": SHARED,
}


def series_of(text: str) -> tuple[SeriesPlan, ...]:
    file = parse(text).file
    assert file is not None
    found = check(file, text, full_vocabulary(), KnownNames())
    match found.program:
        case Rule() as rule:
            return load_rule(rule, 1, full_vocabulary()).reading.plan.series
        case Scorecard() as scorecard:
            return load_scorecard(scorecard, 1, full_vocabulary()).reading.plan.series
    raise AssertionError(found.diagnostics)


def elements(plans: list[SeriesPlan], state: State) -> dict[str, list[Any]]:
    found = {}
    for each, members in plan_counting(plans):
        for index, items in elements_of(each.count, len(members), state).items():
            found[members[index].digest] = items
    return found


def elements_added(plans: list[SeriesPlan], state: State) -> dict[str, list[Any]]:
    """`elements` by the functions that return no groups."""
    found = {}
    for each, members in plan_counting(plans):
        for index, items in elements_of(each.add, len(members), state).items():
            found[members[index].digest] = items
    return found


def groups(plans: list[SeriesPlan], state: State) -> dict[str, Any]:
    found = {}
    for counted, members in plan_counting(plans):
        puts = [lambda *_element: None] * len(members)
        those = add_record(counted.count, state, 0, puts)
        found |= {
            plan.digest: those[at] for plan, at in zip(members, counted.positions, strict=True)
        }
    return found


@pytest.mark.parametrize("name", FILES)
def test_series_counted_together_take_what_they_take_one_by_one(name: str) -> None:
    together = list(series_of(FILES[name]))
    apart = [replace(plan, counting=None) for plan in together]
    assert any(plan.counting for plan in together)
    random = Random(8)
    for _ in range(300):
        state = State(payment(random), decision(random))
        assert elements(together, state) == elements(apart, state)
        assert elements_added(together, state) == elements(apart, state)
        assert groups(together, state) == groups(apart, state)


def test_some_of_the_series_are_counted_alone() -> None:
    plans = [plan for plan in series_of(OWN) if plan.decided]
    assert len(plans) == 2
    random = Random(9)
    for _ in range(100):
        state = State(payment(random), decision(random))
        assert elements(plans, state) == elements([replace(p, counting=None) for p in plans], state)
