"""A folder for what one process needs for a while: what it holds of payments outlives no process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def own_folder(kind: str) -> Iterator[Path]:
    """A folder of this process alone while the block runs. First removes those of this kind that
    processes left which were killed; the lock on a folder ends with its process.
    """
    prefix = f"toll-{kind}-"
    for left in Path(gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            _remove_unheld(left)
    path, held = _make(prefix)
    try:
        yield path
    finally:
        rmtree(path)
        os.close(held)


def _make(prefix: str) -> tuple[Path, int]:
    while True:
        path = Path(mkdtemp(prefix=prefix))
        # Before it is locked, another process may take it for one that was left.
        with suppress(FileNotFoundError):
            held = os.open(path, _OPEN)
            fcntl.flock(held, fcntl.LOCK_SH)
            if path.exists():
                return path, held
            os.close(held)


def _remove_unheld(folder: Path) -> None:
    """Raises `OSError` for a folder that a process holds, or of another user."""
    found = os.open(folder, _OPEN)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(found).st_uid == os.getuid():
            rmtree(folder)
    finally:
        os.close(found)
