"""A streak is what counting back by hand gives, whatever was updated or could not be kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.replay import empty_windows, finish
from tollkeeper.engine.programs.loaded import load_rule
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.velocity.contract import Observation, Record, State
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule
from tollkeeper.tests.engine.programs.compile.test_programs import paid

RULE = b"""
rule streaks
  condition both
    when streak(payments by user.id where amount > 1) > 9
      or streak(earlier payments by user.id where amount > 1) > 9
    then deny
"""
program = read_file(RULE, KnownNames()).program
assert isinstance(program, Rule)
EARLIER = [history.earlier for history in program.histories]
LOADED = load_rule(program, 1, full_vocabulary())

amounts = st.sampled_from([None, 1, 2])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("pay"), st.sampled_from("uv"), amounts),
        st.tuples(st.just("pay"), st.just("u"), st.just(2)),
        st.tuples(st.just("lose"), st.sampled_from("uv"), amounts),
        st.tuples(st.just("update"), st.integers(0, 9), amounts),
    ),
    max_size=20,
)


@dataclass
class Seen:
    user: str
    amount: int | None
    observed: Observation


def facts_of(user: str, amount: int | None, arrived: int) -> Any:
    given = "" if amount is None else f", amount = {amount}"
    # A late one has its place by when it arrived.
    facts = paid(f'user.id = "{user}"{given}')
    return structs.replace(facts, arrived=arrived, timestamp=arrived - arrived % 7)


def counted_back(seen: list[Seen], user: str) -> int:
    found = 0
    for each in reversed([one for one in seen if one.user == user]):
        if each.amount is None or each.amount <= 1:
            break
        found += 1
    return min(found, 100)


@settings(deadline=None)
@given(steps)
def test_a_streak_is_counted_back_in_order_of_arrival(happened: list[tuple[str, Any, Any]]) -> None:
    windows = empty_windows(LOADED.reading.plan.series)
    seen: list[Seen] = []
    for arrived, (what, which, amount) in enumerate(happened, 1_000):
        if what == "update" and which < len(seen):
            each = seen[which]
            before = each.observed.record.state
            after = State(facts_of(each.user, amount, before.payment.arrived))
            record = structs.replace(
                each.observed.record, arrived=arrived, state=after, before=before
            )
            observed = finish(windows.observe(record, ()))
            each.amount, each.observed = amount, observed
        elif what != "update":
            facts = facts_of(which, amount, arrived)
            record = Record(1, f"p-{arrived}", facts.timestamp, arrived, State(facts))
            reads = LOADED.reading.reads(facts, Environment())
            observed = finish(windows.observe(record, reads))
            earlier = counted_back(seen, which)
            seen.append(Seen(which, amount, observed))
            now = counted_back(seen, which)
            assert observed.values == tuple(earlier if each else now for each in EARLIER)
            if what == "lose":
                finish(windows.withdraw(observed))
                seen.pop()


def test_a_streak_is_at_most_a_hundred() -> None:
    windows = empty_windows(LOADED.reading.plan.series)
    values: tuple[Any, ...] = ()
    for arrived in range(1_000, 1_120):
        facts = facts_of("u", 2, arrived)
        record = Record(1, f"p-{arrived}", facts.timestamp, arrived, State(facts))
        values = finish(windows.observe(record, LOADED.reading.reads(facts, Environment()))).values
    assert values == (100, 100)
