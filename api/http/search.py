"""`/v1/payments`, read: find payments, count them, and find related ones."""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

from msgspec import Meta, Struct

from tollkeeper.api.http.answers import Analyses, HeldOut, analyses
from tollkeeper.api.http.errors import not_found
from tollkeeper.api.http.filtering import with_filter
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import (
    Cursor,
    Limit,
    NextCursor,
    PaymentId,
    Since,
    query_parameter,
)
from tollkeeper.api.http.queries import (
    name_place,
    read_choice,
    read_limit,
    read_place,
    read_since,
    show_place,
)
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import PAYMENTS
from tollkeeper.api.http.visibility import check_visible
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.labels.label import Verdict
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.find import (
    CountPayments,
    FindPayments,
    FoundPage,
    PaymentInShort,
    Sort,
    check_sort,
)
from tollkeeper.engine.search.related import FindRelated, RelatedPayments
from tollkeeper.engine.search.tally import Tally

SortBy: TypeAlias = Annotated[
    str | None,
    query_parameter(
        "Which payments come first; the newest when left out. `dearest` is the largest amount "
        "first, of the payments in one `currency`, which the filter names.",
        {"type": "string", "enum": [*get_args(Sort)]},
        "oldest",
    ),
]
LagMs = Annotated[
    int,
    Meta(
        ge=0,
        description=(
            "How many milliseconds the oldest payment or update that is not indexed yet has "
            "waited; 0 if there is none."
        ),
    ),
]


class CardView(Struct, frozen=True):
    """A card, as far as it is known."""

    network: str
    bin: str | None
    last_four: str | None


class FoundUser(Struct, frozen=True):
    id: str | None
    email: str | None


class FoundPayment(Struct, frozen=True):
    """A payment's summary, as known now. `at` is its arrival; `device` the fingerprint's id, `ip`
    the device's address, or else the backend's; `label` the one that counts.
    """

    id: str
    at: str
    type: str
    status: str
    currency: str
    amount: float | None
    merchant: str
    order: str | None
    user: FoundUser | None
    card: CardView | None
    device: str | None
    ip: str | None
    label: Verdict | None
    analyses: Analyses
    held_out: HeldOut


class PaymentPage(Struct, frozen=True):
    """`place` is up to where payments were looked at: the stream of decisions goes on from there when
    it is sent as `Last-Event-ID`.
    """

    payments: list[FoundPayment]
    cursor: NextCursor
    place: str
    lag_ms: LagMs


class PaymentCount(Struct, frozen=True):
    count: int
    lag_ms: LagMs


class TallyView(Struct, frozen=True):
    """Outcomes of payments: their number by action, by status and by label."""

    payments: int
    actions: dict[str, int]
    statuses: dict[str, int]
    labels: dict[str, int]


class RelatedView(Struct, frozen=True):
    """The payments that share one value, the arrival of the first and the last of them, and their
    outcomes. `by` is a search parameter; for `network` the parameter is `ip`.
    """

    by: str
    value: str
    first: str
    last: str
    tally: TallyView


class RelatedAnswer(Struct, frozen=True):
    related: list[RelatedView]
    lag_ms: LagMs


@operation(
    "GET",
    "/v1/payments",
    "find_payments",
    tag=PAYMENTS,
    summary="Find payments",
    doc=(
        "A payment must match every parameter; of one that is given several times, any "
        "value matches. Entities (card, BIN, device, address, user, e-mail, order, id) "
        "match exactly, an id also by its beginning.\n\n"
        "The payments come from an index that follows the journal; `lag_ms` says how far "
        "behind it is."
    ),
    scope="personal:read",
    of_merchants=True,
    answers={200: Answer("A page.")},
    refusals=(422, 503),
)
@with_filter
async def find_payments(
    request: Request,
    wanted: Filter,
    sort: SortBy = None,
    cursor: Cursor = None,
    limit: Limit = None,
) -> PaymentPage:
    question = FindPayments(
        wanted, read_place(request, "cursor", cursor), read_limit(limit), read_sort(sort, wanted)
    )
    page, lag = await request.search.ask(request.key.account, question, FoundPage)
    return PaymentPage(
        payments=[found_view(payment) for payment in page.payments],
        cursor=show_place(request, page.cursor),
        place=name_place(request, page.last),
        lag_ms=lag_ms(lag),
    )


@operation(
    "GET",
    "/v1/payments/count",
    "count_payments",
    tag=PAYMENTS,
    summary="Count payments",
    doc=(
        "The number of payments that the same parameters find. A payment whose id is "
        "`count` is at `/v1/payments/%63ount`."
    ),
    scope="payments:read",
    of_merchants=True,
    answers={200: Answer("The number of payments.")},
    refusals=(422, 503),
)
@with_filter
async def count_payments(request: Request, wanted: Filter) -> PaymentCount:
    found, lag = await request.search.ask(request.key.account, CountPayments(wanted), int)
    return PaymentCount(found, lag_ms(lag))


@operation(
    "GET",
    "/v1/payments/{id:str}/related",
    "find_related",
    tag=PAYMENTS,
    summary="Show what a payment shares with others",
    doc=(
        "By card, device, address, network, user, e-mail, order and BIN: the number of "
        "payments with the same value, including this one, and their outcomes."
    ),
    scope="personal:read",
    of_merchants=True,
    answers={200: Answer("The shared values, the most telling first.")},
    refusals=(404, 422, 503),
)
async def find_related(
    request: Request,
    id_: PaymentId,
    since: Since = None,
) -> RelatedAnswer:
    question = FindRelated(id_, read_since(request, since), request.key.merchants)
    await check_visible(request, id_)
    # A union can't be passed as a type.
    found, lag = await request.search.ask(
        request.key.account,
        question,
        list[RelatedPayments] | None,  # type: ignore[arg-type]
    )
    if found is None:
        raise not_found("id", "no payment has this id, or the index does not have it yet")
    return RelatedAnswer([_related_view(each) for each in found], lag_ms(lag))


ROUTES = (find_payments, count_payments, find_related)


def read_sort(text: str | None, wanted: Filter) -> Sort:
    """Which payments come first. Raises `Problem` 422, `Invalid`."""
    sort: Sort = read_choice("sort", text, get_args(Sort)) or "newest"
    check_sort(sort, wanted)
    return sort


def lag_ms(lag: int) -> int:
    """Convert a lag in µs to ms; 0 only if there is none."""
    return -(-lag // 1000)


def found_view(payment: PaymentInShort) -> FoundPayment:
    user = None
    if payment.user is not None or payment.email is not None:
        user = FoundUser(payment.user, payment.email)
    card = None
    if payment.network is not None:
        card = CardView(payment.network, payment.bin, payment.last_four)
    return FoundPayment(
        id=payment.id,
        at=show_instant(payment.arrived),
        type=payment.type,
        status=payment.status,
        currency=payment.currency,
        amount=payment.amount,
        merchant=payment.merchant,
        order=payment.order,
        user=user,
        card=card,
        device=payment.device,
        ip=payment.ip,
        label=payment.label,
        analyses=analyses(payment.decision),
        held_out=payment.decision.held_out,
    )


def tally_view(tally: Tally) -> TallyView:
    return TallyView(tally.payments, dict(tally.actions), dict(tally.statuses), dict(tally.labels))


def _related_view(related: RelatedPayments) -> RelatedView:
    return RelatedView(
        related.by,
        related.value,
        show_instant(related.first),
        show_instant(related.last),
        tally_view(related.tally),
    )
