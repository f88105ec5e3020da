"""`/v1/events`, and the metrics of an event type over time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Annotated, Any, TypeAlias

import msgspec
from litestar import MediaType, Response
from msgspec import UNSET, Meta, Struct, UnsetType

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.authentication import count_reports
from tollkeeper.api.http.bodies import (
    admit,
    idempotency_key,
    read_json_bytes,
    repeatable,
    replay_response,
    turn_of,
)
from tollkeeper.api.http.error_answers import refusal
from tollkeeper.api.http.errors import (
    Problem,
    as_problem,
    invalid,
    invalid_at,
    not_found,
    taken,
    unavailable,
)
from tollkeeper.api.http.examples import EVENT
from tollkeeper.api.http.examples import EVENTS as EVENT_BATCH
from tollkeeper.api.http.files import FileName
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import SEVERAL, path_parameter, query_parameter
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import EVENT_TYPES, EVENTS
from tollkeeper.engine.events.accept import AcceptedEvent, counted_event
from tollkeeper.engine.events.metrics import KeyMismatch, course
from tollkeeper.engine.events.submission import (
    MAX_EVENTS,
    Event,
    SentEvent,
    place_in_batch,
    read_event,
    split,
)
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.contract import JournalError, Taken
from tollkeeper.engine.keep import keep, take_back
from tollkeeper.engine.programs.active import ActivePrograms, choose_event_type
from tollkeeper.engine.programs.json_values import JsonValue
from tollkeeper.engine.registry.errors import Refused
from tollkeeper.engine.runtime import Engine

encode = msgspec.json.Encoder().encode

_AT_ONCE = 32
"""The number of events of a batch that are written at the same time."""

Metrics: TypeAlias = Annotated[
    dict[str, JsonValue], Meta(description="Each metric's value for this event's own keys.")
]


class EventBody(Struct, frozen=True):
    """One event."""

    event: SentEvent


class EventBatch(Struct, frozen=True):
    """A batch of events, each as in `event`."""

    events: Annotated[list[SentEvent], Meta(min_length=1, max_length=MAX_EVENTS)]


class EventResult(Struct, frozen=True):
    """A stored event; `alerts` names the monitors whose alerts it raised."""

    id: str
    type: str
    version: int
    metrics: Metrics
    alerts: Sequence[str]


class EventAnswer(Struct, frozen=True):
    """The answer to one event."""

    event: EventResult


class BatchItem(Struct, frozen=True):
    """The result of one event of a batch: `event` with a 201, `errors` with any other status."""

    status: int
    event: EventResult | UnsetType = UNSET
    errors: list[Violation] | UnsetType = UNSET


class BatchAnswer(Struct, frozen=True):
    """The answer to a batch: a result for each event, in order."""

    events: list[BatchItem]


class MetricPoint(Struct, frozen=True):
    at: InstantText
    value: JsonValue


class MetricView(Struct, frozen=True):
    """A metric's current value, and its hourly values of the last day, oldest first."""

    type: str
    name: str
    version: int
    key: list[str]
    value: JsonValue
    course: list[MetricPoint]


class MetricAnswer(Struct, frozen=True):
    metric: MetricView


@operation(
    "POST",
    "/v1/events",
    "submit_events",
    tag=EVENTS,
    summary="Submit an event, or a batch of events",
    doc=f"""`type` is the id of an event type that is in force. `data` is checked against the fields of the version in force at the event's `timestamp`; all violations come back together. What is stored is on disk when the answer arrives.

With `events`, up to {MAX_EVENTS:,} events in one request. Each is kept whole or not at all, by itself: the answer is 201 when all were kept, otherwise 207 with the result of each, in order. A batch takes no idempotency key; the ids of its events serve that purpose.
""",
    scope="events:write",
    demand="report",
    sent=Body(
        EventBody | EventBatch,
        {
            "event": Example("one event", EVENT),
            "events": Example("a batch, of which one is refused", EVENT_BATCH),
        },
    ),
    answers={
        201: Answer("Everything is stored.", EventAnswer | BatchAnswer),
        207: Answer("Of a batch, some events were refused.", BatchAnswer),
    },
    refusals=(503,),
    errors={
        "unknown_event_type": Example(
            "no such type",
            refusal("event.type", "unknown_event_type", "there is no event type `sign_im`"),
        )
    },
    repeatable=True,
)
async def submit_events(request: Request) -> Response[Any]:
    engine = request.engine
    admit(engine)
    body = await read_json_bytes(request)
    arrived = engine.clock()
    batch = split(body)
    repeat_key = idempotency_key(request.known)
    if isinstance(batch, Violation):
        raise invalid([batch])
    if batch is None:
        return await submit_one(request, body, arrived, repeat_key)
    return await submit_batch(request, batch, arrived, repeat_key)


