"""Parts of pages have their turns one by one, once the event loop's other work is done."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from time import perf_counter

import pytest

from tollkeeper.api.console.turns import IDLE_S, LONGEST_WAIT_S, Turns

pytestmark = pytest.mark.anyio


async def test_parts_that_ask_at_once_are_made_in_turns_of_their_own_and_in_order() -> None:
    turns, seen, now = Turns(), list[tuple[int, int]](), 0

    async def count_turns() -> None:
        nonlocal now
        while len(seen) < 20:
            now += 1
            await asyncio.sleep(0)

    async def make(number: int) -> None:
        await turns.wait()
        seen.append((number, now))

    await asyncio.gather(count_turns(), *map(make, range(20)))
    assert [number for number, _ in seen] == [*range(20)]
    made_in = [turn for _, turn in seen]
    assert all(later > earlier for earlier, later in pairwise(made_in))


async def test_other_work_that_is_there_goes_first() -> None:
    turns, made = Turns(patience_s=60), list[str]()
    left = 3

    def work() -> None:
        nonlocal left
        made.append("work")
        left -= 1
        until = perf_counter() + 2 * IDLE_S
        while perf_counter() < until:
            pass
        if left:
            asyncio.get_running_loop().call_soon(work)

    async def make() -> None:
        await turns.wait()
        made.append("part")

    part = asyncio.create_task(make())
    asyncio.get_running_loop().call_soon(work)
    await part
    assert made == ["work", "work", "work", "part"]


async def test_a_part_is_made_however_much_other_work_there_is() -> None:
    turns, is_busy = Turns(), True

    def work() -> None:
        until = perf_counter() + LONGEST_WAIT_S
        while perf_counter() < until:
            pass
        if is_busy:
            asyncio.get_running_loop().call_soon(work)

    asyncio.get_running_loop().call_soon(work)
    for _ in range(3):
        await turns.wait()
    is_busy = False


async def test_whoever_leaves_before_its_turn_keeps_nobody_waiting() -> None:
    turns = Turns()
    leaving, staying = (asyncio.create_task(turns.wait()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await staying
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await turns.wait()
