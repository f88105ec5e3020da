"""The lock on a data folder: one process at a time writes its journal, a service or a command."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tollkeeper.engine.journal.contract import JournalError, Locked

LOCK_FILE = "tollkeeper.lock"
IMPORTS_FILE = "tollkeeper.imports"
SERVICE_PURPOSE = "serve"
COMMAND_PURPOSE = "command"
_PAUSE_S = 0.02
# Long enough to outlast a process that takes the lock only to see who holds it.
LOCK_PATIENCE_S = 0.2
# A command ends by itself, so a service that starts beside one waits for it.
COMMAND_PATIENCE_S = 30.0


@contextmanager
def lock(folder: Path, purpose: str, patience_s: float = LOCK_PATIENCE_S) -> Iterator[None]:
    """Hold the folder's lock while the block runs; creates the folder if need be. The kernel
    releases the lock of a process that was killed.

    `purpose` is `SERVICE_PURPOSE` or `COMMAND_PURPOSE`. Raises `Locked` once `patience_s` seconds
    have passed, or `COMMAND_PATIENCE_S` while a command holds the lock.
    """
    make_folder(folder)
    # The lock is on the folder itself: the file, which names the holder, may be deleted meanwhile.
    folder_lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _take(folder_lock, folder, patience_s)
        holder_file = _open(folder, LOCK_FILE)
        try:
            # Earlier releases lock only the file.
            _take(holder_file, folder, patience_s)
            os.ftruncate(holder_file, 0)
            os.pwrite(holder_file, f"{purpose} {os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(holder_file)
    finally:
        os.close(folder_lock)


def holder(folder: Path) -> str | None:
    """The purpose for which a running process holds the folder's lock, None when none does."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(folder)[0]
    finally:
        os.close(descriptor)
    return None


@contextmanager
def mark_import(folder: Path) -> Iterator[None]:
    """Mark, while the block runs, that an import runs and its staged contents must stay."""
    descriptor = _open(folder, IMPORTS_FILE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def no_import_runs(folder: Path) -> Iterator[bool]:
    """Whether no import runs; if so, none can begin while the block runs, so keep it short."""
    descriptor = _open(folder, IMPORTS_FILE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create the folder, accessible to its owner alone; an existing one keeps its permissions."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"cannot use the data folder `{folder}`: {error.strerror}") from error


def _open(folder: Path, file: str) -> int:
    try:
        return os.open(folder / file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise JournalError(f"cannot use the data folder `{folder}`: {error.strerror}") from error


def _take(descriptor: int, folder: Path, patience_s: float) -> None:
    began = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            purpose, process = _read_holder(folder)
            patience = COMMAND_PATIENCE_S if purpose == COMMAND_PURPOSE else patience_s
            if time.monotonic() - began > patience:
                who = "`toll serve`" if purpose == SERVICE_PURPOSE else "another command"
                raise Locked(
                    f"the folder `{folder}` is in use by {who}, process {process}"
                ) from None
            time.sleep(_PAUSE_S)
        else:
            return


def _read_holder(folder: Path) -> tuple[str, str]:
    """The purpose and process id in the folder's lock file; if it was deleted, the holder is a
    service: a command does not hold the lock long enough."""
    try:
        text = (folder / LOCK_FILE).read_text()
    except FileNotFoundError:
        return SERVICE_PURPOSE, "unknown"
    purpose, _, process = text.strip().rpartition(" ")
    return purpose, process
