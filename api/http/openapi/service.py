"""The operational paths, outside the interface's base; none of them needs a key."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from tollkeeper.api.http.openapi.operation import HTML, TEXT, YAML, Operation, answered

TAG = "Service"


class Live(Struct):
    status: Literal["live"]


class Ready(Struct):
    status: Literal["ready"]


OPERATIONS = (
    Operation(
        "get",
        "/health/live",
        "live",
        TAG,
        "Whether the process answers",
        "For a supervisor that restarts what is dead.",
        None,
        {200: answered("It does.", Live)},
    ),
    Operation(
        "get",
        "/health/ready",
        "ready",
        TAG,
        "Whether traffic may come",
        "503 while the windows are being rebuilt after a start.",
        None,
        {200: answered("It may.", Ready)},
        (503,),
    ),
    Operation(
        "get",
        "/metrics",
        "metrics",
        TAG,
        "Figures in Prometheus' text format",
        """For whoever runs the service, and not to be exposed: it needs no key.

- `toll_request_duration_seconds` by `route` (`none` for a path that is not there) and `status` (`2xx`).
- `toll_payments_total` by `action` (`none` when no analysis was asked for), `toll_updates_total`, `toll_events_total`.
- `toll_ready`, `toll_journal_waiting`, `toll_journal_errors_total`.
- `toll_windows_entries`, `toll_windows_cap` and `toll_windows_over_cap` by `account`, which is its number.
- `toll_shadows_waiting`, `toll_shadows_skipped_total`, `toll_deliveries_pending`.

No label holds a name or an id.""",
        None,
        {200: answered("The figures.", str, TEXT)},
    ),
    Operation(
        "get",
        "/schema",
        "schema_page",
        TAG,
        "This description as a page",
        "Needs nothing from anywhere else: no script, no font, no image.",
        None,
        {200: answered("The page.", str, HTML)},
    ),
    Operation(
        "get",
        "/schema/openapi.json",
        "schema_json",
        TAG,
        "This description as OpenAPI 3.1",
        "For tools that make clients and tests of it.",
        None,
        {200: answered("The document.", dict[str, Any])},
    ),
    Operation(
        "get",
        "/schema/openapi.yaml",
        "schema_yaml",
        TAG,
        "The same in YAML",
        "For people and tools that prefer it.",
        None,
        {200: answered("The document.", dict[str, Any], YAML)},
    ),
)
