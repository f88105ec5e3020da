"""`/v1/scores/drift`: whether scores still mean what they did, week by week."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.api.http.filtering import with_filter
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.search import LagMs, lag_ms
from tollkeeper.api.http.tags import FIGURES
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.search.drift import MOST_WEEKS, SHIFTED, FindScoreWeeks, ScoreWeek
from tollkeeper.engine.search.filters import Filter


class ScoreWeekView(Struct, frozen=True):
    """Seven days from `since`. `shift` is the population stability index of their scores against
    those of the four weeks before, null if either has no payments; `shifted` is true from 0.25 on.
    Of the `known` payments, `expected` is the number of frauds that the scores predict, `frauds`
    the actual number.
    """

    since: str
    payments: int
    shift: float | None
    shifted: bool
    known: int
    expected: float
    frauds: int


class DriftAnswer(Struct, frozen=True):
    """The weeks, oldest first."""

    weeks: list[ScoreWeekView]
    lag_ms: LagMs


@operation(
    "GET",
    "/v1/scores/drift",
    "read_drift",
    tag=FIGURES,
    summary="Show whether scores drift, by week",
    doc=(
        "How far each week's scores shifted from those of the four weeks before, and how "
        "well they predicted fraud. The population stability index is over tenths of the "
        f"earlier payments: below 0.1 means no shift, from {SHIFTED} on there is one: other "
        "customers, another attack, a header that is no longer sent. Expected and actual "
        "frauds are counted over payments with a label, or older than 45 days without one; "
        "if they are far apart, the scorecard needs `toll fit`. Weeks end at `until` and go "
        f"back to `since`, by default 8 weeks, at most {MOST_WEEKS}."
    ),
    scope="payments:read",
    answers={200: Answer("The weeks.")},
    refusals=(422, 503),
)
@with_filter
async def read_drift(request: Request, wanted: Filter) -> DriftAnswer:
    question = FindScoreWeeks(wanted, request.engine.clock())
    found, lag = await request.search.ask(request.key.account, question, list[ScoreWeek])
    return drift_answer(found, lag)


ROUTES = (read_drift,)


def drift_answer(weeks: list[ScoreWeek], lag: int) -> DriftAnswer:
    """Return the answer; `lag` in µs."""
    return DriftAnswer([_view(each) for each in weeks], lag_ms(lag))


def _view(week: ScoreWeek) -> ScoreWeekView:
    return ScoreWeekView(
        since=show_instant(week.since),
        payments=week.payments,
        shift=None if week.shift is None else round(week.shift, 4),
        shifted=week.shift is not None and week.shift >= SHIFTED,
        known=week.known,
        expected=round(week.expected, 1),
        frauds=week.frauds,
    )
