"""The operations on events, their metrics and alerts (docs/api.md, "Events over HTTP")."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from tollkeeper.api.http.openapi.errors import refusal
from tollkeeper.api.http.openapi.examples import EVENT, EVENTS
from tollkeeper.api.http.openapi.files import TAGS
from tollkeeper.api.http.openapi.operation import (
    Content,
    Example,
    Operation,
    answered,
    path_parameter,
    query_parameter,
)
from tollkeeper.api.http.openapi.parameters import CURSOR, IDEMPOTENCY_KEY, Cursor, limit
from tollkeeper.engine.events.submission import MAX_EVENTS, Sent
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.monitors.alerts import Shown

TAG = "Events"

Metrics: TypeAlias = Annotated[
    dict[str, Shown], Meta(description="Each metric's value for this event's own keys.")
]


class EventResult(Struct):
    """A stored event; `alerts` names the monitors that it set off."""

    id: str
    type: str
    version: int
    metrics: Metrics
    alerts: list[str]


class BatchItem(Struct):
    """The result of one event of a batch: `event` with a 201, `errors` with any other status."""

    status: int
    event: EventResult | UnsetType = UNSET
    errors: list[Violation] | UnsetType = UNSET


class Point(Struct):
    at: str
    value: Shown


class MetricShown(Struct):
    """A metric's value now, and hour by hour over the last day, oldest first."""

    type: str
    name: str
    version: int
    key: list[str]
    value: Shown
    course: list[Point]


class AlertShown(Struct):
    """A monitor's condition went from not met to met for one key; `values` are what it read."""

    id: str
    type: str
    monitor: str
    title: str | None
    key: list[Shown]
    at: str
    values: dict[str, Shown]


class EventSent(Struct):
    """One event."""

    event: Sent


class EventsSent(Struct):
    """A batch of events, each as `event` is."""

    events: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MAX_EVENTS)]


class EventStored(Struct):
    """The answer to one event."""

    event: EventResult


class EventsAnswered(Struct):
    """The answer to a batch: a result for each event, in order."""

    events: list[BatchItem]


OPERATIONS = (
    Operation(
        "post",
        "/v1/events",
        "submit_events",
        TAG,
        "Submit an event, or a batch of events",
        f"""`type` is the id of an event type that is in force. `data` is checked against the fields of the version in force at the event's `timestamp`; all violations come back together. What is stored is on disk when the answer arrives.

With `events`, up to {MAX_EVENTS:,} events in one request. Each is kept whole or not at all, by itself: the answer is 201 when all were kept, otherwise 207 with the result of each, in order. A batch takes no idempotency key; the ids of its events serve that purpose.
""",
        "payments",
        {
            201: answered("All is stored.", (EventStored, EventsAnswered)),
            207: answered("Of a batch, some events were refused.", EventsAnswered),
        },
        (503,),
        (IDEMPOTENCY_KEY,),
        Content(
            (EventSent, EventsSent),
            examples={
                "event": Example("one event", EVENT),
                "events": Example("a batch, of which one is refused", EVENTS),
            },
        ),
        {
            "unknown_event_type": Example(
                "no such type",
                refusal("event.type", "unknown_event_type", "there is no event type `sign_im`"),
            )
        },
    ),
    Operation(
        "get",
        "/v1/event-types/{name}/metrics/{metric}",
        "read_metric",
        TAGS["event"],
        "Read a metric's value now and its recent course",
        "For one key, hour by hour over the last day.",
        "rules",
        {200: answered("The metric.", {"metric": MetricShown})},
        (404, 422, 503),
        (
            path_parameter("name", "The event type.", "sign_in"),
            path_parameter("metric", "The metric's name.", "failures"),
            query_parameter(
                "key",
                "The value of the metric's key; given once for each of several keys, in order.",
                list[str],
            ),
        ),
    ),
    Operation(
        "get",
        "/v1/alerts",
        "list_alerts",
        TAG,
        "List alerts, newest first",
        "What monitors raised; the same that webhooks send.",
        "payments",
        {200: answered("A page.", {"alerts": list[AlertShown], "cursor": Cursor})},
        (422, 503),
        (CURSOR, limit()),
    ),
)
