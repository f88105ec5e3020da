"""All records that an aggregate counted for a decision, page by page, newest first."""

from __future__ import annotations

import asyncio

from tollkeeper.engine.explain.evidence import AggregateRead, counted_record, counted_values
from tollkeeper.engine.explain.explain import LOOKED_THROUGH, Past, history_reads, past_of
from tollkeeper.engine.explain.records import ItemPage
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.programs.compile.explain import CountedRecord
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.past_states import PastStates
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.stored_records import StoredRecords


async def counted_page(
    journal: Journal,
    past_states: PastStates,
    account: int,
    payment_id: str,
    kind: Decider,
    index: int,
    cursor: int | None,
    limit: int,
) -> ItemPage[CountedRecord]:
    """The records that aggregate `index` of the rule or scorecard counted when the payment was
    decided.

    Each record is as it was then, without what was erased or purged since. A record with several
    values is listed once for each. Raises `NotFound` for the payment, and for an aggregate that was
    not read.
    """
    past = await past_of(journal, past_states, account, payment_id)
    if past is None:
        raise NotFound("id", "no payment has this id")
    return await asyncio.to_thread(_page, past, kind, index, cursor, limit)


def _page(
    past: Past, kind: Decider, index: int, cursor: int | None, limit: int
) -> ItemPage[CountedRecord]:
    reading, reads = history_reads(past, kind)
    if index >= len(reads):
        raise NotFound(
            "index", f"the {kind} read {len(reads)} aggregates of history for the payment"
        )
    read, created = reads[index], past.created
    if read.key is None or (read.window.over is None and _says_no_time(read)):
        return ItemPage([], None)
    entries = past.journal.entries_back(
        created.account,
        _times(read),
        up_to=created.sequence,
        before=created.sequence + 1 if cursor is None else cursor,
        most=LOOKED_THROUGH,
    )
    stored = StoredRecords(past.account, reading.plan.series, past.environments.at, past.label_of)
    leaves_out_reader = read.window.over is None or read.window.earlier
    counted: list[CountedRecord] = []
    for entry in entries:
        is_reader = entry.sequence == created.sequence
        if entry.kind not in stored.kinds or (is_reader and leaves_out_reader):
            continue
        record = stored.record(entry._replace(outcome=None) if is_reader else entry)
        counted += [
            counted_record(read.window.type, *each) for each in counted_values(read, [record])
        ]
        if len(counted) >= limit:
            return ItemPage(counted, entry.sequence)
    return ItemPage(counted, entries[-1].sequence if len(entries) == LOOKED_THROUGH else None)


def _says_no_time(read: AggregateRead) -> bool:
    """Whether it reads all of history and its value points to no single record."""
    return read.value is None or isinstance(read.value, bool) or read.window.function == "streak"


def _times(read: AggregateRead) -> tuple[int, int]:
    """The first and the last event time (µs) that it counts."""
    if read.window.over is not None:
        return read.at - read.window.over + 1, read.at
    time = read.at - int(read.value or 0)
    return time, time
