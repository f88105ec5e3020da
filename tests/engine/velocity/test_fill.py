"""Series are filled while traffic goes on, and memory is given back."""

from __future__ import annotations

import sys
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.velocity.contract import LATE, AbandonedError, NotWholeError, State
from tollkeeper.engine.velocity.groups import Groups
from tollkeeper.engine.velocity.series import PLAIN
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.engine.velocity.worlds import (
    AGES,
    DAY,
    HOUR,
    KINDS,
    MINUTE,
    START,
    Paid,
    filled,
    payment,
    plan,
    window,
)
from tollkeeper.tests.examples import examples

pytestmark = pytest.mark.anyio

BY_IP = (window("payments", "count", DAY), ("a",))


async def test_a_fill_takes_stored_records_and_what_came_in_meanwhile(windows: Windows) -> None:
    stored = [payment(START + number, Paid("a")) for number in range(3)]
    for record in stored:
        await windows.observe(record, [])
    fill = await windows.add(1, [plan("payments")])
    assert fill.up_to == 3
    await windows.fill(fill, stored[:2])
    await windows.observe(payment(START + 3, Paid("a")), [])
    await windows.fill(fill, stored[2:])
    while not await windows.seal(fill):
        pass
    assert await windows.read(1, START + 3, [BY_IP]) == (4,)


async def test_a_fill_holds_nothing_of_what_came_in_meanwhile_but_what_its_series_count(
    windows: Windows,
) -> None:
    fill = await windows.add(1, [plan("payments")])
    record = payment(START, Paid("a"))
    held = sys.getrefcount(record.state), sys.getrefcount(record.state.payment)
    await windows.observe(record, [])
    assert (sys.getrefcount(record.state), sys.getrefcount(record.state.payment)) == held
    while not await windows.seal(fill):
        pass
    assert await windows.read(1, START, [BY_IP]) == (1,)


async def test_an_update_during_the_fill_of_a_payment_not_yet_filled_counts_once(
    windows: Windows,
) -> None:
    created = payment(START, Paid("a"))
    await windows.observe(created, [])
    fill = await windows.add(1, [plan("payments"), plan("declines")])
    declined = State(payment=Paid("a", status="declined"))
    await windows.observe(replace(created, state=declined, before=created.state), [])
    await windows.fill(fill, [created])
    await windows.seal(fill)
    reads = [BY_IP, (window("declines", "count", DAY), ("a",))]
    assert await windows.read(1, START, reads) == (1, 1)


async def test_a_decision_settled_after_the_fill_read_it_counts_once(windows: Windows) -> None:
    observation = await windows.observe(payment(START, Paid("a")), [])
    decision = Decision(action="deny")
    stored = replace(observation.record, state=replace(observation.record.state, decision=decision))
    await filled(windows, 1, [plan("denied")], [stored])
    await windows.settle(observation, decision)
    read = (window("denied", "count", DAY), ("a",))
    assert await windows.read(1, START, [read]) == (1,)


async def test_a_fill_reaches_as_far_back_as_the_longest_window_and_late_payments(
    windows: Windows,
) -> None:
    fill = await windows.add(1, [plan("payments", HOUR), plan("cards", DAY)])
    assert fill.reach == DAY + LATE
    assert fill.series == ("payments", "cards")
    assert (await windows.add(1, [plan("payments", None, ages=True)])).reach is None


