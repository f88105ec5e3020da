"""The last amendment of the journal that a node's derived files reflect, in a file beside them.

A node's snapshot of windows and its first-seen times outlive it. While it is down, another node may
erase a person: the amendments after the recorded one say which accounts must be filled again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from tollkeeper.engine.small_file import read_small_file, write_small_file

AMENDMENTS_FILE: Final = "amendments.json"


class _SeenAmendment(Struct, frozen=True):
    journal: str
    number: int


def read_seen_amendment(folder: Path, journal: str) -> int:
    """The number of the last reflected amendment of the journal with this identity, 0 for none."""
    known = read_small_file(folder / AMENDMENTS_FILE, _SeenAmendment)
    return known.number if known is not None and known.journal == journal else 0


def write_seen_amendment(folder: Path, journal: str, number: int) -> None:
    """Record that the folder's files reflect all amendments up to this number."""
    # If this fails, an older number only makes more be read again.
    write_small_file(folder / AMENDMENTS_FILE, _SeenAmendment(journal, number))
