"""Shadows are recorded when the journal takes them, and counted when it does not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.journal.appends import Arrivals
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.shadow_queue import QueuedShadow, ShadowQueue, Trial
from tollkeeper.engine.shadows.record import record_shadows

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class FullJournal:
    """Refuses the first entry, loses the second, and takes the others."""

    def __init__(self) -> None:
        self.asked: list[Entry] = []

    def append(self, entry: Entry) -> asyncio.Future[None]:
        self.asked.append(entry)
        if len(self.asked) == 1:
            raise Unavailable("the disk is full")
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if len(self.asked) == 2:
            written.set_exception(Unavailable("the entry was lost"))
        else:
            written.set_result(None)
        return written


async def test_each_trial_counts_its_own_evaluations_that_were_not_recorded() -> None:
    refused, lost, taken = trials = [trial(name) for name in ("refused", "lost", "taken")]
    queue = ShadowQueue()
    queue.skipped.update({refused: 7, lost: 2, taken: 1})
    for each in trials:
        queue.add(QueuedShadow(each, f"p-{each[2]}", 0, Decision(), Decision))
    recording = asyncio.create_task(record_shadows(engine(queue)))
    async with asyncio.timeout(30):
        while queue.unfinished:
            await asyncio.sleep(0)
    recording.cancel()
    assert dict(queue.skipped) == {refused: 8, lost: 3}


def trial(name: str) -> Trial:
    return 1, "rule", name, 1


def engine(queue: ShadowQueue) -> Any:
    async def take_sequence() -> int:
        return 1

    return SimpleNamespace(
        shadows=queue,
        journal=FullJournal(),
        windows=SimpleNamespace(take_sequence=take_sequence),
        clock=lambda: 0,
        arrivals=Arrivals(lambda: 0, 0),
    )
