"""Arrivals grow with sequence numbers, whatever waited between the two."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.journal.appends import SET_BACK, Arrivals
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.journal.reads import sequence_at
from tollkeeper.tests.engine.happenings import HOUR, RULE, bare, instant, label, pay
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop
from tollkeeper.tests.engine.test_enter_alerts import SIGN_IN
from tollkeeper.tests.engine.test_open import held, killed

pytestmark = pytest.mark.anyio
Happens = Callable[[Shop], Awaitable[None]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 3 * SET_BACK))))
def test_arrivals_grow_however_long_each_waited(moves: list[tuple[int, int]]) -> None:
    now = 10 * SET_BACK
    arrivals = Arrivals(lambda: now, 0)
    ordered = []
    for passed, waited in moves:
        now += passed
        ordered.append(arrivals.put_in_order(now - waited))
        assert now - waited <= ordered[-1] <= now
    assert ordered == sorted(ordered)


def test_a_clock_that_was_set_back_is_followed() -> None:
    arrivals = Arrivals(lambda: 1, SET_BACK + 2)
    assert [arrivals.put_in_order(at) for at in (1, 2, 0)] == [1, 2, 2]


async def sign_in(shop: Shop) -> None:
    sent = {"id": "e", "type": "sign_in", "data": {"user_id": "u"}}
    await shop.happen({**sent, "timestamp": instant(shop.now)})


async def at(shop: Shop, moment: int, happens: Happens) -> None:
    """It happens now, to a request that arrived at this moment."""
    now, shop.now = shop.now, moment
    await happens(shop)
    shop.now = now


def kept(shop: Shop) -> list[Entry]:
    return [entry for some in shop.engine.journal.replay() for entry in some]


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda shop: pay(shop, "waited", bare()), id="payment"),
        pytest.param(lambda shop: shop.update("first", {"status": "failed"}), id="update"),
        pytest.param(lambda shop: label(shop, "first", "review", "fraud"), id="label"),
        pytest.param(sign_in, id="event"),
    ],
)
async def test_what_waited_is_found_where_it_was_put(tmp_path: Path, happens: Happens) -> None:
    async with open_shop(tmp_path / "live") as shop:
        await shop.publish(RULE)
        await shop.publish(SIGN_IN, "event", "sign_in")
        await pay(shop, "first", bare())
        arrived = shop.now = shop.now + HOUR
        for number in range(5):
            shop.now += 1
            await pay(shop, f"meanwhile-{number}", bare())
        await at(shop, arrived, happens)
        now, live, journal = shop.now, await held(shop), shop.engine.journal
        last = journal.last_sequence()
        assert await journal.query(partial(sequence_at, time=arrived + 1)) == last - 5
        assert await journal.query(partial(sequence_at, time=now)) == last - 1
        folder = killed(tmp_path / "live", tmp_path / "killed")
    async with open_shop(folder, now) as again:
        assert await held(again) == live
        await at(again, arrived, lambda shop: pay(shop, "after a start", bare()))
        assert all(one.arrived <= next_.arrived for one, next_ in pairwise(kept(again)))
