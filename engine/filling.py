"""Fill windows from the journal while traffic goes on, and tell when they are whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

from tollkeeper.engine.engine import Engine
from tollkeeper.engine.events.stored import event_reader
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.update import state_of
from tollkeeper.engine.windows.contract import Record, SeriesPlan

STEP = 500
"""How many records are taken in before the event loop gets its turn."""


async def fill(
    engine: Engine, account: int, plans: Sequence[SeriesPlan], progress: Callable[[float], None]
) -> None:
    """Done once every series of `plans` is whole; `progress` is told the share done, 0 to 1."""
    filling = await engine.windows.add(account, plans)
    if not filling.series:
        return
    # All that was handed a place before now must be in the journal before it is read.
    await engine.journal.written()
    since = 0 if filling.reach is None else max(0, engine.clock() - filling.reach)
    total = max(1, engine.journal.count(account, since=since))
    done = 0
    batches = engine.journal.replay_latest(account, since=since, up_to=filling.up_to)
    read_event = event_reader(engine.state.accounts[account])
    while batch := await asyncio.to_thread(next, batches, None):
        for start in range(0, len(batch), STEP):
            await engine.windows.fill(filling, records(batch[start : start + STEP], read_event))
            await asyncio.sleep(0)
        done += len(batch)
        progress(min(0.99, done / total))
    while not await engine.windows.seal(filling):
        await asyncio.sleep(0)
    progress(1.0)


def records(entries: Iterable[Entry], read_event: Callable[[Entry], Record]) -> Iterator[Record]:
    """Stored payments, each as known by now, and events, as the windows take them in."""
    for entry in entries:
        if entry.kind == Kind.PAYMENT:
            state = state_of(entry, entry)
            yield Record(entry.account, entry.id, entry.time, entry.arrived, state)
        else:
            yield read_event(entry)
