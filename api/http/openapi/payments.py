"""The operations on payments (docs/api.md, "Validation", "Analysis")."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec
from msgspec import Struct, structs

from tollkeeper.api.http.answers import Analyses, PaymentResult, UpdateResult
from tollkeeper.api.http.openapi.errors import refusal
from tollkeeper.api.http.openapi.examples import ANALYSES, FINISHED, PAYMENT, SMALLEST, UPDATE
from tollkeeper.api.http.openapi.operation import (
    Content,
    Example,
    Operation,
    answered,
    path_parameter,
    query_parameter,
)
from tollkeeper.api.http.openapi.parameters import CURSOR, IDEMPOTENCY_KEY, SINCE, Cursor, limit
from tollkeeper.api.http.views import HistoryItem
from tollkeeper.engine.decision import Action
from tollkeeper.engine.intake.payment import Creation, Payment, Update
from tollkeeper.engine.programs.compile.explain import (
    ExplainedHistory,
    ExplainedLet,
    ExplainedSignal,
    RuleExplanation,
)

TAG = "Payments"

_ID = path_parameter(
    "id",
    "The payment's id, percent-encoded; a `/` in it as `%2F`.",
    PAYMENT["payment"]["id"],
)


def _known_payment() -> type[Struct]:
    """A payment as it is read: its own fields but `analyze`, and the analyses."""
    words = get_type_hints(Payment, include_extras=True)
    fields: list[Any] = [
        (field.name, words[field.name])
        if field.required
        else (field.name, words[field.name], field.default)
        for field in structs.fields(Payment)
        if field.name != "analyze"
    ]
    shown = [*fields, ("analyses", Analyses)]
    docs = {"__doc__": "A payment as known now, with the analyses of its creation."}
    return msgspec.defstruct("KnownPayment", shown, kw_only=True, namespace=docs)


class DecidedPayment(Struct):
    """A decision: the payment in short, and its analyses."""

    id: str
    at: str
    type: str
    currency: str
    amount: float | None
    merchant: str
    analyses: Analyses


class Thresholds(Struct):
    """The score from which the account challenges, and from which it denies."""

    challenge: float
    deny: float


class ExplainedScorecard(Struct):
    """The score, signal by signal: contributions are added to the logit of the baseline."""

    scorecard: str
    version: int
    score: float
    baseline: float
    logit: float
    signals: list[ExplainedSignal]
    lets: list[ExplainedLet]
    histories: list[ExplainedHistory]


class ExplainedRule(RuleExplanation, frozen=True, kw_only=True):
    """The rule, condition by condition, each with the value of every part of its expression."""

    version: int


class PaymentExplanation(Struct):
    """Why a payment was decided as it was, from the versions and values that it recorded.

    `repeated` says whether evaluating it again gave what was decided. `scorecard` and `rule` are
    null where none was asked for.
    """

    payment: str
    at: str
    repeated: bool
    analyses: Analyses
    thresholds: Thresholds
    scorecard: ExplainedScorecard | None
    rule: ExplainedRule | None


OPERATIONS = (
    Operation(
        "post",
        "/v1/payments",
        "create_payment",
        TAG,
        "Create a payment and analyse it",
        """Stores the payment and answers with its analyses. It is on disk when the 201 arrives.

