"""How late a payment may arrive and still count: the value with which the service last started.

It is in a file of the data folder, so that replays of history beside the service count as it does.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tollkeeper.engine.journal.source import JournalSource, folder_of
from tollkeeper.engine.velocity.contract import LATE

LATENESS_FILE: Final = "lateness.json"

_decode = msgspec.json.Decoder(int).decode


def read_lateness(source: JournalSource) -> int:
    """The lateness in µs behind the latest arrival; `LATE` if no service was started on this
    machine."""
    with suppress(OSError, msgspec.MsgspecError):
        return _decode((folder_of(source) / LATENESS_FILE).read_bytes())
    return LATE


def keep_lateness(folder: Path, late: int) -> None:
    """Write to the folder how late (µs) its service still counts a payment."""
    unfinished = folder / f"{LATENESS_FILE}.new"
    # On a full disk this is the least of the losses.
    with suppress(OSError):
        unfinished.write_bytes(msgspec.json.encode(late))
        unfinished.chmod(0o600)
        unfinished.replace(folder / LATENESS_FILE)
