"""Whether a request that will be written may come in: refused before any work is done for it."""

from __future__ import annotations

from tollkeeper.api.http.errors import unavailable
from tollkeeper.engine.runtime import Engine


def admit(engine: Engine) -> None:
    """Raises `Problem` 503 while no traffic may come, or while too many requests wait to be written.

    A journal that couldn't be written is tried again with each request.
    """
    if not engine.ready.is_set():
        raise unavailable(engine.obstacle() or "")
    if not engine.journal.has_room():
        raise unavailable("too many requests wait to be written")
