"""Small JSON files of the data folder that hold what may be lost."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def read_small_file(path: Path, type_: type[T]) -> T | None:
    """The file's content; None when there is none, or none of this type."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=type_)
    return None


def write_small_file(path: Path, content: object) -> None:
    """Replace the file. When that fails, as on a full disk, the former one stays."""
    unfinished = path.with_name(f"{path.name}.new")
    with suppress(OSError):
        unfinished.write_bytes(msgspec.json.encode(content))
        unfinished.chmod(0o600)
        unfinished.replace(path)
