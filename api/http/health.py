"""Operational paths, outside the interface's base: is the process alive, may traffic come."""

from __future__ import annotations

from litestar import Response, get
from litestar.datastructures import State
from prometheus_client import CONTENT_TYPE_LATEST

from tollkeeper.api.http.errors import unavailable
from tollkeeper.api.http.metrics import exposition

# The framework tells the character set by itself.
_FORMAT = CONTENT_TYPE_LATEST.partition("; charset")[0]


@get("/health/live", sync_to_thread=False)
def live() -> dict[str, str]:
    """The process answers."""
    return {"status": "live"}


@get("/health/ready", sync_to_thread=False)
def ready(state: State) -> dict[str, str]:
    """The windows are whole: 200; 503 while they are being rebuilt."""
    if not state.engine.ready.is_set():
        raise unavailable("the windows are being rebuilt")
    return {"status": "ready"}


@get("/metrics")
async def metrics(state: State) -> Response[bytes]:
    """Figures in Prometheus' text format."""
    return Response(await exposition(state.engine, state.figures), media_type=_FORMAT)
