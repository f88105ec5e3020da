"""Operational paths, outside the interface's base: is the process alive, may traffic come."""

from __future__ import annotations

from http import HTTPStatus

from litestar import Response, get
from litestar.datastructures import State
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from tollkeeper.api.errors import unavailable


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


@get("/metrics", sync_to_thread=False)
def metrics() -> Response[bytes]:
    """Figures in Prometheus' text format."""
    return Response(generate_latest(), status_code=HTTPStatus.OK, media_type=CONTENT_TYPE_LATEST)
