"""How late a payment may come and still count, as the service on this data was last started.

It stands in the data folder, so that what replays history beside the service counts as it does.
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
    """How far (µs) behind the latest arrival; `LATE` where no service was started on this machine."""
    with suppress(OSError, msgspec.MsgspecError):
        return _decode((folder_of(source) / LATENESS_FILE).read_bytes())
    return LATE


def keep_lateness(folder: Path, late: int) -> None:
    """Leaves in the folder how late (µs) its service counts a payment."""
    unfinished = folder / f"{LATENESS_FILE}.new"
    # A disk that takes nothing has worse to tell of than this.
    with suppress(OSError):
        unfinished.write_bytes(msgspec.json.encode(late))
        unfinished.chmod(0o600)
        unfinished.replace(folder / LATENESS_FILE)
