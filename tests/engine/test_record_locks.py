"""A lock is granted in the order of requests, to one at a time, and whoever waits too long is told."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine import record_locks
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.record_locks import RecordLock, RecordLocks

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Counter:
    """Who holds a lock, and who held it, in order."""

    def __init__(self) -> None:
        self.lock = RecordLock()
        self.held: list[int] = []
        self._is_held = False

    async def hold(self, number: int, turns: int) -> None:
        async with self.lock:
            assert not self._is_held
            self._is_held = True
            self.held.append(number)
            try:
                for _ in range(turns):
                    await asyncio.sleep(0)
            finally:
                self._is_held = False


moves = st.lists(
    st.tuples(st.just("hold"), st.integers(0, 3))
    | st.tuples(st.just("cancel"), st.integers(0, 9))
    | st.tuples(st.just("give up"), st.integers(0, 9))
    | st.tuples(st.just("wait"), st.integers(0, 3)),
    max_size=30,
)


@given(moves)
def test_one_at_a_time_holds_it_in_order_whoever_is_cancelled_or_gives_up(
    moves: list[tuple[str, int]],
) -> None:
    async def move() -> None:
        counter, tasks = Counter(), list[asyncio.Task[None]]()
        for what, number in moves:
            match what:
                case "hold":
                    tasks.append(asyncio.create_task(counter.hold(len(tasks), number)))
                case "cancel" if number < len(tasks):
                    tasks[number].cancel()
                case "give up":
                    for turn in list(counter.lock._turns)[number : number + 1]:
                        record_locks._give_up(turn)
                case "wait":
                    for _ in range(number):
                        await asyncio.sleep(0)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert counter.held == sorted(counter.held)
        assert {n for n, outcome in enumerate(outcomes) if outcome is None} <= {*counter.held}
        assert not counter.lock.locked()
        assert not counter.lock._turns

    asyncio.run(move())


async def test_whoever_waits_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_locks, "TURN_PATIENCE_S", 0.01)
    locks = RecordLocks()
    async with locks.of("payment", 1, "p"):
        with pytest.raises(Unavailable, match="takes long"):
            async with locks.of("payment", 1, "p"):
                pass
        async with locks.of("payment", 1, "other"), locks.of("payment", 2, "p"):
            assert len(locks) == 3
    assert not locks.of("payment", 1, "p").locked()
