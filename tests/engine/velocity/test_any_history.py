"""Windows read what a recount of everything gives, whatever history they count, in Python and in C."""

from __future__ import annotations

import os
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.offline.replay import finish
from tollkeeper.engine.velocity.contract import Key, Record, State, Window
from tollkeeper.engine.velocity.run import FEW
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.engine.velocity.worlds import (
    AGES,
    DAY,
    HOUR,
    KINDS,
    MEMORIES,
    MINUTE,
    START,
    Paid,
    Recount,
    filled,
    plan,
    same,
    window,
)

EXAMPLES = int(os.environ.get("WINDOW_EXAMPLES", "40"))
OVERS = (MINUTE, HOUR, 7 * DAY)
PLANS = [plan(name, max(OVERS), ages="age" in KINDS[name].functions) for name in KINDS]
PLANS.sort(key=lambda each: each.event is not None)
WINDOWS = tuple(
    window(name, function, over, earlier=earlier)
    for name in sorted(KINDS)
    for function in KINDS[name].functions
    for over in ([None] if function in AGES else OVERS)
    for earlier in ([False] if over is None else [False, True])
)
"""Everything that may be read of this world."""


class Known(NamedTuple):
    """A payment as the windows know it: its record, and what is known of it by now."""

    record: Record
    state: State


class Live:
    """Windows of this world, kept in memory as `memory` does."""

    def __init__(self, late: int, memory: Any) -> None:
        self.windows = Windows(late=late, memory=memory)
        finish(filled(self.windows, 1, PLANS))

    def pay(self, record: Record, keys: list[Key | None], decision: Decision) -> list[Any]:
        observed = finish(self.windows.observe(record, list(zip(WINDOWS, keys, strict=True))))
        finish(self.windows.settle(observed, decision))
        return list(observed.values)

    def update(self, record: Record) -> None:
        finish(self.windows.observe(record, ()))

    def sign_in(self, record: Record) -> None:
        finish(self.windows.observe(record, ()))


facts = st.builds(
    Paid,
    ip=st.sampled_from(["a", "a", "b", None]),
    card=st.sampled_from(["x", "y", None]),
    amount=st.sampled_from([None, 0, 1, 250, -(10**18), 9 * 10**37]),
    ratio=st.none() | st.sampled_from([0.1, 0.25, 1e308]),
    status=st.sampled_from(["declined", "succeeded", None]),
    attempts=st.lists(st.sampled_from([None, 1, 30]), max_size=2).map(tuple),
)
lateness = st.sampled_from([0, 0, 0, MINUTE, HOUR, 23 * HOUR, 30 * HOUR])
payments = st.tuples(st.just("pay"), facts, lateness, st.sampled_from(["allow", "deny"]))
updates = st.tuples(st.just("update"), facts, st.integers(0, 30), st.none())
sign_ins = st.tuples(st.just("sign_in"), st.none(), lateness, st.none())
histories = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, MINUTE, HOUR, 11 * HOUR, 3 * DAY]), payments | updates | sign_ins
    ),
    min_size=1,
    max_size=40,
)


def key_read(each: Window) -> Key:
    """The one group of each series that is read: most of the payments are in it."""
    return {"amounts": ("a", "x"), "signins": ("u",)}.get(each.series, ("a",))


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("few", [2, FEW], ids=["by_trees", "by_recount"])
def test_every_read_is_what_a_recount_gives(memory: str, few: int) -> None:
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(histories, st.sampled_from([2 * HOUR, DAY + HOUR, 40 * HOUR]))
    def check(history: list[tuple[int, Any]], late: int) -> None:
        check_history(Live(late, MEMORIES[memory]._replace(few=few)), history, late)

    check()


def check_history(windows: Live, history: list[tuple[int, Any]], late: int) -> None:
    meant, places, now, newest = Recount(), count(1), START, START
    known: list[tuple[int, Known]] = []
    keys: list[Key | None] = [key_read(each) for each in WINDOWS]
    for pause, (what, facts, more, action) in history:
        now += pause
        newest = max(newest, now)
        place = next(places)
        if what == "pay":
            record = Record(1, f"p-{place}", now - more, now, State(payment=facts))
            values = windows.pay(record, keys, Decision(action=action))
            meant.observe(place, record)
            for each, key, value in zip(WINDOWS, keys, values, strict=True):
                if each.over is not None and record.time < newest - late:
                    assert value is None, each
                    continue
                expected = meant.read(each, key, record.time, before=place)
                assert same(value, expected), (each, value, expected)
            settled = State(facts, Decision(action=action))
            meant.settle(place, settled)
            known.append((place, Known(record, settled)))
        elif what == "sign_in":
            record = Record(
                1, f"e-{place}", now - more, now, State(data={"user": "u"}), event="signin"
            )
            windows.sign_in(record)
            meant.observe(place, record)
        elif more < len(known):
            created, (record, before) = known[more]
            after = State(facts, before.decision)
            windows.update(Record(1, record.id, record.time, now, after, before))
            meant.settle(created, after)
            known[more] = (created, Known(record, after))
