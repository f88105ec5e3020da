"""The snapshot of the windows in the data folder: written at an orderly end, read at a start."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

from structlog import get_logger

from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.snapshot import (
    FILE,
    Snapshot,
    SnapshotError,
    SnapshotOrigin,
    look_through,
    write,
)

log = get_logger()


async def read_snapshot(engine: Engine) -> Snapshot | None:
    """The snapshot that fits the journal; one that does not is said to, and removed."""
    path = engine.folder / FILE
    expected, last = _origin(engine), engine.journal.last_sequence()

    def is_ours(origin: SnapshotOrigin) -> bool:
        same = (origin.journal, origin.release) == (expected.journal, expected.release)
        return same and origin.sequence <= last

    try:
        return await asyncio.to_thread(look_through, path, is_ours)
    except FileNotFoundError:
        return None
    except (OSError, SnapshotError) as error:
        log.warning("snapshot_not_used", file=str(path), reason=str(error))
        discard_snapshot(engine)
        return None


def write_snapshot(engine: Engine) -> None:
    """Keeps what the windows hold; nothing may be observed meanwhile.

    Windows that are not whole, or not what the journal says, are not kept.
    """
    if not engine.ready.is_set() or engine.rewriting:
        return
    path = engine.folder / FILE
    try:
        write(path, _origin(engine), engine.windows.snapshot())
    except (OSError, TypeError) as error:
        log.warning("snapshot_not_written", file=str(path), error=str(error))


def discard_snapshot(engine: Engine) -> None:
    """Leaves nothing of it: it holds what the journal is about to forget."""
    for path in (engine.folder / FILE, engine.folder / f"{FILE}.new"):
        path.unlink(missing_ok=True)


def _origin(engine: Engine) -> SnapshotOrigin:
    journal = engine.journal
    return SnapshotOrigin(journal.identity(), journal.last_sequence(), version("tollkeeper"))