async def test_a_series_that_is_whole_is_not_filled_again(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments", DAY)])
    assert (await windows.add(1, [plan("payments", HOUR)])).series == ()
    assert (await windows.add(1, [plan("payments", 2 * DAY)])).series == ("payments",)


async def test_a_longer_window_is_filled_beside_the_shorter_one(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments", HOUR)])
    old = payment(START, Paid("a"))
    await windows.observe(old, [])
    fill = await windows.add(1, [plan("payments", DAY)])
    short = (window("payments", "count", HOUR), ("a",))
    observed = await windows.observe(payment(START + 2 * HOUR, Paid("a")), [short])
    assert observed.values == (1,)
    await windows.fill(fill, [old])
    await windows.seal(fill)
    assert await windows.read(1, START + 2 * HOUR, [short, BY_IP]) == (1, 2)


async def test_what_no_program_needs_is_given_back(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments", ages=True), plan("cards")])
    await windows.observe(payment(START, Paid("a", "x")), [])
    await windows.keep(1, [plan("cards", HOUR)])
    assert [each.digest for each in (await windows.status(1)).series] == ["cards"]
    with pytest.raises(NotWholeError):
        await windows.read(1, START, [BY_IP])
    with pytest.raises(NotWholeError):
        await windows.read(1, START, [(window("cards", "distinct", DAY), ("a",))])


async def test_an_abandoned_fill_takes_nothing_more(windows: Windows) -> None:
    fill = await windows.add(1, [plan("payments")])
    await windows.keep(1, [])
    with pytest.raises(AbandonedError):
        await windows.fill(fill, [])
    with pytest.raises(AbandonedError):
        await windows.seal(fill)


async def test_the_state_of_a_fill_can_be_seen(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments")])
    await windows.add(1, [plan("cards")])
    await windows.observe(payment(START, Paid("a", "x")), [])
    status = await windows.status(1)
    assert [(each.digest, each.state, each.keys, each.entries) for each in status.series] == [
        ("payments", "whole", 1, 1),
        ("cards", "filling", 0, 0),
    ]
    assert status.entries == 1


facts = st.builds(
    Paid, ip=st.just("a"), card=st.sampled_from(["x", None]), amount=st.integers(0, 9)
)
arrivals = st.lists(
    st.tuples(facts, st.sampled_from([0, 1, MINUTE, HOUR]), st.sampled_from([0, 1, HOUR, DAY])),
    max_size=12,
)
NAMES = ("payments", "cards", "amounts")
READS = [
    (window(name, function, None if function in AGES else over), key)
    for name in NAMES
    for key in [("a", "x") if name == "amounts" else ("a",)]
    for function in KINDS[name].functions
    for over in (MINUTE, DAY)
]


async def values_of(records: list[object]) -> list[tuple[object, ...]]:
    windows = Windows()
    await filled(windows, 1, [plan(name, ages="age" in KINDS[name].functions) for name in NAMES])
    return [(await windows.observe(record, READS)).values for record in records]


def recorded(arrived: list[tuple[Paid, int, int]], now: int = START) -> list[object]:
    records = []
    for paid, step, late in arrived:
        now += step
        records.append(payment(now - late, paid, arrived=now))
    return records


@settings(deadline=None, max_examples=examples(40))
@given(before=arrivals, after=arrivals, instead=arrivals)
async def test_nothing_that_arrives_later_moves_an_aggregate(
    before: list[tuple[Paid, int, int]],
    after: list[tuple[Paid, int, int]],
    instead: list[tuple[Paid, int, int]],
) -> None:
    first = await values_of(recorded(before + after))
    second = await values_of(recorded(before + instead))
    assert first[: len(before)] == second[: len(before)]


@settings(deadline=None, max_examples=examples(40))
@given(before=arrivals, last=facts, late=st.sampled_from([0, 1, HOUR, DAY]))
async def test_a_rebuilt_window_gives_what_the_live_one_gave(
    before: list[tuple[Paid, int, int]], last: Paid, late: int
) -> None:
    records = recorded([*before, (last, 1, late)])
    rebuilt = Windows()
    await filled(
        rebuilt,
        1,
        [plan(name, ages="age" in KINDS[name].functions) for name in NAMES],
        records[:-1],
    )
    observation = await rebuilt.observe(records[-1], READS)
    assert observation.values == (await values_of(records))[-1]


async def test_a_series_that_is_quick_to_read_is_not_looked_through_again() -> None:
    made: list[Stepwise] = []

    class Stepwise(Groups):
        """Groups of which each of three takes a step to be made quick to read."""

        asked = 0

        def prepare(self) -> bool:
            self.asked += 1
            return self.asked > 3

    def groups(*given: Any) -> Stepwise:
        made.append(Stepwise(*given))
        return made[-1]

    held = Windows(memory=PLAIN._replace(groups=groups))
    await filled(held, 1, [plan("payments"), plan("declines")])
    assert [each.asked for each in made] == [4, 4]
