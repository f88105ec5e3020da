"""Verify the files derived from the journal, by counting the journal again.

The snapshot of the windows and the first-seen times must hold exactly the elements that the journal
leads to. Elements are compared by their number and a sum of their hashes, so that a recount needs
no more memory than the start of a service.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tollkeeper.engine.filling import records_in
from tollkeeper.engine.journal.damage import Damage
from tollkeeper.engine.journal.inspect import JournalFault
from tollkeeper.engine.journal.source import JournalSource, folder_of
from tollkeeper.engine.labels.known_labels import known_labels
from tollkeeper.engine.lists.contents import build_contents
from tollkeeper.engine.programs.load import load_account
from tollkeeper.engine.progress import Progress, unwatched
from tollkeeper.engine.read_folder import Picture, read_folder
from tollkeeper.engine.registry.environments import PastEnvironments
from tollkeeper.engine.registry.past_states import PastStates
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.stored_records import StoredRecords
from tollkeeper.engine.velocity import first_seen_file
from tollkeeper.engine.velocity.contract import Columns, Group, SeriesPlan
from tollkeeper.engine.velocity.first_seen import MemorySeenTimes
from tollkeeper.engine.velocity.plan import merge_plans
from tollkeeper.engine.velocity.snapshot import (
    FILE,
    Snapshot,
    SnapshotError,
    SnapshotOrigin,
    look_through,
)
from tollkeeper.engine.velocity.windows import Windows

_TIMES = "SELECT seen, time, count FROM moments WHERE series = ?"


@dataclass(slots=True)
class RecountReport:
    """How many series were compared, and those that differ."""

    series: int = 0
    faults: list[JournalFault] = field(default_factory=list)


class Content(NamedTuple):
    """The number of a series' elements, and the sum of their hashes."""

    elements: int
    total: int


def recount(source: JournalSource, progress: Progress = unwatched) -> RecountReport:
    """Recount the series that active programs read and the folder's files hold; changes nothing.

    Raises `JournalError`.
    """
    found, folder = RecountReport(), folder_of(source)

    async def ask(picture: Picture) -> None:
        snapshot = _open_snapshot(folder, picture, found)
        accounts = list(picture.state.accounts.values())
        for position, account in enumerate(accounts):
            lists = {name: build_contents(each.spec, ()) for name, each in account.lists.items()}
            plans = load_account(account, lists).plans()
            if snapshot is not None:
                await _recount_windows(picture, account, plans, snapshot, found)
            await _recount_first_seen(folder, picture, account, plans, found)
            progress((position + 1) / len(accounts))

    read_folder(source, ask)
    return found


def _open_snapshot(folder: Path, picture: Picture, found: RecountReport) -> Snapshot | None:
    journal = picture.journal

    def is_ours(origin: SnapshotOrigin) -> bool:
        is_of_journal = origin.journal == journal.identity()
        return is_of_journal and origin.sequence <= journal.last_sequence()

    try:
        return look_through(folder / FILE, is_ours)
    except FileNotFoundError:
        return None
    except (OSError, SnapshotError) as error:
        text = f"`{folder / FILE}` can't be used: {error}; a start leaves it, and reads the journal"
        found.faults.append(JournalFault(None, text))
        return None


async def _recount_windows(
    picture: Picture,
    account: Account,
    plans: Sequence[SeriesPlan],
    snapshot: Snapshot,
    found: RecountReport,
) -> None:
    number = account.number
    reaches: dict[str, int] = {}
    held = []
    for plan in merge_plans(plan for plan in plans if plan.over is not None):
        reach = snapshot.reach(number, plan.digest)
        if reach is not None:
            reaches[plan.digest] = reach
            held.append(replace(plan, ages=False))
    if not held:
        return
    late = max(reaches[plan.digest] - (plan.over or 0) for plan in held)
    windows = Windows(snapshot.sequence, sys.maxsize, late, total_cap=sys.maxsize)
    since = min(snapshot.newest(number, digest) - reach for digest, reach in reaches.items())
    await _fill(picture, account, held, windows, max(0, since))
    counted: dict[str, list[Columns]] = {digest: [] for digest in reaches}
    for part in windows.snapshot():
        counted[part.series].append(part.columns)
    for digest, reach in reaches.items():
        horizon = snapshot.newest(number, digest) - reach
        kept = _content(snapshot.columns(number, digest), horizon)
        _compare(found, FILE, account, digest, kept, _content(counted[digest], horizon))


