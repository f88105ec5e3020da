"""Verify a data folder or a backup: every file, every entry, and whether they belong together."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tollkeeper.engine.backup.backup import databases, read_manifest
from tollkeeper.engine.backup.restore import require_whole
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.inspect import Inspection, JournalFault, inspect_journal
from tollkeeper.engine.journal.side_file import belongs_to
from tollkeeper.engine.journal.source import JournalSource, connect_for_reading, shards_of
from tollkeeper.engine.progress import Progress, unwatched
from tollkeeper.engine.registry.changes import decode_change
from tollkeeper.engine.stored_records import decode_decision, decode_event, decode_recorded

MOST_OF_A_FILE = 20
"""The most faults that are listed of one file's structure."""


@dataclass(slots=True)
class VerifyReport:
    """The result: entries by kind, how many of them are sealed, and the faults.

    `files` are those that were checked; `more` counts the faults that are not listed.
    """

    files: list[Path]
    entries: Counter[str] = field(default_factory=Counter)
    sealed: int = 0
    without_checksum: int = 0
    faults: list[JournalFault] = field(default_factory=list)
    more: int = 0


def verify(source: JournalSource, progress: Progress = unwatched) -> VerifyReport:
    """Check everything, also while a service is running; nothing is changed.

    Raises `JournalError` where there is no journal, or one of another version.
    """
    if isinstance(source, Path):
        return _verify_folder(source, progress)
    report = VerifyReport([])
    shards = shards_of(source)
    for number, each in enumerate(shards, start=1):
        with closing(connect_for_reading(each)) as connection:
            inspection = inspect_journal(connection, fault_of_entry, progress)
        _add(report, inspection, f"shard {number}: " if len(shards) > 1 else "")
    return report


def _verify_folder(folder: Path, progress: Progress) -> VerifyReport:
    journal = folder / schema.DATABASE_FILE
    if not journal.exists():
        raise JournalError(f"there is no `{journal}`")
    report = VerifyReport(databases(folder))
    manifest = read_manifest(folder)
    if manifest is not None:
        try:
            require_whole(folder, manifest, unwatched)
        except JournalError as error:
            report.faults.append(JournalFault(None, str(error)))
    for path in report.files:
        report.faults += _structure(path)
    # Perhaps only an index is damaged: then the entries can still be checked.
    try:
        schema.require_current(folder)
        with closing(schema.connect_for_reading(folder)) as connection:
            identity = reads.identity(connection)
            inspection = inspect_journal(connection, fault_of_entry, progress)
    except sqlite3.DatabaseError as error:
        report.faults.append(JournalFault(None, f"`{journal}` can't be read: {error}"))
        return report
    _add(report, inspection)
    for path in report.files:
        if path != journal and not _fits(path, identity):
            report.faults.append(JournalFault(None, f"`{path}` belongs to another journal"))
    return report


def _add(report: VerifyReport, inspection: Inspection, where: str = "") -> None:
    report.entries += inspection.kinds
    report.sealed += inspection.sealed
    report.without_checksum += inspection.without_checksum
    report.more += inspection.more
    report.faults += [
        JournalFault(each.sequence, f"{where}{each.text}") for each in inspection.faults
    ]


def fault_of_entry(entry: Entry) -> str | None:
    """Why an entry's contents can't be read; None when they can."""
    try:
        if entry.kind == Kind.CHANGE:
            decode_change(entry)
        else:
            _BODIES.get(entry.kind, msgspec.json.decode)(entry.body)
        if entry.outcome:
            is_payment = entry.kind == Kind.PAYMENT
            (decode_decision if is_payment else msgspec.json.decode)(entry.outcome)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return str(error)
    return None


_BODIES: Mapping[int, Callable[[bytes], object]] = {
    Kind.PAYMENT: decode_recorded,
    Kind.UPDATE: decode_recorded,
    Kind.EVENT: decode_event,
}


def _structure(path: Path) -> list[JournalFault]:
    """The faults that SQLite finds in a file's pages and indexes."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA query_only = ON")
            found = connection.execute(f"PRAGMA integrity_check({MOST_OF_A_FILE})").fetchall()
    except sqlite3.DatabaseError as error:
        return [JournalFault(None, f"`{path}` can't be read: {error}")]
    lines = [line for (text,) in found for line in str(text).splitlines()]
    return [
        JournalFault(None, f"`{path}`: {line}")
        for line in lines[:MOST_OF_A_FILE]
        if line != "ok" and not line.startswith("***")
    ]


def _fits(path: Path, identity: str) -> bool:
    try:
        return belongs_to(path, identity)
    except sqlite3.DatabaseError:
        # Reported already, as a file that can't be read.
        return True
