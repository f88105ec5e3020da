"""The way of an export: what the journal brought since the last one, and what was altered in it.

An export reads beside a running service. Each day is a file of its own for each table, written again
as a whole when something in it is new, was erased or was purged. An export that was cut off is
finished by the next one.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.columns.configuration import write_configuration
from tollkeeper.engine.columns.days import (
    PaymentDay,
    added_to,
    alterations,
    day_of,
    payment_days,
    unaltered,
)
from tollkeeper.engine.columns.layout import (
    COLUMNS_FORMAT,
    DAY_TABLES,
    PROGRESS,
    ExportProgress,
    WrittenDay,
    day_file,
    day_number,
    exported_accounts,
    forget_exported,
    read_progress,
    write_progress,
)
from tollkeeper.engine.columns.tables import (
    LABEL_SCHEMA,
    day_windows,
    payments_schema,
    put_labels,
    put_payments,
    states_schema,
)
from tollkeeper.engine.columns.windows import ReadingVersion, ReadValues, reading_versions
from tollkeeper.engine.columns.write import parquet_file, remove_file
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.damage import named_damage, named_target
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.lock import LOCK_FILE, lock
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.accounts import find_account
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.engine.registry.state import Account, Configuration, fold_changes

_PURPOSE = "export"


class ExportedAccount(Struct, frozen=True):
    """`sequence` is how far it came; `written` are the days that were written, `days` all there are."""

    account: str
    sequence: int
    payments: int
    days: int
    written: tuple[str, ...]


class ExportSummary(Struct, frozen=True):
    """What an export did; `removed` are the accounts that are gone from the service and so from it."""

    accounts: tuple[ExportedAccount, ...]
    removed: tuple[str, ...]


def export_columns(
    folder: Path, target: Path, account_name: str | None, progress: Progress = lambda _share: None
) -> ExportSummary:
    """Brings `target` up to the journal of a data folder: one account's, or those of all live ones.

    Raises `NotFound` for the account, `JournalError` for a journal that can't be read and a target
    that can't be written or is something else than an export of the same journal.
    """
    schema.require_current(folder)
    with (
        lock(target, _PURPOSE),
        named_target(target),
        closing(schema.connect_for_reading(folder)) as connection,
    ):
        _require_export(target)
        changes = list(recorded_changes(reads.changes(connection, 0)))
        state = fold_changes(Configuration(), changes)
        accounts = (
            [each for each in state.accounts.values() if each.live is None]
            if account_name is None
            else [_find_live(state, account_name)]
        )
        journal = reads.identity(connection)
        exported = []
        for position, account in enumerate(accounts):
            own = [each for each in changes if each.account == account.number]
            work = _Work(connection, target, account.number, account.name, reading_versions(own))
            tell = _share_of(progress, position, len(accounts))
            exported.append(_export_account(work, _read_or_begin(work, journal), tell))
            write_configuration(connection, target, account, own, work.versions)
        gone = [name for name in exported_accounts(target) if name not in state.numbers]
        for name in gone:
            forget_exported(target, name)
        progress(1.0)
    return ExportSummary(tuple(exported), tuple(gone))


def bring_up_to_date(
    folder: Path, target: Path, account_name: str, progress: Progress = lambda _share: None
) -> None:
    """Exports an account of a data folder, where there is one, unless `target` follows another journal.

    Raises as `export_columns`.
    """
    if not (folder / schema.DATABASE_FILE).exists():
        return
    with closing(schema.connect_for_reading(folder)) as connection:
        journal = reads.identity(connection)
    found = (read_progress(target, name) for name in exported_accounts(target))
    if all(each is None or each.journal == journal for each in found):
        export_columns(folder, target, account_name, progress)


def _find_live(state: Configuration, name: str) -> Account:
    account = find_account(state, name)
    if account.live is not None:
        raise NotFound("account", f"`{name}` is a test account: live ones are exported")
    return account


@dataclass(frozen=True, slots=True)
class _Work:
    """What is exported to where; `versions` are those that read windows."""

    connection: sqlite3.Connection
    target: Path
    account: int
    name: str
    versions: tuple[ReadingVersion, ...]


def _export_account(work: _Work, known: ExportProgress, progress: Progress) -> ExportedAccount:
    written: set[str] = set()
    last = reads.last_sequence(work.connection)
    # What was cut off is finished first: days that it had written are there already.
    for up_to in (*([known.target] if known.target > known.sequence else []), last):
        known, altered = _look_again(work, replace(known, target=up_to))
        write_progress(work.target, work.name, known)
        days, labelled = _days_to_write(work, known, altered)
        steps = sorted({*days, *labelled})
        for done, number in enumerate(steps):
            day = day_of(work.connection, number, up_to)
            if number in days:
                known = _write_day(work, known, day)
            _write_labels(work, known, day)
            write_progress(work.target, work.name, known)
            written.add(day.name)
            progress((done + 1) / len(steps))
        known = replace(known, sequence=up_to)
        write_progress(work.target, work.name, known)
    return ExportedAccount(
        account=work.name,
        sequence=known.sequence,
        payments=sum(each.payments for each in known.days.values()),
        days=len(known.days),
        written=tuple(sorted(written)),
    )


def _read_or_begin(work: _Work, journal: str) -> ExportProgress:
    known = read_progress(work.target, work.name)
    if known is not None and known.journal != journal:
        raise JournalError(
            f"`{work.target}` is an export of another journal: choose another folder"
        )
    if known is None:
        return ExportProgress(COLUMNS_FORMAT, journal)
    if max(known.sequence, known.target) > reads.last_sequence(work.connection):
        # The journal was restored from a backup that is older than the export.
        forget_exported(work.target, work.name)
        return ExportProgress(COLUMNS_FORMAT, journal)
    return known


def _look_again(work: _Work, known: ExportProgress) -> tuple[ExportProgress, set[int]]:
    """What is told of the written days by now, and those that retention or erasure altered."""
    days, altered = dict(known.days), set()
    for name, day in known.days.items():
        now = unaltered(work.connection, work.account, day)
        if now is None:
            altered.add(day_number(name))
        else:
            days[name] = now
    return replace(known, days=days), altered


def _days_to_write(
    work: _Work, known: ExportProgress, altered: set[int]
) -> tuple[set[int], set[int]]:
    """The days whose payments are to be written, and those whose labels are."""
    connection, account, up_to = work.connection, work.account, known.target
    new = payment_days(connection, account, known.sequence, up_to)
    days = {day.number for day in new}
    days |= added_to(connection, account, Kind.UPDATE, known, up_to)
    days -= {day_number(name) for name, day in known.days.items() if day.up_to >= up_to}
    days |= altered
    return days, days | added_to(connection, account, Kind.LABEL, known, up_to)


def _write_day(work: _Work, known: ExportProgress, day: PaymentDay) -> ExportProgress:
    """Writes a day's payments and their states; a day that has none any more goes."""
    connection, account, up_to = work.connection, work.account, known.target
    # Looked at first: what is altered while the day is written is found by the next export.
    altered = alterations(connection, day.first, day.beyond)
    amendment = reads.last_amendment(connection)
    windows = day_windows(connection, account, day, work.versions)
    files = [day_file(work.target, table, work.name, day.name) for table in DAY_TABLES]
    of_payments, of_states, _ = files
    with (
        named_damage(),
        parquet_file(of_payments, payments_schema(windows)) as payments,
        parquet_file(of_states, states_schema()) as states,
    ):
        read = ReadValues(work.versions)
        put_payments(connection, account, day, up_to, read, windows, payments, states)
    days = {name: each for name, each in known.days.items() if name != day.name}
    if not payments.rows:
        for file in files:
            remove_file(file)
        return replace(known, days=days)
    noted = WrittenDay(day.first, day.beyond, up_to, payments.rows, altered, amendment)
    return replace(known, days={**days, day.name: noted})


def _write_labels(work: _Work, known: ExportProgress, day: PaymentDay) -> None:
    if day.name in known.days:
        file = day_file(work.target, "labels", work.name, day.name)
        with named_damage(), parquet_file(file, LABEL_SCHEMA) as labels:
            put_labels(work.connection, work.account, day, known.target, labels)


def _share_of(progress: Progress, position: int, parts: int) -> Progress:
    return lambda share: progress((position + share) / parts)


def _require_export(target: Path) -> None:
    """A folder in which something else lives is not written to."""
    others = {path.name for path in target.iterdir()} - {LOCK_FILE}
    if others and not (target / PROGRESS).is_dir():
        raise JournalError(
            f"`{target}` holds `{min(others)}` and is no export: choose another folder"
        )
