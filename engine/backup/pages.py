"""Update the copy of a file by writing only the blocks that differ.

The new blocks are first collected in a file beside the copy. So whenever the process or the machine
stops, the copy is either unchanged or can be finished (`finish_copy`).
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

PAGE_BLOCK = 8192
"""The bytes that are compared and written at once: a page of the journal."""
READ_PAGES = 128 * PAGE_BLOCK
_HEAD = struct.Struct("<QI")


class Copy(Struct, frozen=True):
    """A copied file: its size, its SHA-256 in hex, and how many bytes had to be written."""

    bytes: int
    sha256: str
    written: int


def prepare_copy(
    source: BinaryIO, size: int, target: Path, progress: Callable[[int], None]
) -> Copy:
    """Collect in `NAME.changes` the blocks that make `target` equal to the first `size` bytes of
    `source`.

    `target` itself is not changed; `progress` gets the number of bytes read.
    """
    digest, written, offset = hashlib.sha256(), 0, 0
    with _open_pages(target) as before, _new(changes_of(target)) as changes:
        while offset < size:
            data = source.read(min(READ_PAGES, size - offset))
            if not data:
                raise OSError(f"`{source.name}` ends before its {size} bytes")
            digest.update(data)
            old = before.read(len(data))
            if old != data:
                for start in range(0, len(data), PAGE_BLOCK):
                    block = data[start : start + PAGE_BLOCK]
                    if old[start : start + PAGE_BLOCK] != block:
                        changes.write(_HEAD.pack(offset + start, len(block)))
                        changes.write(block)
                        written += len(block)
            offset += len(data)
            progress(len(data))
        changes.flush()
        os.fsync(changes.fileno())
    return Copy(size, digest.hexdigest(), written)


def finish_copy(target: Path, size: int) -> None:
    """Write the collected blocks into `target`; repeating it changes nothing."""
    changes_path = changes_of(target)
    if not changes_path.exists():
        return
    # A link in a backup from elsewhere would lead out of its folder.
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(target, flags, 0o600)
    with os.fdopen(descriptor, "r+b") as copy, changes_path.open("rb") as changes:
        while head := changes.read(_HEAD.size):
            offset, length = _HEAD.unpack(head)
            copy.seek(offset)
            copy.write(changes.read(length))
        copy.truncate(size)
        copy.flush()
        os.fsync(copy.fileno())
    changes_path.unlink()


def changes_of(target: Path) -> Path:
    """The file in which a copy's new blocks are collected."""
    return target.with_name(f"{target.name}.changes")


def sha256_of(path: Path, progress: Callable[[int], None]) -> str:
    """The file's SHA-256 in hex; `progress` gets the number of bytes read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(READ_PAGES):
            digest.update(data)
            progress(len(data))
    return digest.hexdigest()


def _open_pages(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return open(os.devnull, "rb")  # noqa: PTH123 - an empty copy


def _new(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")
