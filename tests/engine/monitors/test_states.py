"""How monitors stand: what failed to be kept leaves no trace, whatever happened in between."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.monitors.states import MonitorStates, _is_transition

KEYS = st.sampled_from(["a", "b"])
STEPS = st.lists(st.tuples(KEYS, st.booleans(), st.booleans()), max_size=30)


def transition(key: str, met: bool, at: int) -> Transition:
    return Transition("sign_in", "many", (key,), at, met)


@given(STEPS, st.integers(0, 5))
def test_what_could_not_be_kept_always_leaves_the_standings_of_the_rest(steps, in_flight):
    states, expected = MonitorStates(), MonitorStates()
    open_: list[tuple[int, Transition, bool]] = []
    for sequence, (key, met, kept) in enumerate(steps, start=1):
        each = transition(key, met, sequence * 10)
        states.add(1, sequence, [each])
        open_.append((sequence, each, kept))
        if kept:
            expected.replay(1, sequence, [each])
        while len(open_) > in_flight:
            finish(states, *open_.pop(0))
    for each in open_:
        finish(states, *each)
    for key in ("a", "b"):
        of = (1, "sign_in", "many", (key,))
        known, wanted = states.of(of), expected.of(of)
        assert (known and known[:2]) == (wanted and wanted[:2])


def finish(states: MonitorStates, sequence: int, turn_: Transition, kept: bool) -> None:
    if kept:
        states.settle(1, sequence, [turn_])
    else:
        states.undo(1, sequence, [turn_])


def test_beyond_the_bound_the_monitor_with_most_keys_forgets_those_that_changed_longest_ago(
    monkeypatch,
):
    monkeypatch.setattr("tollkeeper.engine.monitors.states.MAX_STATES", 6)
    states = MonitorStates()
    states.replay(2, 1, [transition("other account", True, 1)])
    states.replay(1, 2, [transition("a", True, 1), Transition("sign_in", "few", ("a",), 1, True)])
    for sequence, key in enumerate("bcdefg", start=3):
        states.replay(1, sequence, [transition(key, True, sequence)])
        if key == "c":
            states.replay(1, sequence, [transition("a", False, sequence)])
    gone = states.forget_excess(1)
    assert [key for *_, (key,) in gone] == ["b", "c"]
    assert states.forget_excess(1) == []
    assert states.of((1, "sign_in", "many", ("b",))) is None
    assert states.of((1, "sign_in", "many", ("a",))) is not None
    assert states.of((1, "sign_in", "few", ("a",))) is not None


@given(STEPS, st.integers(0, 100))
@example([("a", True, True), ("a", False, True)], 10)
def test_what_says_nothing_is_missed_by_no_later_record(steps, cool_down):
    states, now = MonitorStates(), 10 * len(steps)
    for sequence, (key, met, _) in enumerate(steps, start=1):
        states.replay(1, sequence, [transition(key, met, sequence * 10)])
    every = cool_down or None
    silent = dict(states.without_meaning(1, {("sign_in", "many"): cool_down}, now))
    for key in ("a", "b"):
        known = states.of((1, "sign_in", "many", (key,)))
        alike = all(
            _is_transition(every, known, met, at) == _is_transition(every, None, met, at)
            for met in (True, False)
            for at in (now, now + 1)
        )
        assert ((1, "sign_in", "many", (key,)) in silent) == (alike and known is not None)
