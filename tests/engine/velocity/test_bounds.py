"""Memory holds what a window's time span holds, and an account over its cap says so."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tollkeeper.engine.velocity.contract import LATE
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


async def test_no_verb_suspends() -> None:
    coroutine = Windows().observe(payment(START, Paid("a")), [])
    with pytest.raises(StopIteration):
        coroutine.send(None)


async def test_a_new_key_with_every_payment_holds_no_more_than_the_span() -> None:
    windows = Windows()
    await filled(windows, 1, [plan("payments", HOUR)])
    within = (HOUR + LATE) // MINUTE
    most = 0
    for number in range(4 * within):
        await windows.observe(payment(START + number * MINUTE, Paid(f"ip-{number}")), [])
        [series] = (await windows.status(1)).series
        assert series.keys == series.entries
        most = max(most, series.keys)
    assert within <= most <= 1.05 * within


async def test_a_busy_key_holds_no_more_than_twice_the_span() -> None:
    windows = Windows()
    await filled(windows, 1, [plan("cards", HOUR)])
    within = (HOUR + LATE) // MINUTE
    for number in range(6 * within):
        await windows.observe(payment(START + number * MINUTE, Paid("a", "x")), [])
        assert (await windows.status(1)).entries <= 2 * within + 1


async def test_keys_that_are_no_longer_used_are_given_back() -> None:
    windows = Windows()
    await filled(windows, 1, [plan("cards", HOUR)])
    for number in range(300):
        await windows.observe(payment(START, Paid(f"ip-{number % 100}", f"card-{number}")), [])
    for number in range(100):
        await windows.observe(payment(START + 3 * DAY + number, Paid("a")), [])
    [series] = (await windows.status(1)).series
    assert (series.keys, series.entries) == (0, 0)


@pytest.mark.parametrize("name", ["payments", "amounts"])
async def test_a_key_whose_first_payment_was_withdrawn_stays_as_long_as_its_next(name: str) -> None:
    windows = Windows()
    await filled(windows, 1, [plan(name, DAY)])
    paid = Paid("a", "x", 5)
    await windows.withdraw(await windows.observe(payment(START, paid), []))
    await windows.observe(payment(START + DAY, paid), [])
    for hour in range(24):
        await windows.observe(payment(START + DAY + LATE + hour * HOUR, Paid("b", "y", 1)), [])
    late = payment(START + 2 * DAY - 1, Paid("c"), arrived=START + 2 * DAY + 23 * HOUR)
    function = "count" if name == "payments" else "sum"
    key = ("a",) if name == "payments" else ("a", "x")
    observation = await windows.observe(late, [(window(name, function, DAY), key)])
    assert observation.values == (1 if name == "payments" else 5,)


async def test_an_account_over_its_cap_gives_up_its_largest_series_and_says_so() -> None:
    windows = Windows(cap=10)
    await filled(windows, 1, [plan("payments"), plan("attempts")])
    reads = [
        (window("payments", "count", HOUR), ("a",)),
        (window("attempts", "count", HOUR), ("a",)),
    ]
    paid = Paid("a", attempts=(1, 2))
    with capture_logs() as logs:
        found = [await windows.observe(payment(START, paid), reads) for _ in range(5)]
    assert [each.values for each in found] == [(1, 2), (2, 4), (3, 6), (4, None), (5, None)]
    assert [each.lost for each in found] == [(), (), (), (1,), (1,)]
    assert logs == [
        {
            "event": "windows_over_cap",
            "account": 1,
            "series": "attempts",
            "cap": 10,
            "log_level": "error",
        }
    ]
    status = await windows.status(1)
    assert status.over_cap
    assert [(each.digest, each.state) for each in status.series] == [
        ("payments", "whole"),
        ("attempts", "over_cap"),
    ]


async def test_a_series_that_was_given_up_can_be_filled_again() -> None:
    windows = Windows(cap=2)
    await filled(windows, 1, [plan("payments")])
    for _ in range(3):
        await windows.observe(payment(START, Paid("a")), [])
    assert (await windows.status(1)).over_cap
    await filled(windows, 1, [plan("payments")], [payment(START, Paid("a"))])
    assert not (await windows.status(1)).over_cap
    read = (window("payments", "count", HOUR), ("a",))
    assert await windows.read(1, START, [read]) == (1,)


async def test_a_longer_window_given_up_while_it_was_filled_leaves_the_shorter_one() -> None:
    windows = Windows(cap=4)
    await filled(windows, 1, [plan("payments", HOUR)])
    await filled(windows, 1, [plan("payments", DAY)], [payment(START, Paid("a")) for _ in range(5)])
    reads = [(window("payments", "count", over), ("a",)) for over in (HOUR, DAY)]
    observation = await windows.observe(payment(START, Paid("a")), reads)
    assert observation.values == (1, None)
    assert observation.lost == (1,)


async def test_one_account_over_its_cap_takes_nothing_from_another() -> None:
    windows = Windows(cap=2)
    for account in (1, 2):
        await filled(windows, account, [plan("payments")])
    for _ in range(3):
        await windows.observe(payment(START, Paid("a"), account=1), [])
    assert (await windows.status(1)).over_cap
    assert not (await windows.status(2)).over_cap


async def test_accounts_over_the_cap_of_all_lose_the_largest_series_of_the_largest_account() -> (
    None
):
    windows = Windows(total_cap=10)
    for account in (1, 2):
        await filled(windows, account, [plan("payments"), plan("attempts")])
    paid = Paid("a", attempts=(1, 2))
    read = (window("payments", "count", HOUR), ("a",))
    with capture_logs() as logs:
        for _ in range(3):
            await windows.observe(payment(START, paid, account=1), [read])
        other = [await windows.observe(payment(START, paid, account=2), [read]) for _ in range(2)]
    assert [each.values for each in other] == [(1,), (2,)]
    assert [(each["event"], each["account"], each["series"]) for each in logs] == [
        ("windows_over_total_cap", 1, "attempts")
    ]
    assert [each.state for each in (await windows.status(2)).series] == ["whole", "whole"]
    assert sum([(await windows.status(account)).entries for account in (1, 2)]) <= 10


async def test_history_that_is_filled_stays_within_the_cap_of_all_accounts() -> None:
    windows = Windows(total_cap=10)
    history = [payment(START, Paid("a")) for _ in range(6)]
    await filled(windows, 1, [plan("payments")], history)
    await filled(windows, 2, [plan("payments")], history[:4])
    assert not (await windows.status(1)).over_cap
    await filled(windows, 3, [plan("payments")], history[:1])
    assert (await windows.status(1)).over_cap
    assert [(await windows.status(account)).entries for account in (2, 3)] == [4, 1]
