"""What every implementation of windows promises, said in small cases."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.velocity.contract import NotWholeError, Record, State
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.engine.velocity.worlds import (
    DAY,
    HOUR,
    MINUTE,
    START,
    Paid,
    filled,
    payment,
    plan,
    window,
)

pytestmark = pytest.mark.anyio

BY_IP = (window("payments", "count", HOUR), ("a",))


async def arrive(windows: Windows, record: Record, *reads: Any) -> tuple[Any, ...]:
    return (await windows.observe(record, reads)).values


async def test_the_current_payment_is_in_its_window(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments")])
    assert await arrive(windows, payment(START, Paid("a")), BY_IP) == (1,)


async def test_a_window_leaves_out_its_beginning_and_takes_in_its_end(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments")])
    await arrive(windows, payment(START, Paid("a")))
    await arrive(windows, payment(START + 1, Paid("a")))
    assert await arrive(windows, payment(START + HOUR, Paid("a")), BY_IP) == (2,)


async def test_of_two_at_one_time_the_first_to_arrive_is_earlier(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments", ages=True)])
    reads = (BY_IP, (window("payments", "interval"), ("a",)))
    assert await arrive(windows, payment(START, Paid("a")), *reads) == (1, None)
    assert await arrive(windows, payment(START, Paid("a")), *reads) == (2, 0)


async def test_a_late_payment_reads_and_counts_where_it_belongs(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments")])
    await arrive(windows, payment(START, Paid("a")))
    await arrive(windows, payment(START + DAY, Paid("a")))
    late = payment(START + MINUTE, Paid("a"), arrived=START + DAY)
    assert await arrive(windows, late, BY_IP) == (2,)
    assert await arrive(windows, payment(START + DAY, Paid("a")), BY_IP) == (2,)


async def test_a_missing_key_makes_the_aggregate_missing(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments")])
    read = (window("payments", "count", HOUR), None)
    assert await arrive(windows, payment(START, Paid(None)), read) == (None,)


async def test_an_update_counts_from_when_it_arrives(windows: Windows) -> None:
    await filled(windows, 1, [plan("declines"), plan("payments")])
    reads = ((window("declines", "count", HOUR), ("a",)), BY_IP)
    before = payment(START, Paid("a"))
    await arrive(windows, before)
    assert await arrive(windows, payment(START + MINUTE, Paid("a")), *reads) == (0, 2)
    state = State(payment=Paid("a", status="declined"))
    update = replace(before, arrived=START + MINUTE, state=state, before=before.state)
    await arrive(windows, update)
    assert await arrive(windows, payment(START + MINUTE, Paid("a")), *reads) == (1, 3)


async def test_an_update_moves_a_payment_to_its_new_key(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments", ages=True)])
    before = payment(START, Paid("b"))
    await arrive(windows, before)
    after = replace(before, state=State(payment=Paid("a")), before=before.state)
    await arrive(windows, after)
    reads = [
        (window("payments", function, over), key)
        for key in (("a",), ("b",))
        for function, over in (("count", HOUR), ("age", None))
    ]
    assert await windows.read(1, START + 5, reads) == (1, 5, 0, None)


async def test_what_was_decided_counts_once_it_is_settled(windows: Windows) -> None:
    await filled(windows, 1, [plan("denied")])
    read = (window("denied", "count", HOUR), ("a",))
    observation = await windows.observe(payment(START, Paid("a")), [read])
    assert observation.values == (0,)
    await windows.settle(observation, Decision(action="deny"))
    assert await arrive(windows, payment(START, Paid("a")), read) == (1,)


async def test_a_withdrawn_payment_leaves_nothing(windows: Windows) -> None:
    await filled(windows, 1, [plan("denied"), plan("payments", ages=True)])
    reads = [
        (window("denied", "count", HOUR), ("a",)),
        BY_IP,
        (window("payments", "age"), ("a",)),
    ]
    observation = await windows.observe(payment(START, Paid("a")), reads)
    settled = await windows.settle(observation, Decision(action="deny"))
    await windows.withdraw(settled)
    assert await windows.read(1, START, reads) == (0, 0, None)


async def test_a_withdrawn_update_leaves_what_was_before(windows: Windows) -> None:
    await filled(windows, 1, [plan("declines")])
    before = payment(START, Paid("a", status="declined"))
    await arrive(windows, before)
    update = replace(before, state=State(payment=Paid("a")), before=before.state)
    await windows.withdraw(await windows.observe(update, []))
    read = (window("declines", "count", HOUR), ("a",))
    assert await windows.read(1, START, [read]) == (1,)


async def test_every_record_takes_a_place_of_its_own(windows: Windows) -> None:
    first = await windows.observe(payment(START, Paid("a")), [])
    between = await windows.take_sequence()
    second = await windows.observe(payment(START, Paid("a"), account=2), [])
    assert first.sequence < between < second.sequence


async def test_accounts_see_nothing_of_each_other(windows: Windows) -> None:
    for account in (1, 2):
        await filled(windows, account, [plan("payments")])
    await arrive(windows, payment(START, Paid("a"), account=2))
    assert await arrive(windows, payment(START, Paid("a"), account=1), BY_IP) == (1,)


async def test_events_and_payments_stand_in_series_of_their_own(windows: Windows) -> None:
    await filled(windows, 1, [plan("signins"), plan("payments")])
    signed_in = Record(1, "e", START, START, State(data={"user": "u"}), event="signin")
    read = (window("signins", "count", HOUR), ("u",))
    assert await arrive(windows, signed_in, read) == (1,)
    assert await arrive(windows, payment(START, Paid("a")), read, BY_IP) == (1, 1)


async def test_a_read_of_a_series_that_is_not_whole_is_refused_and_counts_nothing(
    windows: Windows,
) -> None:
    with pytest.raises(NotWholeError, match="`payments` is not filled"):
        await arrive(windows, payment(START, Paid("a")), BY_IP)
    fill = await windows.add(1, [plan("payments")])
    with pytest.raises(NotWholeError):
        await arrive(windows, payment(START, Paid("a")), BY_IP)
    assert await windows.seal(fill)
    assert await windows.read(1, START, [BY_IP]) == (0,)


async def test_a_longer_window_than_was_filled_is_refused(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments", HOUR)])
    with pytest.raises(NotWholeError):
        await windows.read(1, START, [(window("payments", "count", DAY), ("a",))])


async def test_a_payment_older_than_can_arrive_reads_nothing_and_says_so(windows: Windows) -> None:
    await filled(windows, 1, [plan("payments")])
    await arrive(windows, payment(START + 2 * DAY, Paid("a")))
    late = payment(START, Paid("a"), arrived=START + 2 * DAY)
    observation = await windows.observe(late, [BY_IP])
    assert observation.values == (None,)
    assert observation.lost == (0,)


async def test_sums_of_doubles_are_exact_in_any_order(windows: Windows) -> None:
    await filled(windows, 1, [plan("ratios")])
    for ratio in (1e308, 1e308, -1e308, 0.1, 0.2, -1e308):
        await arrive(windows, payment(START, Paid("a", ratio=ratio)))
    read = (window("ratios", "sum", HOUR), ("a",))
    assert await windows.read(1, START, [read]) == (0.1 + 0.2,)


async def test_a_sum_past_38_digits_is_missing(windows: Windows) -> None:
    await filled(windows, 1, [plan("amounts")])
    read = (window("amounts", "sum", HOUR), ("a", "x"))
    for amount, total in ((10**38 - 1, 10**38 - 1), (1, None), (-1, 10**38 - 1)):
        found = await arrive(windows, payment(START, Paid("a", "x", amount)), read)
        assert found == (total,)


async def test_a_sum_of_durations_past_their_limit_is_missing(windows: Windows) -> None:
    await filled(windows, 1, [plan("spent")])
    read = (window("spent", "sum", HOUR), ("a",))
    for amount, total in ((10**18, 10**18), (1, None), (-1, 10**18)):
        assert await arrive(windows, payment(START, Paid("a", amount=amount)), read) == (total,)
