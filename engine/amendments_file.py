"""The last amendment of the journal that a node's derived files reflect, in a file beside them.

A node's snapshot of windows and its first-seen times outlive it. While it is down, another node may
erase a person: the amendments after the recorded one say which accounts must be filled again.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

AMENDMENTS_FILE: Final = "amendments.json"


class _SeenAmendment(Struct, frozen=True):
    journal: str
    number: int


_decode = msgspec.json.Decoder(_SeenAmendment).decode


def read_seen_amendment(folder: Path, journal: str) -> int:
    """The number of the last reflected amendment of the journal with this identity, 0 for none."""
    with suppress(OSError, msgspec.MsgspecError):
        known = _decode((folder / AMENDMENTS_FILE).read_bytes())
        return known.number if known.journal == journal else 0
    return 0


def write_seen_amendment(folder: Path, journal: str, number: int) -> None:
    """Record that the folder's files reflect all amendments up to this number."""
    unfinished = folder / f"{AMENDMENTS_FILE}.new"
    # If this fails, an older number only makes more be read again.
    with suppress(OSError):
        unfinished.write_bytes(msgspec.json.encode(_SeenAmendment(journal, number)))
        unfinished.chmod(0o600)
        unfinished.replace(folder / AMENDMENTS_FILE)
