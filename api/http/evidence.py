"""What a decision rests on besides its explanation: the counted records, and shadow versions."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import (
    Cursor,
    Limit,
    NextCursor,
    PaymentId,
    query_parameter,
    whole,
)
from tollkeeper.api.http.queries import (
    read_choice,
    read_count,
    read_limit,
    read_place,
    show_place,
)
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import PAYMENTS
from tollkeeper.engine.decision import Action
from tollkeeper.engine.explain.counted import counted_page
from tollkeeper.engine.programs.compile.explain import CountedRecord
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.shadows.record import ShadowOutcome, shadows_of

_DECIDERS: tuple[Decider, ...] = ("rule", "scorecard")


class CountedRecords(Struct, frozen=True):
    records: list[CountedRecord]
    cursor: NextCursor


class ShadowDecision(Struct, frozen=True):
    """The decision that was, or would have been, made; `score` is from 0 to 1."""

    action: Action | None
    condition: str | None
    score: Annotated[float, Meta(ge=0, le=1)] | None


class ShadowOfPayment(Struct, frozen=True):
    """The decision of a version on trial for this payment; `would` is null if it failed."""

    kind: Decider
    name: str
    version: int
    decided: ShadowDecision
    would: ShadowDecision | None


class ShadowsOfPayment(Struct, frozen=True):
    shadows: list[ShadowOfPayment]


@operation(
    "GET",
    "/v1/payments/{id:str}/explanation/records",
    "list_counted_records",
    tag=PAYMENTS,
    summary="List the records behind a count in an explanation",
    doc=(
        "Everything that an aggregate over history counted when the payment was decided, "
        "newest first: the payments and events in its window with its key, each as known "
        "then, except what was erased or purged since. A page with fewer items than "
        "requested may still have a `cursor`."
    ),
    scope="personal:read",
    answers={200: Answer("A page.")},
    refusals=(404, 422, 503),
)
async def list_counted_records(
    request: Request,
    id_: PaymentId,
    of: Annotated[
        str | None,
        query_parameter(
            "Whose aggregate it is; by default the rule's.",
            {"type": "string", "enum": [*_DECIDERS]},
            "rule",
        ),
    ] = None,
    index: Annotated[
        str | None,
        query_parameter("Its index in the explanation's `histories`; 0 by default.", whole(0), 0),
    ] = None,
    cursor: Cursor = None,
    limit: Limit = None,
) -> CountedRecords:
    page = await counted_page(
        request.engine.journal,
        request.engine.past_states,
        request.key.account,
        id_,
        read_choice("of", of, _DECIDERS) or "rule",
        read_count("index", index) or 0,
        read_place(request, "cursor", cursor),
        read_limit(limit),
    )
    return CountedRecords(page.items, show_place(request, page.cursor))


@operation(
    "GET",
    "/v1/payments/{id:str}/shadows",
    "list_shadows_of_payment",
    tag=PAYMENTS,
    summary="List what shadows would have decided about a payment",
    doc=(
        "For each version that was on trial when the payment was decided; empty for an "
        "unknown payment."
    ),
    scope="payments:read",
    answers={200: Answer("All of them.")},
    refusals=(404, 422),
)
async def list_shadows_of_payment(request: Request, id_: PaymentId) -> ShadowsOfPayment:
    found = await shadows_of(request.engine.journal, request.key.account, id_)
    return ShadowsOfPayment(
        [
            ShadowOfPayment(
                each.kind,
                each.name,
                each.version,
                _outcome(each.decided),
                None if each.would is None else _outcome(each.would),
            )
            for each in found
        ]
    )


ROUTES = (list_counted_records, list_shadows_of_payment)


def _outcome(outcome: ShadowOutcome) -> ShadowDecision:
    score = None if outcome.score is None else outcome.score / 100
    return ShadowDecision(outcome.action, outcome.condition, score)
