"""When each key was last used: kept in memory, and written to a file every minute.

The file is not part of the journal, which would otherwise grow with every request; it may be lost.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tollkeeper.engine.runtime import Engine

USES_FILE: Final = "key-uses.json"
WRITE_EVERY_S: Final = 60.0

_decode = msgspec.json.Decoder(dict[str, int]).decode


def read_key_uses(folder: Path) -> dict[str, int]:
    """The time (µs) of each key's last use, by its id, as last written."""
    with suppress(OSError, msgspec.MsgspecError):
        return _decode((folder / USES_FILE).read_bytes())
    return {}


async def keep_key_uses(engine: Engine) -> None:
    """Write new uses every minute, and once more when cancelled."""
    written = engine.key_uses.copy()
    try:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            if engine.key_uses != written:
                written = engine.key_uses.copy()
                await asyncio.to_thread(_write, engine.folder, written)
    finally:
        if engine.key_uses != written:
            _write(engine.folder, engine.key_uses)


def _write(folder: Path, uses: dict[str, int]) -> None:
    # On a full disk this is the least of the losses.
    with suppress(OSError):
        unfinished = folder / f"{USES_FILE}.new"
        unfinished.write_bytes(msgspec.json.encode(uses))
        unfinished.chmod(0o600)
        unfinished.replace(folder / USES_FILE)
