"""Restore a data folder from a backup."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from tollkeeper.engine.backup.backup import PURPOSE, Manifest, read_manifest, settle, sync_folder
from tollkeeper.engine.backup.pages import READ_PAGES, sha256_of
from tollkeeper.engine.journal import schema, side_file
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.damage import named_target
from tollkeeper.engine.journal.lock import LOCK_FILE, lock
from tollkeeper.engine.progress import Progress, unwatched

PARTIAL = ".partial"


def restore(backup: Path, folder: Path, progress: Progress = unwatched) -> Manifest:
    """Copy a backup into `folder`, which must be empty.

    The journal gets a new identity: from now on its entries differ from the original's. Raises
    `JournalError` for a damaged or missing backup, and for a folder that is in use.
    """
    if not backup.is_dir():
        raise JournalError(f"there is no backup `{backup}`")
    with lock(backup, PURPOSE):
        with named_target(backup):
            settle(backup)
        manifest = read_manifest(backup)
        if manifest is None:
            raise JournalError(f"`{backup}` is no backup, or one that was never finished")
        require_whole(backup, manifest, lambda share: progress(share / 2))
        with lock(folder, PURPOSE):
            _require_empty(folder)
            try:
                _copy(backup, folder, manifest, lambda share: progress(0.5 + share / 2))
            except OSError as error:
                raise JournalError(f"`{folder}` can't be written: {error.strerror}") from error
    return manifest


def require_whole(backup: Path, manifest: Manifest, progress: Progress) -> None:
    """Check that every file is as it was backed up. Raises `JournalError` naming one that is not."""
    done = 0

    def count(read: int) -> None:
        nonlocal done
        done += read
        progress(done / (manifest.bytes or 1))

    for name, copy in manifest.files.items():
        try:
            found = sha256_of(backup / name, count)
        except OSError as error:
            raise JournalError(f"`{backup / name}` can't be read: {error.strerror}") from error
        if found != copy.sha256:
            raise JournalError(f"`{backup / name}` is not as it was backed up: use another backup")


def _require_empty(folder: Path) -> None:
    found = {path.name for path in folder.iterdir()} - {LOCK_FILE, "lost+found"}
    others = sorted(name for name in found if not name.endswith(PARTIAL))
    if others:
        raise JournalError(f"`{folder}` holds `{others[0]}`: restore into an empty folder")


def _copy(
    backup: Path, folder: Path, manifest: Manifest, progress: Callable[[float], None]
) -> None:
    identity, done = uuid4().hex, 0
    partial = {name: folder / f"{name}{PARTIAL}" for name in manifest.files}
    for name, path in partial.items():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with (backup / name).open("rb") as source, os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(source, copy, READ_PAGES)
            copy.flush()
            os.fsync(copy.fileno())
        done += manifest.files[name].bytes
        progress(done / (manifest.bytes or 1))
    # The journal comes last: a folder without it is refused, so half a restore can't be served.
    for name, path in partial.items():
        path.rename(folder / name)
        if name != schema.DATABASE_FILE:
            side_file.claim_file(folder / name, identity)
    with closing(schema.connect(folder)) as connection:
        connection.execute("UPDATE identity SET id = ?", (identity,))
    sync_folder(folder)
