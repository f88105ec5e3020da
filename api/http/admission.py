"""Whether a request that will be written may come in: refused before any work is done for it."""

from __future__ import annotations

from tollkeeper.api.http.errors import unavailable
from tollkeeper.engine.runtime import Engine


def admit(engine: Engine) -> None:
    """Raises `Problem` 503 while windows are rebuilt, or while too many requests wait to be written."""
    if not engine.ready.is_set():
        raise unavailable("the windows are being rebuilt")
    if not engine.journal.has_room():
        raise unavailable("too many requests wait to be written")