async def submit_batch(
    request: Request, batch: Sequence[bytes], arrived: int, repeat_key: str | None
) -> Response[Any]:
    if repeat_key is not None:
        message = "a batch takes no key: the ids of its events do what a key does"
        raise invalid_at("idempotency-key", "invalid_value", message)
    if not 1 <= len(batch) <= MAX_EVENTS:
        raise invalid_at("events", "out_of_range", f"a batch has 1 to {MAX_EVENTS} events")
    count_reports(request, len(batch) - 1)
    active = request.engine.active[request.key.account]
    results = await accepted_all(request.engine, active, batch, arrived)
    accepted = sum(result["status"] == HTTPStatus.CREATED for result in results)
    request.log.update(events=len(results), kept=accepted)
    status = HTTPStatus.CREATED if accepted == len(results) else HTTPStatus.MULTI_STATUS
    return Response({"events": results}, status_code=status)


async def submit_one(
    request: Request, body: bytes, arrived: int, repeat_key: str | None
) -> Response[Any]:
    journal, account = request.engine.journal, request.key.account
    async with turn_of(request, repeat_key):
        if repeat_key is not None:
            stored = await journal.find_idempotency(account, repeat_key, arrived)
            if stored is not None:
                return created_response(replay_response(request, stored, body))
        return await _submit_new(request, body, arrived, repeat_key)


async def _submit_new(
    request: Request, body: bytes, arrived: int, repeat_key: str | None
) -> Response[Any]:
    engine, account = request.engine, request.key.account
    try:
        async with take_in(engine, engine.active[account], body, arrived) as (pending, accepted):
            try:
                response = encode({"event": accepted})
                idempotency = repeatable(request, repeat_key, body, response)
            except BaseException:
                await take_back(engine, pending)
                raise
            await keep(engine, pending, idempotency)
    except Taken:
        raise taken("event.id") from None
    request.log.update(
        event_type=accepted.type, event_id=accepted.id, kept=1, alerts=len(accepted.alerts)
    )
    return created_response(response)


@operation(
    "GET",
    "/v1/event-types/{name:str}/metrics/{metric:str}",
    "read_metric",
    tag=EVENT_TYPES,
    summary="Read a metric's current value and recent history",
    doc="For one key, hour by hour over the last day.",
    scope="rules:read",
    answers={200: Answer("The metric.")},
    refusals=(404, 422, 503),
)
async def read_metric(
    request: Request,
    name: FileName,
    metric: Annotated[str, path_parameter("The metric's name.", "failures")],
    key: Annotated[
        list[str] | None,
        query_parameter(
            "The value of the metric's key; given once for each of several keys, in order.",
            {"type": "array", "items": {"type": "string"}},
        ),
        SEVERAL,
    ] = None,
) -> MetricAnswer:
    engine, account = request.engine, request.key.account
    now = engine.clock()
    loaded = choose_event_type(engine.active[account], name, now)
    if loaded is None:
        raise not_found("type", f"there is no active event type `{name}`")
    found = next((each for each in loaded.metrics if each.name == metric), None)
    if found is None:
        raise not_found("metric", f"`{name}` has no metric `{metric}`")
    if not engine.ready.is_set():
        raise unavailable("the windows are being rebuilt")
    try:
        points = await course(engine.windows, account, loaded, found, key or [], now)
    except KeyMismatch as mismatch:
        raise invalid_at("key", "invalid_value", str(mismatch)) from None
    return MetricAnswer(
        MetricView(
            name,
            metric,
            loaded.version,
            key or [],
            points[-1].value,
            [MetricPoint(show_instant(point.at), point.value) for point in points],
        )
    )


ROUTES = (submit_events, read_metric)


def created_response(body: bytes) -> Response[Any]:
    return Response(body, status_code=HTTPStatus.CREATED, media_type=MediaType.JSON)


def take_in(
    engine: Engine, active: ActivePrograms, body: bytes, arrived: int
) -> AbstractAsyncContextManager[AcceptedEvent]:
    """The event as `counted_event` gives it. Raises `Problem` for one that is refused."""
    event = read_event(body, arrived, active)
    if not isinstance(event, Event):
        raise invalid(event)
    return counted_event(engine, active, event, arrived)


async def accepted_all(
    engine: Engine, active: ActivePrograms, batch: Sequence[bytes], arrived: int
) -> list[dict[str, Any]]:
    """Return each event's result, in order; each event is stored or refused independently."""

    def failed(index: int, problem: Problem) -> dict[str, Any]:
        return {"status": int(problem.status), "errors": place_in_batch(index, problem.violations)}

    async def one(index: int) -> dict[str, Any]:
        try:
            async with take_in(engine, active, batch[index], arrived) as (pending, accepted):
                await keep(engine, pending)
        except Taken:
            return failed(index, taken("event.id"))
        except (Problem, Refused, JournalError) as error:
            problem = as_problem(error)
            assert problem is not None
            return failed(index, problem)
        return {"status": int(HTTPStatus.CREATED), "event": accepted}

    results: list[dict[str, Any]] = []
    for start in range(0, len(batch), _AT_ONCE):
        end = min(start + _AT_ONCE, len(batch))
        results += await asyncio.gather(*map(one, range(start, end)))
    return results
