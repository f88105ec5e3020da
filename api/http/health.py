"""Operational paths outside the interface's base: liveness, readiness, metrics."""

from __future__ import annotations

from typing import Literal

from litestar import Response
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST

from tollkeeper.api.http.errors import unavailable
from tollkeeper.api.http.metrics import exposition
from tollkeeper.api.http.operation import TEXT, Answer, operation
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import SERVICE

# Without the character set, which the framework adds.
_FORMAT = CONTENT_TYPE_LATEST.partition("; charset")[0]


class Live(Struct, frozen=True):
    status: Literal["live"] = "live"


class Ready(Struct, frozen=True, omit_defaults=True):
    """`passed_over` is the number of damaged journal entries, which decisions therefore ignore."""

    status: Literal["ready"]
    passed_over: int = 0


@operation(
    "GET",
    "/health/live",
    "live",
    tag=SERVICE,
    summary="Check that the process is alive",
    doc="For a supervisor that restarts dead processes.",
    scope=None,
    answers={200: Answer("It is alive.")},
)
async def live() -> Live:
    return Live()


@operation(
    "GET",
    "/health/ready",
    "ready",
    tag=SERVICE,
    summary="Check that traffic may come",
    doc="""503 while the windows are being rebuilt after a start, with the share that is done, while the
journal can't be written, and in a service that was started read-only; the message says which. A node
that does not own its journal is ready as long as another does.""",
    scope=None,
    answers={200: Answer("It is ready.")},
    refusals=(503,),
)
async def ready(request: Request) -> Ready:
    engines = request.service.figures.engines
    for number, engine in sorted(engines.items()):
        if (obstacle := engine.obstacle()) is not None:
            raise unavailable(obstacle if len(engines) == 1 else f"shard {number}: {obstacle}")
    passed_over = sum(len(each.damage.passed_over) for each in engines.values())
    return Ready("ready", passed_over=passed_over)


@operation(
    "GET",
    "/metrics",
    "metrics",
    tag=SERVICE,
    summary="Read metrics in Prometheus' text format",
    doc="""For whoever runs the service; needs no key. It is on the operator's own listener if there is
one, else here, if only this machine can reach the interface.

- `toll_request_duration_seconds` by `route` (`none` for an unknown path) and `status` (`2xx`).
- `toll_requests_total` by `route`, `status` (`422`) and `reason`, the type of the first error.
- `toll_payments_total` by `action` (`none` when no analysis was requested), `toll_updates_total`, `toll_events_total`.
- `toll_ready`, `toll_owner`, `toll_shards`, `toll_standby_awaited`, `toll_rebuilt_ratio`, `toll_build_info`, `toll_damaged_entries`, `toll_clock_plausible`.
- `toll_journal_waiting`, `toll_journal_errors_total`, `toll_journal_failing`, `toll_journal_bytes`.
- `toll_disk_bytes`, `toll_disk_free_bytes`.
- `toll_windows_entries`, `toll_windows_cap` and `toll_windows_over_cap` by `account`, which is its number; `toll_windows_total_cap`.
- `toll_shadows_waiting`, `toll_shadows_skipped_total`, `toll_deliveries_pending`.

No label holds a name or an id.""",
    scope=None,
    answers={200: Answer("The metrics.", str, media_type=TEXT)},
)
async def metrics(request: Request) -> Response[bytes]:
    figures = await exposition(request.service.figures)
    return Response(figures, media_type=_FORMAT)


ROUTES = (live, ready, metrics)
