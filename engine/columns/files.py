"""Files that are in their places at once, whole and on disk, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def placed_at_once(path: Path) -> Iterator[Path]:
    """A file to be written, which gets its name when the block ends well. Raises `OSError`."""
    # Readers of Parquet pass over names that begin so.
    unfinished = path.with_name(f"_{path.name}")
    try:
        yield unfinished
        _sync(unfinished)
        unfinished.rename(path)
        _sync(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_file(path: Path) -> None:
    """Removes a file, and its folder when nothing else is in it. Raises `OSError`."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()
