"""How late a payment may arrive and still count: the value with which the service last started.

It is in a file of the data folder, so that replays of history beside the service count as it does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tollkeeper.engine.journal.source import JournalSource, folder_of
from tollkeeper.engine.small_file import read_small_file, write_small_file
from tollkeeper.engine.velocity.contract import LATE

LATENESS_FILE: Final = "lateness.json"


def read_lateness(source: JournalSource) -> int:
    """The lateness in µs behind the latest arrival; `LATE` if no service was started on this
    machine."""
    late = read_small_file(folder_of(source) / LATENESS_FILE, int)
    return LATE if late is None else late


def keep_lateness(folder: Path, late: int) -> None:
    """Write to the folder how late (µs) its service still counts a payment."""
    write_small_file(folder / LATENESS_FILE, late)
