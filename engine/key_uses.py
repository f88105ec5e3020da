"""When each key was last used: kept in memory, and written to a file every minute.

The file is not part of the journal, which would otherwise grow with every request; it may be lost.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.small_file import read_small_file, write_small_file

USES_FILE: Final = "key-uses.json"
WRITE_EVERY_S: Final = 60.0


def read_key_uses(folder: Path) -> dict[str, int]:
    """The time (µs) of each key's last use, by its id, as last written."""
    return read_small_file(folder / USES_FILE, dict[str, int]) or {}


async def keep_key_uses(engine: Engine) -> None:
    """Write new uses every minute, and once more when cancelled."""
    path, written = engine.folder / USES_FILE, engine.key_uses.copy()
    try:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            if engine.key_uses != written:
                written = engine.key_uses.copy()
                await asyncio.to_thread(write_small_file, path, written)
    finally:
        if engine.key_uses != written:
            write_small_file(path, engine.key_uses)
