"""`/v1/claims`: payments to review, each reserved for one person for a while."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.filtering import with_filter
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import limit as most_of
from tollkeeper.api.http.queries import read_limit
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.search import FoundPayment, LagMs, SortBy, found_view, lag_ms, read_sort
from tollkeeper.api.http.tags import LABELS
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.registry.claims import CLAIM_LASTS
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.find import FindPayments, FoundPage

_AT_ONCE = 20
_PAGE = 200
_PAGES = 10
"""The most pages of payments that are searched for unclaimed ones."""


class ClaimList(Struct, frozen=True):
    """Payments reserved for you until `ends_at`."""

    payments: list[FoundPayment]
    ends_at: InstantText
    lag_ms: LagMs


@operation(
    "POST",
    "/v1/claims",
    "claim_payments",
    tag=LABELS,
    summary="Reserve payments for review",
    doc="The first that the search finds and nobody else is judging, for 15 minutes; those that are yours already among them, anew. With `label=none` those that were judged meanwhile are not found again. Claims are kept in memory: after a start of the service there are none.",
    scope="personal:read",
    of_merchants=True,
    answers={200: Answer("The payments are reserved.")},
    refusals=(422, 503),
)
@with_filter
async def claim_payments(
    request: Request,
    wanted: Filter,
    sort: SortBy = None,
    limit: Annotated[str | None, most_of(usual=_AT_ONCE)] = None,
) -> ClaimList:
    engine, key = request.engine, request.key
    most, now = _AT_ONCE if limit is None else read_limit(limit), request.engine.clock()
    taken: list[FoundPayment] = []
    cursor, lag, order = None, 0, read_sort(sort, wanted)
    for _ in range(_PAGES):
        question = FindPayments(wanted, cursor, _PAGE, order)
        page, lag = await request.search.ask(key.account, question, FoundPage)
        for payment in page.payments:
            if len(taken) < most and engine.claims.take(key.account, payment.id, key.id, now):
                taken.append(found_view(payment))
        cursor = page.cursor
        if cursor is None or len(taken) >= most:
            break
    return ClaimList(taken, show_instant(now + CLAIM_LASTS), lag_ms(lag))


class HeldClaim(Struct, frozen=True):
    """A payment reserved for you until `ends_at`."""

    payment: str
    ends_at: InstantText


class HeldClaims(Struct, frozen=True):
    claims: list[HeldClaim]


@operation(
    "GET",
    "/v1/claims",
    "list_claims",
    tag=LABELS,
    summary="List the payments reserved for you",
    doc="In the order in which they were reserved, judged or not.",
    scope="personal:read",
    of_merchants=True,
    answers={200: Answer("Your claims.")},
)
async def list_claims(request: Request) -> HeldClaims:
    engine, key = request.engine, request.key
    held = engine.claims.held(key.account, key.id, engine.clock())
    return HeldClaims([HeldClaim(id_, show_instant(end)) for id_, end in held.items()])


ROUTES = (claim_payments, list_claims)
