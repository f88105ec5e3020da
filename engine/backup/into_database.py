"""Move a data folder's journal into a PostgreSQL database, and verify the copy.

An interrupted move goes on where it stopped; until it is done the database can't be served.
"""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple, TypeVar

from tollkeeper.engine.explain.explain import explain
from tollkeeper.engine.folder_key import KEY_FILE, open_folder_key
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.lock import COMMAND_PURPOSE, lock, make_folder
from tollkeeper.engine.journal.postgres.moving import MovingTarget, open_target
from tollkeeper.engine.journal.source import Database, connect_for_reading
from tollkeeper.engine.monitors.outbox_file import ALERTS_FILE
from tollkeeper.engine.progress import Progress, unwatched
from tollkeeper.engine.read_folder import Picture, open_picture
from tollkeeper.engine.registry.past_states import PastStates

_BATCH = 500
_ROWS = f"SELECT {reads.ALL_COLUMNS} FROM journal WHERE place > ? ORDER BY place LIMIT {_BATCH}"
_ENTRIES = (
    "SELECT content, value, from_place, columns, expires_at, note, by, to_place FROM list_entries"
    f" WHERE (content, value, from_place) > (?, ?, ?) ORDER BY content, value, from_place LIMIT {_BATCH}"
)
_OF_JOURNAL = ("idempotency", "list_contents", "list_entries", "seals", "amendments")
_OF_OUTBOX = ("alerts", "standings", "deliveries", "given_up", "followed", "noted")

T = TypeVar("T")


class MovedJournal(NamedTuple):
    """The number of entries, and of payments whose explanations were compared."""

    entries: int
    explained: int


def move_into_database(
    folder: Path, database: Database, sample: int, progress: Progress = unwatched
) -> MovedJournal:
    """Move the journal of a folder that is not served, then compare every entry, every list value
    and the explanations of at least `sample` payments, evenly spread.

    The folder is not changed. Raises `JournalError` for a database that holds another journal, and
    for the first difference.
    """
    schema.require_current(folder)
    with (
        lock(folder, COMMAND_PURPOSE),
        closing(schema.connect_for_reading(folder)) as old,
        open_target(database.url, reads.identity(old)) as target,
    ):
        last = reads.last_sequence(old)
        _move_entries(old, target, last, progress)
        for table in _OF_JOURNAL:
            target.replace(table, *_read_table(old, table))
        _move_outbox(folder / ALERTS_FILE, target)
        _move_key(folder, database)
        numbers = old.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'amendments'"
        ).fetchone()
        target.finish(last, reads.trusted_clock(old), 0 if numbers is None else numbers[0])
    entries = _compare(folder, database)
    return MovedJournal(
        entries, asyncio.run(_compare_explanations(folder, database, sample, progress))
    )


def _move_entries(
    old: sqlite3.Connection, target: MovingTarget, last: int, progress: Progress
) -> None:
    after = target.last_moved()
    while rows := old.execute(_ROWS, (after,)).fetchall():
        target.add_entries(rows)
        after = rows[-1][0]
        progress(0.5 * after / last)


def _read_table(connection: sqlite3.Connection, table: str) -> tuple[list[str], Iterator[Any]]:
    found = connection.execute(f"SELECT * FROM {table}")
    return [column[0] for column in found.description], found


def _move_outbox(path: Path, target: MovingTarget) -> None:
    if not path.exists():
        return
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as outbox:
        there = {name for (name,) in outbox.execute("SELECT name FROM sqlite_master")}
        for table in _OF_OUTBOX:
            if table in there:
                target.replace(table, *_read_table(outbox, table))


def _move_key(folder: Path, database: Database) -> None:
    open_folder_key(folder)
    make_folder(database.folder)
    copied = database.folder / KEY_FILE
    if not copied.exists():
        copyfile(folder / KEY_FILE, copied)
        copied.chmod(0o600)
    elif copied.read_bytes() != (folder / KEY_FILE).read_bytes():
        raise JournalError(
            f"`{copied}` is another key than `{folder / KEY_FILE}`: give another `--data`"
        )


def _compare(folder: Path, database: Database) -> int:
    """Compare all entries; returns how many. Raises `JournalError` for the first that differs."""
    count = 0
    with (
        closing(schema.connect_for_reading(folder)) as old,
        closing(connect_for_reading(database)) as new,
    ):
        for query, first, width in ((_ROWS, (0,), 1), (_ENTRIES, (0, "", 0), 3)):
            after: Sequence[Any] = first
            while True:
                rows = old.execute(query, after).fetchall()
                if rows != new.execute(query, after).fetchall():
                    raise JournalError(f"what follows {after} is not the same in the database")
                if not rows:
                    break
                after = rows[-1][:width]
                count += len(rows) if query is _ROWS else 0
    return count


async def _compare_explanations(
    folder: Path, database: Database, sample: int, progress: Progress
) -> int:
    async with open_picture(folder) as old, open_picture(database) as new:
        payments = await asyncio.to_thread(_sample, old, sample)
        befores, afters = PastStates(old.journal), PastStates(new.journal)
        for number, (account, payment) in enumerate(payments, start=1):
            before = await explain(old.journal, befores, account, payment)
            if before is None or before != await explain(new.journal, afters, account, payment):
                raise JournalError(
                    f"the payment `{payment}` is explained otherwise in the database"
                )
            progress(0.5 + 0.5 * number / len(payments))
    return len(payments)


def _sample(picture: Picture, sample: int) -> list[tuple[int, str]]:
    batches = picture.journal.replay(kinds=(Kind.PAYMENT,))
    return spread(((entry.account, entry.id) for batch in batches for entry in batch), sample)


def spread(every: Iterable[T], least: int) -> list[T]:
    """Evenly spaced items of `every`: at least `least` if there are that many, and fewer than twice
    `least`, also while it reads."""
    kept: list[T] = []
    step = 1
    for number, each in enumerate(every):
        if number % step == 0:
            kept.append(each)
            if len(kept) >= 2 * max(1, least):
                kept, step = kept[::2], 2 * step
    return kept
