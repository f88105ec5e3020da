"""Background checks of a running service: whether it can write, and whether its clock is right."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from shutil import disk_usage

from tollkeeper.engine.clock_watch import WITNESSES, since_machine_start
from tollkeeper.engine.journal.contract import JournalError, Unavailable
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import Effect, Verb
from tollkeeper.engine.runtime import Engine

DISK_S = 0.5
CLOCK_S = 60.0
ROOM = 1024 * 1024
"""Free bytes that a full disk needs before it counts as recovered."""


class AcceptClock(Verb, frozen=True):
    """Trust the clock: an operator has checked it."""

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        engine.clock_watch.accept(engine.clock(), since_machine_start())
        await engine.journal.set_clock(engine.clock_watch.trusted)
        get_logger().info("clock_accepted", by=author)
        return Effect()


async def watch_disk(engine: Engine) -> None:
    """Log when the journal can't be written, and when it can again; runs until cancelled.

    A service that is not ready gets no requests, so this task tries the writes that end the state.
    """
    failing: str | None = None
    while True:
        failure = engine.journal.write_failure()
        if failure is not None and failing is None:
            get_logger().error("journal_failing", folder=str(engine.folder), reason=failure)
        elif failure is None and failing is not None:
            get_logger().info("journal_recovered", folder=str(engine.folder))
        failing = failure
        if failing is not None:
            with suppress(JournalError, OSError):
                if disk_usage(engine.folder).free >= ROOM:
                    await engine.journal.set_clock(engine.clock_watch.trusted)
        await asyncio.sleep(DISK_S)


async def watch_clock(engine: Engine) -> None:
    """Check the clock and store when it was last trusted; runs until cancelled."""
    watch = engine.clock_watch
    start = engine.journal.last_sequence()
    doubt: str | None = None
    while True:
        watch.look(engine.clock(), since_machine_start())
        with suppress(Unavailable):
            if watch.doubt is not None and await _has_witnesses(engine, start):
                watch.accept(engine.clock(), since_machine_start())
        if watch.doubt is not None and doubt is None:
            get_logger().error(
                "clock_doubted",
                reason=watch.doubt,
                waiting="nothing is purged until the clock is right or `toll clock accept` says so",
            )
        elif watch.doubt is None and doubt is not None:
            get_logger().info("clock_trusted")
        doubt = watch.doubt
        if doubt is None:
            with suppress(Unavailable):
                await engine.journal.set_clock(watch.trusted)
        await asyncio.sleep(CLOCK_S)


async def _has_witnesses(engine: Engine, start: int) -> bool:
    """Whether enough payments with their own timestamps arrived that agree with the clock."""
    batches = engine.journal.replay(after=start, kinds=(Kind.PAYMENT,))
    batch = await asyncio.to_thread(next, batches, None)
    return sum(entry.time != entry.arrived for entry in batch or ()) >= WITNESSES
