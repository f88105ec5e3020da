"""Parts of pages have their turns one by one, once the event loop's other work is done."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from time import perf_counter

import pytest

from tollkeeper.api.console.turns import CROWD, IDLE_S, LONGEST_WAIT_S, Turns

pytestmark = pytest.mark.anyio


async def made_in(parts: int) -> list[tuple[int, int]]:
    """Each part that asks at once, and the turn of the loop in which it was made."""
    turns, made, now = Turns(), list[tuple[int, int]](), 0

    async def count_turns() -> None:
        nonlocal now
        while len(made) < parts:
            now += 1
            await asyncio.sleep(0)

    async def make(number: int) -> None:
        await turns.wait()
        made.append((number, now))

    await asyncio.gather(count_turns(), *map(make, range(parts)))
    return made


async def test_parts_that_ask_at_once_are_made_in_turns_of_their_own_and_in_order() -> None:
    made = await made_in(CROWD - 1)
    assert [number for number, _ in made] == [*range(CROWD - 1)]
    assert all(later > earlier for (_, earlier), (_, later) in pairwise(made))


async def test_a_crowd_is_served_in_few_turns_a_part_of_it_in_each() -> None:
    made = await made_in(100 * CROWD)
    assert [number for number, _ in made] == [*range(100 * CROWD)]
    of_turn = Counter(turn for _, turn in made)
    assert len(of_turn) < 10 * CROWD
    assert max(of_turn.values()) <= 1 + 100


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
