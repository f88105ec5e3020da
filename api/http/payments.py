"""`/v1/payments`: create, update, read. A payment's way from request to answer."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import msgspec

from tollkeeper.api.http.answers import (
    PaymentCreated,
    PaymentResult,
    PaymentUpdated,
    UpdateResult,
    analyses,
)
from tollkeeper.api.http.bodies import (
    admit,
    idempotency_key,
    read_json_bytes,
    repeatable,
    replay_response,
    turn_of,
)
from tollkeeper.api.http.error_answers import refusal
from tollkeeper.api.http.errors import Problem, invalid, not_found, taken
from tollkeeper.api.http.examples import ANALYSES, FINISHED, PAYMENT, SMALLEST, UPDATE
from tollkeeper.api.http.forced_outcomes import force_outcome, force_update_outcome
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import PaymentId
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import PAYMENTS
from tollkeeper.api.http.views import (
    ExplanationAnswer,
    PaymentAnswer,
    explanation_view,
    payment_view,
)
from tollkeeper.api.http.visibility import check_visible
from tollkeeper.engine.decide import decide_payment
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.explain.explain import explain
from tollkeeper.engine.intake.forced import UNFORCED
from tollkeeper.engine.intake.payment import CreationBody, Payment, Update, UpdateBody
from tollkeeper.engine.intake.read import read_creation, read_update
from tollkeeper.engine.journal.contract import Taken
from tollkeeper.engine.keep import keep, take_back
from tollkeeper.engine.programs.decider import answered_action
from tollkeeper.engine.shadows.evaluate import queue_shadows
from tollkeeper.engine.update import UpdatedPayment, merge_update

_encode = msgspec.json.Encoder().encode


@operation(
    "POST",
    "/v1/payments",
    "create_payment",
    tag=PAYMENTS,
    summary="Create a payment and analyse it",
    doc="""Stores the payment and answers with its analyses. It is on disk when the 201 arrives.

- `transactions` is required when `status` is `succeeded` or `declined`; an empty array counts as not sent. A transaction that is `succeeded` or `declined` needs `connector.response_code`.
- `status` is `initiated` and `id` is generated when left out. An id that the account has used before is refused (`taken`).
- `timestamp` is at most 24 hours old and not in the future.
- A private `device.ip_address` is refused; a private `backend.ip_address` is stored and ignored in the analysis.
- Confidential headers are removed, and card numbers in free text masked, before anything is stored or analysed.
- `analyses.bot_behaviour` is included when `analyze.bot_behaviour` is true. **Decide by its `action`**; the score informs.
- With a key of the test account, `metadata.toll_test` forces what comes back: `{"action": "deny"}`, `{"score": 0.7}`, `{"status": 503}`, `{"delay_ms": 800}`.
- `analyze.rule.name` applies the active version of that rule. A name that is unknown or unpublished is no error: `analyses.rule` is null, and the account's thresholds give the action.
""",
    scope="payments:write",
    demand="report",
    sent=Body(
        CreationBody,
        {
            "purchase": Example("a card payment to be analysed", PAYMENT),
            "smallest": Example("only what is required", SMALLEST),
            "declined": Example("a payment that has ended already", FINISHED),
        },
    ),
    answers={
        201: Answer(
            "The payment is stored and analysed.",
            PaymentCreated,
            {
                "decided": Example(
                    "a rule's condition was met",
                    {
                        "payment": {
                            "id": "order-1001-1",
                            "status": "initiated",
                            "analyses": ANALYSES,
                        }
                    },
                ),
                "no_analysis": Example(
                    "nothing was asked for",
                    {
                        "payment": {
                            "id": "019927d0-9d7c-7cc0-8f2b-5b1d2f3c4a5e",
                            "status": "initiated",
                            "analyses": {"rule": None},
                        }
                    },
                ),
            },
        )
    },
    refusals=(503,),
    errors={
        "several": Example(
            "two rules broken at once",
            {
                "errors": [
                    {
                        "field": "payment.method",
                        "type": "missing",
                        "message": "`method` is required",
                    },
                    {
                        "field": "payment.transactions",
                        "type": "required_by_status",
                        "message": "`transactions` is required when `status` is `declined`",
                    },
                ]
            },
        ),
        "private_address": Example(
            "a private device address",
            refusal(
                "payment.device.ip_address",
                "private_address",
                "`ip_address` must not be a private address",
            ),
        ),
        "taken": Example(
            "an id in use",
            refusal("payment.id", "taken", "the account has already used this id"),
        ),
        "idempotency_mismatch": Example(
            "an idempotency key with another request",
            refusal(
                "idempotency-key", "idempotency_mismatch", "this key was used with another request"
            ),
        ),
    },
    repeatable=True,
)
async def create_payment(request: Request) -> bytes:
    engine = request.engine
    admit(engine)
    body = await read_json_bytes(request)
    arrived = engine.clock()
    repeat_key = idempotency_key(request.known)
    if repeat_key is None:
        return await _create(request, None, body, arrived)
    async with turn_of(request, repeat_key):
        stored = await _stored_response(request, repeat_key, body, arrived)
        return stored or await _create(request, repeat_key, body, arrived)


@operation(
    "PATCH",
    "/v1/payments/{id:str}",
    "update_payment",
    tag=PAYMENTS,
    summary="Report a payment's final status",
    doc="""Adds the final status, and data that was not there at the creation.

