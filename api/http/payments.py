"""`/v1/payments`: create, update, read. The way of a request from its bytes to its answer's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeAlias, TypeVar, cast
from urllib.parse import unquote_to_bytes

import msgspec
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from tollkeeper.api.http.admission import admit
from tollkeeper.api.http.answers import Created, PaymentResult, Updated, UpdateResult, analyses
from tollkeeper.api.http.authentication import require
from tollkeeper.api.http.bodies import read_json_bytes
from tollkeeper.api.http.errors import JSON, Problem, invalid, not_found, unavailable
from tollkeeper.api.http.idempotency import digest, idempotency_key, repeated
from tollkeeper.api.http.views import explanation_view, payment_view
from tollkeeper.engine.decide import create
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.explain.explain import explain
from tollkeeper.engine.intake.payment import Payment, Update
from tollkeeper.engine.intake.read import read_creation, read_update
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.contract import Overloaded, Taken, Unavailable
from tollkeeper.engine.journal.entries import Idempotency
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.update import update

PATH = "/v1/payments"

_encode = msgspec.json.Encoder().encode

T = TypeVar("T")


def payments(engine: Engine) -> dict[str, ASGIApp]:
    """What answers each route at and below `/v1/payments`."""

    async def on_all(scope: Scope, receive: Receive, send: Send) -> None:
        await _send(send, HTTPStatus.CREATED, await post(engine, scope, receive))

    async def on_one(scope: Scope, receive: Receive, send: Send) -> None:
        raw_id = scope["path"].split("/")[3]
        operation = OPERATIONS[scope["state"]["route"], cast("HTTPScope", scope)["method"]]
        await _send(send, HTTPStatus.OK, await operation(engine, scope, receive, raw_id))

    return {PATH: on_all, **{path: on_one for path, _ in OPERATIONS}}


async def post(engine: Engine, scope: Scope, receive: Receive) -> bytes:
    """`POST /payments`: the body of its 201."""
    key = require(engine.state, scope, "payments")
    admit(engine)
    body = await read_json_bytes(scope, receive)
    arrived = engine.clock()
    repeat_key = idempotency_key(scope)
    if repeat_key is not None:
        stored = await engine.journal.find_idempotency(key.account, repeat_key, arrived)
        if stored is not None:
            return repeated(stored, body)
    force = engine.force[key.account]
    payment = read_creation(body, arrived, force.limits)
    if not isinstance(payment, Payment):
        raise invalid(payment)
    answers: list[bytes] = []

    def kept(decision: Decision) -> Idempotency | None:
        answers.append(_created(payment, decision))
        if repeat_key is None:
            return None
        return Idempotency(repeat_key, digest(body), answers[0])

    decision = await _kept(create(engine, force, payment, arrived, kept))
    _note(scope, payment.id, decision)
    return answers[0]


async def patch(engine: Engine, scope: Scope, receive: Receive, raw_id: str) -> bytes:
    """`PATCH /payments/{id}`: the body of its 200."""
    key = require(engine.state, scope, "payments")
    payment_id = _payment_id(raw_id)
    admit(engine)
    body = await read_json_bytes(scope, receive)
    arrived = engine.clock()
    sent = read_update(body, arrived, engine.force[key.account].limits)
    if not isinstance(sent, Update):
        raise invalid(sent)
    payment = await _kept(update(engine, key.account, payment_id, sent, arrived))
    if payment is None:
        raise _no_payment()
    if not isinstance(payment, Payment):
        raise invalid(payment)
    scope["state"]["log"].update(payment=payment.id, became=payment.status)
    return _encode(Updated(UpdateResult(payment.id, payment.status)))


async def get(engine: Engine, scope: Scope, _receive: Receive, raw_id: str) -> bytes:
    """`GET /payments/{id}`: the body of its 200."""
    key = require(engine.state, scope, "payments")
    payment_id = _payment_id(raw_id)
    states = await engine.journal.states(key.account, payment_id)
    if not states:
        raise _no_payment()
    scope["state"]["log"]["payment"] = payment_id
    return _encode(payment_view(states))


async def get_explanation(engine: Engine, scope: Scope, _receive: Receive, raw_id: str) -> bytes:
    """`GET /payments/{id}/explanation`: the body of its 200."""
    key = require(engine.state, scope, "payments")
    payment_id = _payment_id(raw_id)
    found = await explain(engine.journal, key.account, payment_id)
    if found is None:
        raise _no_payment()
    scope["state"]["log"]["payment"] = payment_id
    return _encode(explanation_view(found))


Operation: TypeAlias = Callable[[Engine, Scope, Receive, str], Awaitable[bytes]]

# Those on one payment, by route and method.
OPERATIONS: dict[tuple[str, str], Operation] = {
    (f"{PATH}/{{id}}", "GET"): get,
    (f"{PATH}/{{id}}", "PATCH"): patch,
    (f"{PATH}/{{id}}/explanation", "GET"): get_explanation,
}


async def _kept(keeping: Awaitable[T]) -> T:
    """What was kept; a journal that can't keep it is a 422 or a 503."""
    try:
        return await keeping
    except Taken:
        message = "the account has already used this id"
        raise invalid([Violation("payment.id", "taken", message)]) from None
    except Overloaded:
        raise unavailable("too many requests wait to be written") from None
    except Unavailable:
        raise unavailable("nothing can be written at the moment") from None


def _created(payment: Payment, decision: Decision) -> bytes:
    return _encode(Created(PaymentResult(payment.id, payment.status, analyses(decision))))


def _note(scope: Scope, payment_id: str, decision: Decision) -> None:
    fields: dict[str, Any] = scope["state"]["log"]
    fields["payment"] = payment_id
    fields["action"] = decision.action
    if decision.rule is not None:
        fields["rule"] = decision.rule.name
        fields["version"] = decision.rule.version


def _payment_id(raw: str) -> str:
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise _no_payment() from None


def _no_payment() -> Problem:
    return not_found("id", "no payment has this id")


async def _send(send: Send, status: HTTPStatus, body: bytes) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", JSON), (b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
