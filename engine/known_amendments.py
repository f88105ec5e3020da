"""Up to which of the journal's amendments the files that a node has derived from it know of them.

What a node keeps of windows and ages outlives it. While it is away, another node may erase a person:
the amendments that are not known when it comes back tell whose past must be read again.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

AMENDMENTS_FILE: Final = "amendments.json"


class _Known(Struct, frozen=True):
    journal: str
    number: int


_decode = msgspec.json.Decoder(_Known).decode


def read_known(folder: Path, journal: str) -> int:
    """The number of the last amendment of a journal, told by its identity; 0 where none is noted."""
    with suppress(OSError, msgspec.MsgspecError):
        known = _decode((folder / AMENDMENTS_FILE).read_bytes())
        return known.number if known.journal == journal else 0
    return 0


def note_known(folder: Path, journal: str, number: int) -> None:
    """Notes that nothing in the folder holds what was there before an amendment, or one before it."""
    unfinished = folder / f"{AMENDMENTS_FILE}.new"
    # An older note has more read again than need be, and no less.
    with suppress(OSError):
        unfinished.write_bytes(msgspec.json.encode(_Known(journal, number)))
        unfinished.chmod(0o600)
        unfinished.replace(folder / AMENDMENTS_FILE)
