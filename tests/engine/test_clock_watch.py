"""A clock that jumps is not believed until it is back, or somebody vouches for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.clock_watch import AT_START, WHILE_RUNNING, ClockWatch
from tollkeeper.engine.instants import DAY, HOUR

NOON = 1_760_000_000_000_000


def test_a_start_400_days_later_is_doubted_and_says_by_how_much() -> None:
    watch = ClockWatch(NOON)
    watch.look(NOON + 400 * DAY, 0)
    assert not watch.is_plausible
    assert watch.doubt == "the clock is 400 days ahead"
    assert watch.trusted == NOON


def test_a_clock_that_is_back_is_right_again() -> None:
    watch = ClockWatch(NOON)
    watch.look(NOON + 400 * DAY, 0)
    watch.look(NOON + HOUR, HOUR)
    assert watch.is_plausible


def test_a_person_may_say_that_the_clock_is_right() -> None:
    watch = ClockWatch(NOON)
    watch.look(NOON + 30 * DAY, 0)
    watch.accept(NOON + 30 * DAY, 0)
    watch.look(NOON + 30 * DAY + HOUR, HOUR)
    assert watch.is_plausible


def test_a_jump_while_the_service_runs_is_noticed_in_both_directions() -> None:
    for jump in (2 * HOUR, -2 * HOUR):
        watch = ClockWatch(NOON)
        watch.look(NOON, 0)
        watch.look(NOON + jump + HOUR, HOUR)
        assert watch.doubt is not None


def test_a_new_folder_takes_the_clock_as_it_is() -> None:
    watch = ClockWatch()
    watch.look(NOON, 0)
    assert (watch.is_plausible, watch.trusted) == (True, NOON)


@given(st.lists(st.tuples(st.integers(0, 100 * DAY), st.integers(-WHILE_RUNNING, WHILE_RUNNING))))
def test_a_clock_that_goes_with_the_time_is_always_right(steps: list[tuple[int, int]]) -> None:
    watch = ClockWatch(NOON)
    now, passed = NOON, 0
    watch.look(now, passed)
    for span, drift in steps:
        now, passed = now + span + drift, passed + span
        watch.look(now, passed)
        assert watch.is_plausible


@given(st.integers(AT_START + 1, 10_000 * DAY))
def test_a_clock_that_is_too_far_ahead_at_a_start_is_always_doubted(ahead: int) -> None:
    watch = ClockWatch(NOON)
    watch.look(NOON + ahead, 0)
    assert not watch.is_plausible
