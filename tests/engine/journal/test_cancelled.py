"""Who is cancelled while an entry is written is woken once it is kept or lost, not before."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.schema import PAGE_BYTES

pytestmark = pytest.mark.anyio


async def cancelled_while_written(journal, entry):
    """What a task that waits for the entry learns of it, when it is cancelled meanwhile."""
    written = threading.Event()
    step = asyncio.ensure_future(journal.run(lambda _: written.wait()))
    await asyncio.sleep(0)
    learnt = []

    async def keep():
        append = journal.append(entry)
        try:
            await append
        finally:
            learnt.append(append.exception())

    keeping = asyncio.ensure_future(keep())
    await asyncio.sleep(0)
    keeping.cancel()
    await asyncio.sleep(0)
    assert not keeping.done()
    written.set()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    await step
    return learnt[0]


async def test_who_is_cancelled_learns_that_the_entry_was_kept(journal, make):
    assert await cancelled_while_written(journal, make(1)) is None
    assert journal.count() == 1


async def test_who_is_cancelled_learns_that_the_entry_was_lost(journal, place, make):
    await place.break_writer(journal)
    lost = await cancelled_while_written(journal, make(1, body=bytes(2 * PAGE_BYTES)))
    assert isinstance(lost, Unavailable)
    assert journal.count() == 0
