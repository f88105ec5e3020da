"""`/v1/events`, and an event type's metrics over time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import MediaType, Response, get, post
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath, FromQuery

from tollkeeper.api.http.admission import admit
from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import AnyRequest, read_json_bytes
from tollkeeper.api.http.errors import Problem, invalid, not_found, unavailable
from tollkeeper.api.http.idempotency import digest, idempotency_key, repeated
from tollkeeper.engine.events.accept import Accepted, Answer, accept
from tollkeeper.engine.events.metrics import KeyMismatch, course
from tollkeeper.engine.events.submission import MAX_EVENTS, Event, read_event, split, within
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.contract import Overloaded, Taken, Unavailable
from tollkeeper.engine.journal.entries import Idempotency
from tollkeeper.engine.programs.active import InForce, choose_event_type
from tollkeeper.engine.runtime import Engine

encode = msgspec.json.Encoder().encode

AT_ONCE = 32
"""How many events of a batch are on their way to disk together."""


def event_routes(engine: Engine) -> list[BaseRouteHandler]:
    """The route of events."""

    @post("/v1/events", operation_id="submit_events")
    async def submit(request: AnyRequest) -> Response[Any]:
        key = require(engine.state, request.scope, "payments")
        admit(engine)
        body = await read_json_bytes(request.scope, request.receive)
        arrived = engine.clock()
        batch = split(body)
        log = request.scope["state"]["log"]
        repeat_key = idempotency_key(request.scope)
        if isinstance(batch, Violation):
            raise invalid([batch])
        if batch is None:
            return await submit_one(key.account, body, arrived, repeat_key, log)
        return await submit_batch(key.account, batch, arrived, repeat_key, log)

    async def submit_batch(
        account: int,
        batch: Sequence[bytes],
        arrived: int,
        repeat_key: str | None,
        log: dict[str, Any],
    ) -> Response[Any]:
        if repeat_key is not None:
            message = "a batch takes no key: the ids of its events do what a key does"
            raise invalid([Violation("idempotency-key", "invalid_value", message)])
        if not 1 <= len(batch) <= MAX_EVENTS:
            message = f"a batch has 1 to {MAX_EVENTS} events"
            raise invalid([Violation("events", "out_of_range", message)])
        results = await accepted_all(engine, engine.force[account], batch, arrived)
        kept = sum(result["status"] == HTTPStatus.CREATED for result in results)
        log.update(events=len(results), kept=kept)
        status = HTTPStatus.CREATED if kept == len(results) else HTTPStatus.MULTI_STATUS
        return Response({"events": results}, status_code=status)

    async def submit_one(
        account: int, body: bytes, arrived: int, repeat_key: str | None, log: dict[str, Any]
    ) -> Response[Any]:
        if repeat_key is not None:
            stored = await engine.journal.find_idempotency(account, repeat_key, arrived)
            if stored is not None:
                return created(repeated(stored, body))

        def answer(accepted: Accepted) -> Idempotency | None:
            if repeat_key is None:
                return None
            return Idempotency(repeat_key, digest(body), encode({"event": accepted}))

        force = engine.force[account]
        accepted = await accepted_one(engine, force, body, arrived, answer)
        log.update(
            event_type=accepted.type, event_id=accepted.id, kept=1, alerts=len(accepted.alerts)
        )
        return created(encode({"event": accepted}))

    return [submit]


def metric_routes(engine: Engine) -> list[BaseRouteHandler]:
    """The route of an event type's metrics."""

    @get("/v1/event-types/{name:str}/metrics/{metric:str}", operation_id="read_metric")
    async def read_metric(
        request: AnyRequest,
        name: FromPath[str],
        metric: FromPath[str],
        key: FromQuery[list[str] | None] = None,
    ) -> dict[str, Any]:
        account = require(engine.state, request.scope, "rules").account
        now = engine.clock()
        loaded = choose_event_type(engine.force[account], name, now)
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
            raise invalid([Violation("key", "invalid_value", str(mismatch))]) from None
        return {
            "metric": {
                "type": name,
                "name": metric,
                "version": loaded.version,
                "key": key or [],
                "value": points[-1].value,
                "course": [
                    {"at": show_instant(point.at), "value": point.value} for point in points
                ],
            }
        }

    return [read_metric]


def created(body: bytes) -> Response[Any]:
    return Response(body, status_code=HTTPStatus.CREATED, media_type=MediaType.JSON)


async def accepted_one(
    engine: Engine, force: InForce, body: bytes, arrived: int, answer: Answer | None = None
) -> Accepted:
    """Raises `Problem` for an event that is refused or can't be kept."""
    event = read_event(body, arrived, force)
    if not isinstance(event, Event):
        raise invalid(event)
    try:
        return await accept(engine, force, event, arrived, answer)
    except Taken:
        message = "the account has already used this id"
        raise invalid([Violation("event.id", "taken", message)]) from None
    except Overloaded:
        raise unavailable("too many requests wait to be written") from None
    except Unavailable:
        raise unavailable("nothing can be written at the moment") from None


async def accepted_all(
    engine: Engine, force: InForce, batch: Sequence[bytes], arrived: int
) -> list[dict[str, Any]]:
    """The result of each event, in order; each is kept whole or not at all."""

    async def one(index: int) -> dict[str, Any]:
        try:
            accepted = await accepted_one(engine, force, batch[index], arrived)
        except Problem as problem:
            return {
                "status": int(problem.status),
                "errors": within(index, problem.violations),
            }
        return {"status": int(HTTPStatus.CREATED), "event": accepted}

    results: list[dict[str, Any]] = []
    for start in range(0, len(batch), AT_ONCE):
        end = min(start + AT_ONCE, len(batch))
        results += await asyncio.gather(*map(one, range(start, end)))
    return results
