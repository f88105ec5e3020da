"""Write files atomically: a file gets its name only when it is whole and on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def placed_at_once(path: Path) -> Iterator[Path]:
    """A temporary file to write to; it gets its name when the block succeeds. Raises `OSError`."""
    # Parquet readers ignore files with names that begin like this.
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
    """Remove a file, and its folder when that is empty then. Raises `OSError`."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()
