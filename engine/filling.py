"""Fill windows from the journal while traffic goes on, until they cover all of their span."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from tollkeeper.engine.journal.damage import UNREADABLE, Damage, named_damage
from tollkeeper.engine.journal.entries import Stretch
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.labels.known_labels import KnownLabels, known_labels
from tollkeeper.engine.labels.payment_state import past_environments
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import StoredRecords
from tollkeeper.engine.velocity.contract import Fill, Record, SeriesPlan
from tollkeeper.engine.velocity.plan import merge_plans
from tollkeeper.engine.velocity.snapshot import Snapshot

STEP = 500
"""Records counted between two yields to the event loop."""
SEALED = 2_000
"""The most first-seen times of a series that stay in memory unwritten while it is sealed."""


class FillPart(NamedTuple):
    """Series that are filled together, from the records with event times from `since` (µs) on and
    sequence numbers above `after`; earlier records are restored from `snapshot`, if it is given.
    """

    filling: Fill
    plans: Sequence[SeriesPlan]
    since: int
    after: int
    snapshot: Snapshot | None = None


async def fill(
    engine: Engine, account: int, plans: Sequence[SeriesPlan], progress: Progress
) -> None:
    """Fill every series of `plans`; returns once all are whole. `progress` gets the share done."""
    try:
        parts = [part for part in await _register(engine, account, plans) if part.filling.series]
        if not parts:
            return
        # Entries that have a sequence number already must be in the journal before it is read.
        await engine.journal.flush()
        sizes = await asyncio.to_thread(_count_entries, engine.journal, account, parts)
        done, total = 0, max(1, sum(sizes))
        for part, size in zip(parts, sizes, strict=True):

            def share(of_part: float, done: int = done, size: int = size) -> None:
                progress(min(0.99, (done + of_part * size) / total))

            await _restore(engine, part)
            await _count_records(engine, part, share)
            await _seal(engine, part.filling)
            done += size
    except BaseException:
        await engine.windows.keep(account, engine.active[account].plans())
        raise
    progress(1.0)


def _count_entries(journal: Journal, account: int, parts: Sequence[FillPart]) -> list[int]:
    return [journal.count(account, since=part.since, after=part.after) for part in parts]


async def _register(engine: Engine, account: int, plans: Sequence[SeriesPlan]) -> list[FillPart]:
    """Register the series, and say where each part starts: windows as far back as they reach, or
    where the snapshot ends; first-seen times where their file ends.
    """
    windows = [
        replace(plan, ages=False) if plan.ages else plan for plan in plans if plan.over is not None
    ]
    snapshot = engine.snapshot
    restorable = {
        plan.digest
        for plan in merge_plans(windows)
        if snapshot is not None
        and snapshot.covers(account, plan.digest, (plan.over or 0) + engine.windows.late)
    }
    parts = []
    for source in (None,) if snapshot is None else (snapshot, None):
        after = 0 if source is None else source.sequence
        some = [plan for plan in windows if (plan.digest in restorable) is (source is not None)]
        filling = await engine.windows.add(account, some)
        assert filling.reach is not None
        since = max(0, engine.clock() - filling.reach)
        parts.append(FillPart(filling, some, since, after, source))
    by_sequence: dict[int, list[SeriesPlan]] = {}
    for plan in plans:
        if plan.ages:
            sequence = engine.seen_times.sequence(account, plan.digest)
            alone = plan if plan.over is None else replace(plan, over=None)
            by_sequence.setdefault(sequence, []).append(alone)
    for sequence, ages in by_sequence.items():
        parts.append(FillPart(await engine.windows.add(account, ages), ages, 0, sequence))
    return parts


async def _restore(engine: Engine, part: FillPart) -> None:
    """Count what the snapshot holds of the series."""
    filling, snapshot = part.filling, part.snapshot
    for series in filling.series if snapshot is not None else ():
        assert snapshot is not None
        newest = snapshot.newest(filling.account, series)
        for columns in snapshot.columns(filling.account, series):
            await engine.windows.restore(filling, series, newest, [columns])
            await asyncio.sleep(0)


async def _count_records(engine: Engine, part: FillPart, progress: Progress) -> None:
    filling = part.filling
    account = engine.state.accounts[filling.account]
    environments = past_environments(engine, filling.account)
    labels = await asyncio.to_thread(_labels_at_start, engine, part)
    stored = StoredRecords(account, part.plans, environments.at, labels.now.get)
    await _relabel(engine, part, stored, labels)
    stretches = engine.journal.replay_latest(
        filling.account,
        since=part.since,
        after=part.after,
        up_to=filling.up_to,
        kinds=stored.kinds,
    )
    start = None
    while stretch := await _next(stretches):
        records = records_in(stored, stretch, engine.damage)
        while batch := list(islice(records, STEP)):
            await engine.windows.fill(filling, batch)
            await asyncio.sleep(0)
        await engine.seen_times.spool_filled(filling.account, filling.series)
        start = stretch.after if start is None else start
        progress((stretch.sequence - start) / (filling.up_to - start))
    await engine.seen_times.write_filled(filling.account, filling.series, 0)


def _labels_at_start(engine: Engine, part: FillPart) -> KnownLabels:
    """The payments' labels when the filling began; empty when no series reads labels."""
    if not any(plan.labelled for plan in part.plans):
        return KnownLabels()
    filling = part.filling
    return known_labels(engine.journal, filling.account, filling.up_to, part.after)


async def _relabel(
    engine: Engine, part: FillPart, stored: StoredRecords, labels: KnownLabels
) -> None:
    """Count label changes since the snapshot for payments that were restored from it."""
    filling = part.filling
    for id_, before in labels.before.items():
        states = await engine.journal.states(filling.account, id_)
        restored = [entry for entry in states if entry.sequence <= part.after]
        if restored and before != labels.now.get(id_):
            latest = restored[0]._replace(body=restored[-1].body)
            await engine.windows.fill(filling, [stored.relabelled_record(latest, before)])
            await asyncio.sleep(0)


async def _seal(engine: Engine, filling: Fill) -> None:
    while not await engine.windows.seal(filling):
        await engine.seen_times.write_filled(filling.account, filling.series, SEALED)
        await asyncio.sleep(0)
    engine.seen_times.end_filling(filling.account, filling.series, filling.up_to)


async def _next(stretches: Iterator[Stretch]) -> Stretch | None:
    with named_damage():
        return await asyncio.to_thread(next, stretches, None)


def records_in(stored: StoredRecords, stretch: Stretch, damage: Damage) -> Iterator[Record]:
    """The records of a stretch of the journal; an unreadable entry is reported to `damage`."""
    for entry in stretch.fresh:
        try:
            record = stored.record(entry)
        except UNREADABLE as error:
            damage.meet(entry, error)
        else:
            yield record
    for before, after in stretch.amended:
        try:
            record = stored.amended_record(before, after)
        except UNREADABLE as error:
            damage.meet(after, error)
        else:
            yield record