- `transactions` is required when `status` is `succeeded` or `declined`; an empty array counts as not sent. A transaction that is `succeeded` or `declined` needs `connector.response_code`.
- `status` is `initiated` and `id` is generated when left out. An id that the account has used before is refused (`taken`).
- `timestamp` is at most 24 hours old and not in the future.
- A private `device.ip_address` is refused; a private `backend.ip_address` is stored and ignored in the analysis.
- Confidential headers are removed, and card numbers in free text masked, before anything is stored or analysed.
- `analyses.bot_behaviour` is there when `analyze.bot_behaviour` is true. **Decide by its `action`**; the score informs.
- `analyze.rule.name` applies the active version of that rule. A name that is unknown or unpublished is no error: `analyses.rule` is null, and the account's thresholds give the action.
""",
        "payments",
        {
            201: answered(
                "The payment is stored and analysed.",
                {"payment": PaymentResult},
                decided=Example(
                    "a rule's condition was met",
                    {
                        "payment": {
                            "id": "order-1001-1",
                            "status": "initiated",
                            "analyses": ANALYSES,
                        }
                    },
                ),
                no_analysis=Example(
                    "nothing was asked for",
                    {
                        "payment": {
                            "id": "019927d0-9d7c-7cc0-8f2b-5b1d2f3c4a5e",
                            "status": "initiated",
                            "analyses": {"rule": None},
                        }
                    },
                ),
            )
        },
        (503,),
        (IDEMPOTENCY_KEY,),
        Content(
            {"payment": Creation},
            examples={
                "purchase": Example("a card payment to be analysed", PAYMENT),
                "smallest": Example("only what is required", SMALLEST),
                "declined": Example("a payment that has ended already", FINISHED),
            },
        ),
        {
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
                "an idempotency key with another body",
                refusal(
                    "idempotency-key", "idempotency_mismatch", "this key was used with another body"
                ),
            ),
        },
    ),
    Operation(
        "patch",
        "/v1/payments/{id}",
        "update_payment",
        TAG,
        "Tell a payment's final status",
        """Adds the final status, and data that was not there at the creation.

- Any status may be followed by any of the four final ones; each change is kept.
- `transactions` is required when `status` is `succeeded` or `declined`.
- Members of `method` and `card` that are sent replace the stored ones; absent or null keeps them. `card` needs `network` and `presence`.
- A transaction sent again under its id replaces that attempt and keeps its timestamp unless a new one is sent; others are added.
- The decision of the creation stays as it was. Counters of later payments see the new status.
""",
        "payments",
        {
            200: answered(
                "The payment is updated.",
                {"payment": UpdateResult},
                updated=Example(
                    "the new status", {"payment": {"id": "order-1001-1", "status": "succeeded"}}
                ),
            )
        },
        (404, 503),
        (_ID,),
        Content({"payment": Update}, examples={"succeeded": Example("it was paid", UPDATE)}),
        {
            "status": Example(
                "a status that is not final",
                refusal(
                    "payment.status",
                    "invalid_value",
                    "`status` must be one of `succeeded`, `declined`, `failed`, `blocked`",
                ),
            )
        },
    ),
    Operation(
        "get",
        "/v1/payments/{id}",
        "read_payment",
        TAG,
        "Read a payment and its history",
        "The fields as known now, under the names they were sent with, and the creation and every "
        "update, oldest first. Confidential headers and full card numbers were never stored.",
        "payments",
        {
            200: answered(
                "The payment.",
                {"payment": _known_payment(), "history": list[HistoryItem]},
                known=Example(
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
                ),
            )
        },
        (404, 503),
        (_ID,),
    ),
    Operation(
        "get",
        "/v1/payments/{id}/explanation",
        "explain_payment",
        TAG,
        "Explain a payment's decision",
        "What each signal added to the score, and what every part of each condition was, from the "
        "versions and values that the payment recorded; the same years later.",
        "payments",
        {200: answered("The explanation.", {"explanation": PaymentExplanation})},
        (404, 503),
        (_ID,),
    ),
    Operation(
        "get",
        "/v1/decisions",
        "list_decisions",
        TAG,
        "List decisions, newest first",
        "A page with fewer items than asked for may still have a `cursor`.",
        "payments",
        {200: answered("A page.", {"decisions": list[DecidedPayment], "cursor": Cursor})},
        (422, 503),
        (
            SINCE,
            query_parameter("action", "Only decisions with this action.", Action, "deny"),
            query_parameter("rule", "Only decisions by this rule.", example="checkout"),
            CURSOR,
            limit(),
        ),
    ),
)
