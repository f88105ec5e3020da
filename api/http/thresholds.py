"""`/v1/thresholds`: what a pair of thresholds on the score would do, computed from labels."""

from __future__ import annotations

from decimal import Decimal, DecimalException
from typing import Annotated

from msgspec import Struct

from tollkeeper.api.http.answers import ThresholdsView
from tollkeeper.api.http.errors import invalid_at
from tollkeeper.api.http.filtering import with_filter
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import query_parameter
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.search import LagMs, lag_ms
from tollkeeper.api.http.tags import FIGURES
from tollkeeper.engine.registry.changes import Costs, Thresholds
from tollkeeper.engine.registry.settings import BASIS_POINTS, HUNDREDTHS, MAX_CHARGEBACK
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.thresholds import (
    FindScoreBands,
    ScoreBand,
    ThresholdOutcome,
    cheapest,
    outcome,
    usual_currency,
)

_SHARE = {"type": "number", "minimum": 0, "maximum": 1}


class GroupOutcome(Struct, frozen=True):
    """The number of people, or of frauds; how many are challenged and denied, also as shares, which
    are null without payments.
    """

    payments: int
    challenged: int
    denied: int
    challenged_share: float | None
    denied_share: float | None


class ThresholdsOutcome(Struct, frozen=True):
    """The result of a pair of thresholds. `precision` is the share of frauds among those denied,
    null if none are; `cost` is decimal text by currency.
    """

    thresholds: ThresholdsView
    people: GroupOutcome
    frauds: GroupOutcome
    precision: float | None
    cost: dict[str, str]


class BandView(Struct, frozen=True):
    """The payments with one score; `unripe` ones have no label and may still get one."""

    score: float
    people: int
    frauds: int
    unripe: int


class ThresholdsAnswer(Struct, frozen=True):
    """`now` is for the account's thresholds, `asked` for those of the request. `cheapest` has the
    least cost in `currency`, the most common one; both are null if no payment has a label that
    counts.
    """

    now: ThresholdsOutcome
    asked: ThresholdsOutcome
    cheapest: ThresholdsOutcome | None
    currency: str | None
    bands: list[BandView]
    lag_ms: LagMs


@operation(
    "GET",
    "/v1/thresholds",
    "weigh_thresholds",
    tag=FIGURES,
    summary="Evaluate thresholds on the score",
    doc=(
        "What a pair of thresholds would have done to the scored payments, and what that "
        "costs. People are the payments labelled legitimate, and those without a label that "
        "are older than 45 days, since most chargebacks arrive by then; frauds are those "
        "labelled fraud. Younger payments without a label are left out.\n\n"
        "A fraud that passes costs its amount and the fee of a chargeback; a denied person "
        "costs the margin; a challenged person a part of it. A challenge is assumed to stop "
        "every fraud. Rules are ignored: this is about the score alone."
    ),
    scope="payments:read",
    of_merchants=True,
    answers={200: Answer("The outcomes, and the bands from 0.00 to 1.00.")},
    refusals=(422, 503),
)
@with_filter
async def weigh_thresholds(
    request: Request,
    wanted: Filter,
    challenge: Annotated[
        str | None,
        query_parameter("Challenge from this score; the account's own by default.", _SHARE, "0.5"),
    ] = None,
    deny: Annotated[
        str | None,
        query_parameter("Deny from this score; the account's own by default.", _SHARE, "0.85"),
    ] = None,
    chargeback: Annotated[
        str | None,
        query_parameter(
            ("The fee of a chargeback, in the payment's currency; the account's own by default."),
            {"type": "number", "minimum": 0, "maximum": MAX_CHARGEBACK},
            "15",
        ),
    ] = None,
    margin: Annotated[
        str | None,
        query_parameter(
            "The margin, as a share of the amount; the account's own by default.", _SHARE, "0.12"
        ),
    ] = None,
    challenge_lost: Annotated[
        str | None,
        query_parameter(
            ("The share of people who leave at a challenge; the account's own by default."),
            _SHARE,
            "0.03",
        ),
    ] = None,
) -> ThresholdsAnswer:
    own = request.account.settings.thresholds
    chosen = Thresholds(
        challenge=_share("challenge", challenge, HUNDREDTHS, own.challenge),
        deny=_share("deny", deny, HUNDREDTHS, own.deny),
    )
    usual = request.account.settings.costs
    most = MAX_CHARGEBACK * HUNDREDTHS
    costs = Costs(
        chargeback=_read_scaled("chargeback", chargeback, HUNDREDTHS, most, usual.chargeback),
        margin=_share("margin", margin, BASIS_POINTS, usual.margin),
        challenge_lost=_share("challenge_lost", challenge_lost, BASIS_POINTS, usual.challenge_lost),
    )
    question = FindScoreBands(wanted, request.engine.clock())
    bands, lag = await request.search.ask(request.key.account, question, list[ScoreBand])
    return thresholds_answer(bands, own, chosen, costs, lag)


ROUTES = (weigh_thresholds,)


def thresholds_answer(
    bands: list[ScoreBand], own: Thresholds, chosen: Thresholds, costs: Costs, lag: int
) -> ThresholdsAnswer:
    """Return the answer for both, and for the cheapest; `lag` in µs."""
    currency = usual_currency(bands)
    best = None if currency is None else cheapest(bands, costs, currency)
    return ThresholdsAnswer(
        now=_view(bands, outcome(bands, own, costs)),
        asked=_view(bands, outcome(bands, chosen, costs)),
        cheapest=None if best is None else _view(bands, best),
        currency=currency,
        bands=[
            BandView(each.score / 100, each.people.payments, each.frauds.payments, each.unripe)
            for each in bands
        ],
        lag_ms=lag_ms(lag),
    )


def _share(name: str, text: str | None, scale: int, usual: int) -> int:
    return _read_scaled(name, text, scale, scale, usual)


def _read_scaled(name: str, text: str | None, scale: int, most: int, usual: int) -> int:
    """Read a number, multiplied by `scale`, at most `most`. Raises `Problem` 422."""
    if text is None:
        return usual
    try:
        number = Decimal(text)
        scaled = number * scale
        if number.is_finite() and 0 <= scaled <= most and scaled == scaled.to_integral_value():
            return int(scaled)
    except DecimalException:
        pass
    words = f"a number from 0 to {most // scale} in steps of {Decimal(1) / scale:f}"
    raise invalid_at(name, "invalid_value", f"`{name}` is {words}")


def _view(bands: list[ScoreBand], found: ThresholdOutcome) -> ThresholdsOutcome:
    people = sum(band.people.payments for band in bands)
    frauds = sum(band.frauds.payments for band in bands)
    denied = found.people_denied + found.frauds_denied
    thresholds = found.thresholds
    return ThresholdsOutcome(
        thresholds=ThresholdsView(thresholds.challenge / 100, thresholds.deny / 100),
        people=_group(people, found.people_challenged, found.people_denied),
        frauds=_group(frauds, found.frauds_challenged, found.frauds_denied),
        precision=_part(found.frauds_denied, denied),
        cost={name: f"{cost // 100}.{cost % 100:02}" for name, cost in found.cost.items()},
    )


def _group(payments: int, challenged: int, denied: int) -> GroupOutcome:
    shares = _part(challenged, payments), _part(denied, payments)
    return GroupOutcome(payments, challenged, denied, *shares)


def _part(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
