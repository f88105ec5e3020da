"""`/v1/scores/drift`: whether scores still mean what they did, week by week."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.api.http.filtering import with_filter
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.search import LagMs, lag_ms
from tollkeeper.api.http.tags import FIGURES
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.search.drift import MOST_WEEKS, SHIFTED, ScoreWeek
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.questions import FindScoreWeeks


class ScoreWeekView(Struct, frozen=True):
    """Seven days from `since`: `shift` is the population stability index of their scores against
    those of the four weeks before, null without either; `shifted` says that it is 0.25 or more. Of
    the `known` payments `expected` are the frauds that scores add up to, `frauds` those there were.
    """

    since: str
    payments: int
    shift: float | None
    shifted: bool
    known: int
    expected: float
    frauds: int


class DriftAnswer(Struct, frozen=True):
    """The oldest week first."""

    weeks: list[ScoreWeekView]
    lag_ms: LagMs


@operation(
    "GET",
    "/v1/scores/drift",
    "read_drift",
    tag=FIGURES,
    summary="Whether scores drift, by week",
    doc=f"""How far each week's scores moved from those of the four weeks before, and how far they came true. The population stability index takes tenths of the payments before; below 0.1 nothing has moved, from {SHIFTED} on something has: other customers, another attack, a header that is sent no more. Expected and actual frauds are of payments with a label, or older than 45 days without one; far apart, the scorecard wants `toll fit`. Weeks end with `until`, and go back to `since`, 8 weeks when left out, {MOST_WEEKS} at most.""",
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
    """The answer; `lag` in µs."""
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
