"""Export the journal's new entries since the last export, and the parts that were altered since.

An export can run beside a service. Each part of a day is one file for each table, written again as
a whole when it has new, erased or purged data. An interrupted export is finished by the next one.
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
    PaymentPart,
    added_to,
    alterations,
    payment_parts,
    span_of_part,
    unaltered,
)
from tollkeeper.engine.columns.files import remove_file
from tollkeeper.engine.columns.layout import (
    COLUMNS_FORMAT,
    DAY_TABLES,
    PROGRESS,
    ExportProgress,
    WrittenPart,
    day_of,
    exported_accounts,
    forget_exported,
    part_file,
    read_progress,
    write_progress,
)
from tollkeeper.engine.columns.tables import (
    LABEL_SCHEMA,
    part_windows,
    payments_schema,
    put_labels,
    put_payments,
    states_schema,
)
from tollkeeper.engine.columns.windows import ReadingVersion, ReadValues, reading_versions
from tollkeeper.engine.columns.write import parquet_file
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.damage import named_damage, named_target
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.lock import LOCK_FILE, lock
from tollkeeper.engine.progress import Progress, unwatched
from tollkeeper.engine.registry.accounts import find_account
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.engine.registry.state import Account, Configuration, fold_changes

_PURPOSE = "export"


class ExportedAccount(Struct, frozen=True):
    """`sequence` is the number reached; `written` are the days written now, `days` counts all days."""

    account: str
    sequence: int
    payments: int
    days: int
    written: tuple[str, ...]


class ExportSummary(Struct, frozen=True):
    """The result of an export; `removed` are the deleted accounts that were removed from it."""

    accounts: tuple[ExportedAccount, ...]
    removed: tuple[str, ...]


def export_columns(
    folder: Path, target: Path, account_name: str | None, progress: Progress = unwatched
) -> ExportSummary:
    """Bring the export in `target` up to date with a data folder: one account, or all live ones.

    Raises `NotFound` for the account, and `JournalError` for a journal that can't be read and for a
    target that can't be written or holds anything but an export of the same journal.
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
    folder: Path, target: Path, account_name: str, progress: Progress = unwatched
) -> None:
    """Bring an account's export up to date, if there is a data folder; an export of another journal
    is left as it is.

    Raises as `export_columns`, and JournalError where neither folder has the account.
    """
    if not (folder / schema.DATABASE_FILE).exists():
        if account_name not in exported_accounts(target):
            raise JournalError(
                f"`{target}` is no export with an account `{account_name}`, and `{folder}` holds no"
                " data to export"
            )
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
    """The source and target of an account's export; `versions` are those that read windows."""

    connection: sqlite3.Connection
    target: Path
    account: int
    name: str
    versions: tuple[ReadingVersion, ...]


def _export_account(work: _Work, known: ExportProgress, progress: Progress) -> ExportedAccount:
    written: set[str] = set()
    last = reads.last_sequence(work.connection)
    # An interrupted export is finished first: some of its parts have been written already.
    for up_to in (*([known.target] if known.target > known.sequence else []), last):
        known, altered = _look_again(work, replace(known, target=up_to))
        write_progress(work.target, work.name, known)
        parts, labelled = _parts_to_write(work, known, altered)
        steps = sorted({*parts, *labelled})
        for done, name in enumerate(steps):
            part = span_of_part(work.connection, name, up_to)
            if name in parts:
                known = _write_part(work, known, part)
            _write_labels(work, known, part)
            write_progress(work.target, work.name, known)
            written.add(day_of(name))
            progress((done + 1) / len(steps))
        known = replace(known, sequence=up_to)
        write_progress(work.target, work.name, known)
    return ExportedAccount(
        account=work.name,
        sequence=known.sequence,
        payments=sum(each.payments for each in known.parts.values()),
        days=len({day_of(name) for name in known.parts}),
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
        # The journal was restored from a backup older than the export.
        forget_exported(work.target, work.name)
        return ExportProgress(COLUMNS_FORMAT, journal)
    return known


def _look_again(work: _Work, known: ExportProgress) -> tuple[ExportProgress, set[str]]:
    """The progress with present marks, and the parts that retention or erasure altered."""
    parts, altered = dict(known.parts), set()
    for name, part in known.parts.items():
        now = unaltered(work.connection, work.account, part)
        if now is None:
            altered.add(name)
        else:
            parts[name] = now
    return replace(known, parts=parts), altered


def _parts_to_write(
    work: _Work, known: ExportProgress, altered: set[str]
) -> tuple[set[str], set[str]]:
    """The parts whose payments are to be written, and those whose labels are."""
    connection, account, up_to = work.connection, work.account, known.target
    new = payment_parts(connection, account, known.sequence, up_to)
    parts = {part.name for part in new}
    parts |= added_to(connection, account, Kind.UPDATE, known, up_to)
    parts -= {name for name, part in known.parts.items() if part.up_to >= up_to}
    parts |= altered
    return parts, parts | added_to(connection, account, Kind.LABEL, known, up_to)


def _write_part(work: _Work, known: ExportProgress, part: PaymentPart) -> ExportProgress:
    """Write a part's payments and their states; a part without payments is removed."""
    connection, account, up_to = work.connection, work.account, known.target
    # Read first: what is altered while the part is written is found by the next export.
    altered = alterations(connection, part.first, part.beyond)
    amendment = reads.last_amendment(connection)
    windows = part_windows(connection, account, part, work.versions)
    files = [part_file(work.target, table, work.name, part.name) for table in DAY_TABLES]
    of_payments, of_states, _ = files
    with (
        named_damage(),
        parquet_file(of_payments, payments_schema(windows)) as payments,
        parquet_file(of_states, states_schema()) as states,
    ):
        read = ReadValues(work.versions)
        put_payments(connection, account, part, up_to, read, windows, payments, states)
    parts = {name: each for name, each in known.parts.items() if name != part.name}
    if not payments.rows:
        for file in files:
            remove_file(file)
        return replace(known, parts=parts)
    noted = WrittenPart(part.first, part.beyond, up_to, payments.rows, altered, amendment)
    return replace(known, parts={**parts, part.name: noted})


def _write_labels(work: _Work, known: ExportProgress, part: PaymentPart) -> None:
    if part.name in known.parts:
        file = part_file(work.target, "labels", work.name, part.name)
        with named_damage(), parquet_file(file, LABEL_SCHEMA) as labels:
            put_labels(work.connection, work.account, part, known.target, labels)


def _share_of(progress: Progress, position: int, parts: int) -> Progress:
    return lambda share: progress((position + share) / parts)


def _require_export(target: Path) -> None:
    """Refuse a folder with other contents than an export."""
    others = {path.name for path in target.iterdir()} - {LOCK_FILE}
    if others and not (target / PROGRESS).is_dir():
        raise JournalError(
            f"`{target}` holds `{min(others)}` and is no export: choose another folder"
        )
