"""Back up a data folder while the service runs; the next backup only writes what changed.

All files in it are consistent: the files derived from the journal are copied before it, so that
they never contain more than the journal does. A backup is valid once its manifest is in place; an
interrupted one leaves the former backup whole.
"""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from tollkeeper.engine.backup.frozen import frozen
from tollkeeper.engine.backup.pages import Copy, finish_copy, prepare_copy
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.damage import named_target
from tollkeeper.engine.journal.lock import LOCK_FILE, lock
from tollkeeper.engine.progress import Progress, unwatched
from tollkeeper.engine.release import this_release

MANIFEST = "backup.json"
PENDING = "backup.json.pending"
PURPOSE = "backup"
BACKUP_FORMAT = 1


BackedUpName: TypeAlias = Annotated[str, Meta(pattern=r"^[^/\x00]+\.db\Z")]
"""A backup from elsewhere can list any name: none leads out of its folder."""


class Manifest(Struct, frozen=True):
    """The contents of a backup: the files by name, the journal's identity and last sequence number.

    `taken_at` is in µs, `version` that of the release that took it.
    """

    format: int
    version: str
    taken_at: int
    journal: str
    sequence: int
    files: dict[BackedUpName, Copy]

    @property
    def bytes(self) -> int:
        """The size of all files in bytes."""
        return sum(copy.bytes for copy in self.files.values())

    @property
    def written(self) -> int:
        """How many of these bytes differ from the former backup."""
        return sum(copy.written for copy in self.files.values())


_read = msgspec.json.Decoder(Manifest).decode


def back_up(folder: Path, target: Path, progress: Progress = unwatched) -> Manifest:
    """Make `target` a backup of the data folder, whether or not a service is running on it.

    Raises `JournalError` for a folder that can't be read, and for a target that can't be written or
    holds anything but a backup of the same journal.
    """
    schema.require_current(folder)
    with lock(target, PURPOSE), named_target(target):
        _require_backup(target)
        settle(target)
        with closing(schema.connect_for_reading(folder)) as connection:
            identity = reads.identity(connection)
        before = read_manifest(target)
        if before is not None and before.journal != identity:
            raise JournalError(f"`{target}` is a backup of another journal: choose another folder")
        manifest = _collect_changes(folder, target, identity, progress)
        _write(target / PENDING, msgspec.json.format(msgspec.json.encode(manifest)))
        settle(target)
    return manifest


def settle(target: Path) -> None:
    """Finish an interrupted backup, or remove the changes it had collected. Raises `JournalError`
    for a list of changes that is not ours."""
    pending = _read_listed(target / PENDING)
    if pending is not None:
        for name, copy in pending.files.items():
            finish_copy(target / name, copy.bytes)
        sync_folder(target)
        (target / PENDING).rename(target / MANIFEST)
    for left in target.glob("*.changes"):
        left.unlink()
    sync_folder(target)


def read_manifest(target: Path) -> Manifest | None:
    """The backup's manifest; None when there is none. Raises `JournalError` for one that is not
    ours."""
    return _read_listed(target / MANIFEST)


def _read_listed(path: Path) -> Manifest | None:
    try:
        manifest = _read(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise JournalError(f"`{path}` can't be read: {error}") from error
    if manifest.format != BACKUP_FORMAT:
        raise JournalError(f"`{path.parent}` was backed up by a newer version")
    return manifest


def databases(folder: Path) -> list[Path]:
    """The folder's databases, the journal last."""
    beside = sorted(path for path in folder.glob("*.db") if path.name != schema.DATABASE_FILE)
    return [*beside, folder / schema.DATABASE_FILE]


def _collect_changes(folder: Path, target: Path, identity: str, progress: Progress) -> Manifest:
    paths = databases(folder)
    total = sum(path.stat().st_size for path in paths) or 1
    done = 0

    def count(read: int) -> None:
        nonlocal done
        done += read
        progress(min(1.0, done / total))

    files, sequence = {}, 0
    for path in paths:
        with frozen(path) as database:
            copied = prepare_copy(database.file, database.size, target / path.name, count)
            files[path.name] = copied
            if path.name == schema.DATABASE_FILE:
                sequence = reads.last_sequence(database.connection)
    return Manifest(
        format=BACKUP_FORMAT,
        version=this_release(),
        taken_at=time.time_ns() // 1000,
        journal=identity,
        sequence=sequence,
        files=files,
    )


def _require_backup(target: Path) -> None:
    """Refuse a folder with other contents than a backup."""
    known = {MANIFEST, PENDING, LOCK_FILE}
    others = {path.name for path in target.iterdir() if path.suffix != ".changes"} - known
    if others and not (target / MANIFEST).exists() and not (target / PENDING).exists():
        raise JournalError(
            f"`{target}` holds `{min(others)}` and is no backup: choose another folder"
        )


def _write(path: Path, content: bytes) -> None:
    written = path.with_name(f"{path.name}.changes")
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    written.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync the folder, so that the names of its files are on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
