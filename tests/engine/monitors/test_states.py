"""How monitors stand: what failed to be kept leaves no trace, whatever happened in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.monitors.states import MonitorStates

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
