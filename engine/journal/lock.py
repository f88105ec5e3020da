"""One process at a time writes a data folder's sequence: the service, or a command when none runs."""

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
# Long enough to outlast another process that only asks who holds the lock.
LOCK_PATIENCE_S = 0.2


@contextmanager
def lock(folder: Path, purpose: str, patience_s: float = LOCK_PATIENCE_S) -> Iterator[None]:
    """Holds the folder while the block runs, creating it if need be; the kernel lets go of a killed
    holder's.

    `purpose` is `SERVICE_PURPOSE`, or `COMMAND_PURPOSE` for as long as one takes. Raises `Locked`
    once `patience_s` seconds have passed.
    """
    make_folder(folder)
    # The folder itself is held: the file, which names the holder, may be deleted meanwhile.
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _take(held, folder, patience_s)
        named = _open(folder, LOCK_FILE)
        try:
            # Earlier versions hold the file alone.
            _take(named, folder, patience_s)
            os.ftruncate(named, 0)
            os.pwrite(named, f"{purpose} {os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(named)
    finally:
        os.close(held)


def holder(folder: Path) -> str | None:
    """The purpose for which a living process holds the folder, None when none does."""
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
    """Lets others know, while the block runs, that staged contents are needed."""
    descriptor = _open(folder, IMPORTS_FILE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def no_import_runs(folder: Path) -> Iterator[bool]:
    """Whether nobody is `mark_import`; if so nobody begins while the block runs, so keep it short."""
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
    """Creates the folder, for its owner alone; an existing one keeps its permissions."""
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
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                purpose, process = _read_holder(folder)
                who = "`toll serve`" if purpose == SERVICE_PURPOSE else "another command"
                raise Locked(
                    f"the data folder `{folder}` is in use by {who}, process {process}"
                ) from None
            time.sleep(_PAUSE_S)
        else:
            return


def _read_holder(folder: Path) -> tuple[str, str]:
    """The purpose and process of the folder's holder; only a service's file is there long enough
    to be deleted."""
    try:
        told = (folder / LOCK_FILE).read_text()
    except FileNotFoundError:
        return SERVICE_PURPOSE, "unknown"
    purpose, _, process = told.strip().rpartition(" ")
    return purpose, process