async def _recount_first_seen(
    folder: Path,
    picture: Picture,
    account: Account,
    plans: Sequence[SeriesPlan],
    found: RecountReport,
) -> None:
    path = folder / first_seen_file.AGES_FILE
    if not path.exists():
        return
    for plan in merge_plans(replace(plan, over=None) for plan in plans if plan.ages):
        stored = _stored_times(path, account.number, plan.digest)
        if stored is None:
            continue
        sequence, kept = stored
        sums = _SumOfTimes()
        windows = Windows(sequence, seen_times=partial(_same_sums, sums), total_cap=sys.maxsize)
        await _fill(picture, account, [plan], windows, 0)
        counted = Content(sums.elements, sums.total)
        _compare(found, path.name, account, plan.digest, kept, counted)


async def _fill(
    picture: Picture,
    account: Account,
    plans: Sequence[SeriesPlan],
    windows: Windows,
    since: int,
) -> None:
    """Count the journal's entries up to the sequence number after which the windows begin."""
    filling = await windows.add(account.number, plans)
    environments = PastEnvironments(picture.journal, PastStates(picture.journal), account)
    labels = known_labels(picture.journal, account.number, filling.up_to)
    stored = StoredRecords(account, plans, environments.at, labels.now.get)
    stretches = picture.journal.replay_latest(
        account.number, since=since, up_to=filling.up_to, kinds=stored.kinds
    )
    for stretch in stretches:
        await windows.fill(filling, records_in(stored, stretch, Damage("skip")))
    while not await windows.seal(filling):
        pass


def _stored_times(path: Path, account: int, digest: str) -> tuple[int, Content] | None:
    """The sequence number up to which the file has a series, and its content; None when incomplete."""
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        row = connection.execute(
            "SELECT id, place FROM series WHERE account = ? AND digest = ? AND place IS NOT NULL",
            (account, digest),
        ).fetchone()
        if row is not None:
            elements = total = 0
            for seen, time, count in connection.execute(_TIMES, (row[0],)):
                elements += count
                total += count * hash((seen, time))
            return row[1], Content(elements, total)
    return None


def _content(parts: Iterable[Columns], horizon: int) -> Content:
    """The content of the elements later than `horizon` (µs)."""
    elements = total = 0
    for keys, counts, packed, values in parts:
        times, at = array("q", packed), 0
        for key, count in zip(keys, counts, strict=True):
            for each in range(at, at + count):
                if times[each] > horizon:
                    elements += 1
                    total += hash((key, times[each], values[each] if values else None))
            at += count
    return Content(elements, total)


def _compare(
    found: RecountReport, file: str, account: Account, digest: str, kept: Content, counted: Content
) -> None:
    found.series += 1
    if kept != counted:
        difference = (
            f"`{file}` has {kept.elements} elements of the series `{digest[:12]}` of account"
        )
        more = f"{difference} {account.number}, and a recount of the journal {counted.elements}"
        others = " others" if kept.elements == counted.elements else ""
        found.faults.append(JournalFault(None, f"{more}{others}: remove the file and start again"))


def _same_sums(sums: _SumOfTimes, _account: int, _series: str) -> _SumOfTimes:
    return sums


class _SumOfTimes(MemorySeenTimes):
    """Keeps only the number and the sum of hashes of the first-seen times."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0
        self.total = 0

    def add(self, group: Group, time: int) -> None:
        self.elements += 1
        self.total += hash((first_seen_file.hash_group(group), time))

    def remove(self, group: Group, time: int) -> None:
        self.elements -= 1
        self.total -= hash((first_seen_file.hash_group(group), time))