- Any status may be followed by any of the four final ones; each change is kept.
- `transactions` is required when `status` is `succeeded` or `declined`.
- Members of `method` and `card` that are sent replace the stored ones; absent or null keeps them. `card` needs `network` and `presence`.
- A transaction sent again under its id replaces that attempt and keeps its timestamp unless a new one is sent; others are added.
- The decision of the creation stays as it was. Counters of later payments see the new status.
""",
    scope="payments:write",
    demand="report",
    sent=Body(UpdateBody, {"succeeded": Example("it was paid", UPDATE)}),
    answers={
        200: Answer(
            "The payment is updated.",
            PaymentUpdated,
            {
                "updated": Example(
                    "the new status", {"payment": {"id": "order-1001-1", "status": "succeeded"}}
                )
            },
        )
    },
    refusals=(404, 503),
    errors={
        "status": Example(
            "a status that is not final",
            refusal(
                "payment.status",
                "invalid_value",
                "`status` must be one of `succeeded`, `declined`, `failed`, `blocked`",
            ),
        )
    },
)
async def update_payment(request: Request, raw_id: PaymentId) -> bytes:
    engine, account = request.engine, request.key.account
    payment_id = _payment_id(raw_id)
    admit(engine)
    body = await read_json_bytes(request)
    arrived = engine.clock()
    sent = read_update(body, arrived, engine.active[account].limits)
    if not isinstance(sent, Update):
        raise invalid(sent)
    if request.account.live is not None:
        await force_update_outcome(body)
    # The payment's next update must start from the result of this one.
    async with engine.locks.of("payment", account, payment_id):
        updated = await merge_update(engine, account, payment_id, sent, arrived)
        if updated is None:
            raise _no_payment()
        if not isinstance(updated, UpdatedPayment):
            raise invalid(updated)
        await keep(engine, updated.pending)
    payment = updated.payment
    request.log.update(payment=payment.id, became=payment.status)
    return _encode(PaymentUpdated(UpdateResult(payment.id, payment.status)))


@operation(
    "GET",
    "/v1/payments/{id:str}",
    "read_payment",
    tag=PAYMENTS,
    summary="Read a payment and its history",
    doc=(
        "The fields as known now, under the names they were sent with, and the creation and "
        "every update, oldest first. Confidential headers and full card numbers are never "
        "stored."
    ),
    scope="personal:read",
    of_merchants=True,
    answers={
        200: Answer(
            "The payment.",
            PaymentAnswer,
            {
                "known": Example(
                    "a payment that succeeded",
                    {
                        "payment": {
                            "id": "p-7",
                            "type": "verify",
                            "status": "succeeded",
                            "currency": "EUR",
                            "timestamp": "2026-09-10T00:26:40Z",
                            "method": {"type": "credit_card"},
                            "merchant": {"id": "m-1"},
                            "analyses": {"rule": None},
                        },
                        "history": [
                            {
                                "at": "2026-09-10T00:26:40Z",
                                "kind": "creation",
                                "status": "initiated",
                            },
                            {"at": "2026-09-10T00:26:52Z", "kind": "update", "status": "succeeded"},
                        ],
                    },
                )
            },
        )
    },
    refusals=(404, 503),
)
async def read_payment(request: Request, raw_id: PaymentId) -> bytes:
    payment_id = _payment_id(raw_id)
    await check_visible(request, payment_id)
    states = await request.engine.journal.states(request.key.account, payment_id)
    if not states:
        raise _no_payment()
    request.log["payment"] = payment_id
    return _encode(payment_view(states))


@operation(
    "GET",
    "/v1/payments/{id:str}/explanation",
    "explain_payment",
    tag=PAYMENTS,
    summary="Explain a payment's decision",
    doc=(
        "What each signal added to the score, and the value of every part of each "
        "condition, from the versions and values that the payment recorded; the same years "
        "later."
    ),
    scope="personal:read",
    answers={200: Answer("The explanation.", ExplanationAnswer)},
    refusals=(404, 503),
)
async def explain_payment(request: Request, raw_id: PaymentId) -> bytes:
    payment_id = _payment_id(raw_id)
    explanation = await explain(
        request.engine.journal, request.engine.past_states, request.key.account, payment_id
    )
    if explanation is None:
        raise _no_payment()
    request.log["payment"] = payment_id
    return _encode(explanation_view(explanation))


ROUTES = (create_payment, update_payment, read_payment, explain_payment)


async def _create(request: Request, repeat_key: str | None, body: bytes, arrived: int) -> bytes:
    engine = request.engine
    active = engine.active[request.key.account]
    payment = read_creation(body, arrived, active.limits)
    if not isinstance(payment, Payment):
        raise invalid(payment)
    forced = UNFORCED if active.account.live is None else await force_outcome(payment.metadata)
    try:
        decided = await decide_payment(engine, request.key.account, payment, arrived, forced)
        try:
            response = _encode_created(payment, decided.decision)
            idempotency = repeatable(request, repeat_key, body, response)
        except BaseException:
            await take_back(engine, decided.pending)
            raise
        await keep(engine, decided.pending, idempotency)
    except Taken:
        raise taken("payment.id") from None
    if decided.shadows:
        queue_shadows(engine, decided)
    _note(request, payment.id, decided.decision)
    if (score := decided.decision.score) is not None:
        request.service.figures.count_score(request.key.account, score)
    return response


async def _stored_response(
    request: Request, repeat_key: str, body: bytes, arrived: int
) -> bytes | None:
    """Return the stored response to an earlier request with this idempotency key. Raises as
    `replay_response`.
    """
    journal, account = request.engine.journal, request.key.account
    stored = await journal.find_idempotency(account, repeat_key, arrived)
    return None if stored is None else replay_response(request, stored, body)


def _encode_created(payment: Payment, decision: Decision) -> bytes:
    return _encode(PaymentCreated(PaymentResult(payment.id, payment.status, analyses(decision))))


def _note(request: Request, payment_id: str, decision: Decision) -> None:
    fields = request.log
    fields["payment"] = payment_id
    fields["action"] = answered_action(decision)
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
