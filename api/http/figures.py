"""Figures over HTTP: counts by time and dimension, movers, scores, and the performance of rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, get_args

from msgspec import Meta, Struct

from tollkeeper.api.http.errors import invalid, invalid_at, unavailable
from tollkeeper.api.http.filtering import with_filter
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import FLAG, MOMENT, limit, path_parameter, query_parameter
from tollkeeper.api.http.queries import read_choice, read_flag, read_limit, read_moment_at
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.search import LagMs, TallyView, lag_ms, tally_view
from tollkeeper.api.http.tags import FIGURES
from tollkeeper.engine.explain.also_met import AlsoMet, also_met
from tollkeeper.engine.instants import DAY, HOUR, show_instant
from tollkeeper.engine.offline.jobs.jobs import JobExceededError
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.search.commonest import EVERY_BY, By
from tollkeeper.engine.search.field_figures import FieldFigure, account_figures
from tollkeeper.engine.search.figures import Dimension, Figure
from tollkeeper.engine.search.filters import Filter, span_violations
from tollkeeper.engine.search.find import FindPayments, FoundPage
from tollkeeper.engine.search.holdout import FalsePositives, FindFalsePositives
from tollkeeper.engine.search.movers import FindMovers, Mover
from tollkeeper.engine.search.performance import CameBack, ConditionPerformance
from tollkeeper.engine.search.questions import FindFigures, FindPerformance
from tollkeeper.engine.search.scores import FindScores, ScoreBucket
from tollkeeper.engine.search.spans import EVERY, MOST, Every, count_spans
from tollkeeper.engine.search.terms import Facet

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
USUAL = DAY
"""The span of figures if none is given."""
USUAL_OF_RULES = 30 * DAY
FIELDS_SECONDS = 10.0
"""The time limit for counting fields."""
EXPLAINED, MOST_EXPLAINED = 10, 100
"""The most hits, of a condition and of a whole rule, for which the other conditions are evaluated.
"""

MoneyView = Annotated[
    dict[str, str], Meta(description="The sum of their amounts by currency, as decimal text.")
]


def _choice(*choices: str) -> dict[str, Any]:
    return {"type": "string", "enum": [*choices]}


class FigureView(Struct, frozen=True):
    """The payments that arrived from `start` to before `end`; `by` is the dimension's value."""

    start: str
    end: str
    by: str | None
    tally: TallyView
    money: MoneyView


class FigureList(Struct, frozen=True):
    """`compared` are the same figures for the span selected by `compare`."""

    figures: list[FigureView]
    compared: list[FigureView]
    lag_ms: LagMs


class MoverView(Struct, frozen=True):
    """A value with many more payments than `usual`, the mean of the same span of four weeks; `newest` is
    the id of its newest payment in the span.
    """

    by: By
    value: str
    payments: int
    usual: float
    tally: TallyView
    newest: str


class MoverList(Struct, frozen=True):
    since: str
    until: str
    movers: list[MoverView]
    lag_ms: LagMs


class BucketView(Struct, frozen=True):
    """The payments with one score, and how many of them have each value of the dimension."""

    score: float
    payments: int
    by: dict[str, int]


class ScoreList(Struct, frozen=True):
    scores: list[BucketView]
    lag_ms: LagMs


class FalsePositivesAnswer(Struct, frozen=True):
    false_positives: FalsePositives
    lag_ms: LagMs


class FieldFigureList(Struct, frozen=True):
    """Figures by field name, for all fields that a rule can read; empty without payments."""

    fields: dict[str, FieldFigure]


class PrecisionView(Struct, frozen=True):
    """The share of fraud among hits labelled `fraud` or `legitimate`, with its 95 % interval."""

    labelled: int
    fraud: int
    share: float | None
    low: float | None
    high: float | None


class CameBackView(Struct, frozen=True):
    """Of the newest `of` denied payments, how many were followed within 7 days by a successful
    payment with the same card or user; the ids of both, newest first.
    """

    of: int
    succeeded: int
    denied: list[str]
    followed: list[str]


class AlsoMetView(Struct, frozen=True):
    """Of the newest `of` hits, how many also met each later condition, which would catch them
    without this one.
    """

    of: int
    conditions: dict[str, int]


class ConditionView(Struct, frozen=True):
    """What a condition of one version decided, and the outcomes.

    `condition` is null for payments that met none. `immature` is the share of hits younger than 45
    days, whose labels are not final. `by_score_too` counts hits that the score alone would have
    denied. `last` is the last hit of all time; `trend` is the number of hits per day.
    """

    condition: str | None
    version: int
    tally: TallyView
    money: MoneyView
    precision: PrecisionView
    immature: float | None
    came_back: CameBackView
    by_score_too: int
    also_met: AlsoMetView
    last: str | None
    trend: list[int]


class PerformanceAnswer(Struct, frozen=True):
    since: str
    until: str
    conditions: list[ConditionView]
    lag_ms: LagMs


@operation(
    "GET",
    "/v1/figures",
    "read_figures",
    tag=FIGURES,
    summary="Count payments by time and dimension",
    doc=(
        "Exact counts of the payments that match the filter, by default over the last 24 "
        "hours. Days and months are those of the account's time zone. A dimension has at "
        "most 200 values, those with the most payments."
    ),
    scope="payments:read",
    of_merchants=True,
    answers={200: Answer("The figures, oldest first.")},
    refusals=(422, 503),
)
@with_filter
async def read_figures(
    request: Request,
    wanted: Filter,
    every: Annotated[
        str | None,
        query_parameter(
            (f"The length of each span; by default there is one span. At most {MOST} spans."),
            _choice(*EVERY),
            "hour",
        ),
    ] = None,
    by: Annotated[
        str | None, query_parameter("The dimension.", _choice(*DIMENSIONS), "action")
    ] = None,
    money: Annotated[
        str | None, query_parameter("Whether to add amounts up, by currency.", FLAG)
    ] = None,
    compare: Annotated[
        str | None,
        query_parameter("How far back the compared span lies, such as `7d`.", example="7d"),
    ] = None,
) -> FigureList:
    now = request.engine.clock()
    until = now if wanted.until is None else wanted.until
    since = until - USUAL if wanted.since is None else wanted.since
    length = read_choice("every", every, EVERY)
    dimension = read_choice("by", by, DIMENSIONS)
    zone = request.account.settings.time_zone
    moment = read_moment_at("compare", compare, now)
    back = 0 if moment is None else max(now - moment, 0)
    _check_span(since, until, length)

    async def find(shift: int) -> tuple[list[FigureView], int]:
        question = FindFigures(
            wanted,
            since - shift,
            until - shift,
            length,
            zone,
            dimension,
            read_flag("money", money),
        )
        found, lag = await request.search.ask(request.key.account, question, list[Figure])
        # A span ends where the next begins, and every value has the same spans.
        show = cache(show_instant)
        return [_figure_view(figure, show) for figure in found], lag

    figures, lag = await find(0)
    compared = (await find(back))[0] if back else []
    return FigureList(figures, compared, lag_ms(lag))


@operation(
    "GET",
    "/v1/figures/movers",
    "find_movers",
    tag=FIGURES,
    summary="List what changed most",
    doc=(
        "Values with many more payments in a span than in the same span of each of the four "
        "weeks before, the most unusual first: 40 after a usual 2 come before 3 after none."
    ),
    scope="payments:read",
    answers={200: Answer("The movers.")},
    refusals=(422, 503),
)
async def find_movers(
    request: Request,
    by: Annotated[
        str | None, query_parameter("Only this kind of value.", _choice(*EVERY_BY), "bin")
    ] = None,
    since: Annotated[
        str | None,
        query_parameter(
            "The beginning of the span: an instant, or a span back; `1h` by default.", MOMENT, "1h"
        ),
    ] = None,
    until: Annotated[
        str | None, query_parameter("The end of the span; now by default.", MOMENT)
    ] = None,
    limit: Annotated[str | None, limit(usual=20)] = None,
) -> MoverList:
    now = request.engine.clock()
    begin, end = _span(since, until, now, HOUR)
    chosen = read_choice("by", by, EVERY_BY)
    question = FindMovers(
        EVERY_BY if chosen is None else (chosen,),
        begin,
        end,
        20 if limit is None else read_limit(limit),
    )
    found, lag = await request.search.ask(request.key.account, question, list[Mover])
    views = [
        MoverView(
            each.by, each.value, each.payments, each.usual, tally_view(each.tally), each.newest
        )
        for each in found
    ]
    return MoverList(show_instant(begin), show_instant(end), views, lag_ms(lag))


@operation(
    "GET",
    "/v1/scores",
    "read_scores",
    tag=FIGURES,
    summary="Show how scores are distributed",
    doc="101 buckets with exact counts, one for each score, since scores have two decimals.",
    scope="payments:read",
    of_merchants=True,
    answers={200: Answer("The buckets, from 0.00 to 1.00.")},
    refusals=(422, 503),
)
@with_filter
async def read_scores(
    request: Request,
    wanted: Filter,
    by: Annotated[
        str | None,
        query_parameter(
            "The dimension of each bucket's counts; `label` by default.",
            _choice(*DIMENSIONS),
            "label",
        ),
    ] = None,
) -> ScoreList:
    dimension = read_choice("by", by, DIMENSIONS) or "label"
    question = FindScores(wanted, dimension)
    found, lag = await request.search.ask(request.key.account, question, list[ScoreBucket])
    views = [BucketView(each.score / 100, each.payments, dict(each.by)) for each in found]
    return ScoreList(views, lag_ms(lag))


@operation(
    "GET",
    "/v1/figures/holdout",
    "read_false_positives",
    tag=FIGURES,
    summary="Count false positives among held-out denials",
    doc=(
        "The outcomes of payments that were denied but passed, according to the account's "
        "`holdout`. People's payments are those labelled legitimate, and those without a "
        "label that are older than 45 days; their share is the share of wrong denials."
    ),
    scope="payments:read",
    answers={200: Answer("The outcomes.")},
    refusals=(422, 503),
)
@with_filter
async def read_false_positives(request: Request, wanted: Filter) -> FalsePositivesAnswer:
    question = FindFalsePositives(wanted, request.engine.clock())
    found, lag = await request.search.ask(request.key.account, question, FalsePositives)
    return FalsePositivesAnswer(found, lag_ms(lag))


@operation(
    "GET",
    "/v1/figures/fields",
    "read_field_figures",
    tag=FIGURES,
    summary="Show which fields payments have",
    doc=(
        "For authors of rules: how many of the account's newest 2,000 payments, as they "
        "were created, have each field; the most common values of an enum with their "
        "shares; a number's quartiles. Never a text, an address or an id. Computed in a "
        "process of its own."
    ),
    scope="payments:read",
    answers={200: Answer("The fields.")},
    refusals=(422, 503),
)
async def read_field_figures(request: Request) -> FieldFigureList:
    account = request.key.account
    try:
        found = await request.jobs.brief(
            account, FIELDS_SECONDS, account_figures, request.engine.source, account
        )
    except JobExceededError as error:
        raise unavailable(f"reading the payments: {error}") from None
    return FieldFigureList(found)


@operation(
    "GET",
    "/v1/rules/{name:str}/performance",
    "read_performance",
    tag=FIGURES,
    summary="Show how a rule performs",
    doc=(
        "For each condition and version: hits and their outcomes, money, precision from "
        "labels with its interval, the share of hits that may still get a label, how many "
        "denied customers came back and succeeded, and the hits per day; with `overlap`, "
        "which later conditions its newest hits also met. Over 30 days by default."
    ),
    scope="payments:read",
    answers={200: Answer("The conditions, those of the newest version first.")},
    refusals=(404, 422, 503),
)
async def read_performance(
    request: Request,
    name: Annotated[str, path_parameter("The rule's name.", "checkout")],
    since: Annotated[
        str | None, query_parameter("An instant, or a span back; `30d` by default.", MOMENT, "30d")
    ] = None,
    until: Annotated[
        str | None, query_parameter("An instant, or a span back; now by default.", MOMENT)
    ] = None,
    overlap: Annotated[
        str | None,
        query_parameter(
            "Whether to find `also_met`, which explains the newest hits one by one.",
            FLAG,
        ),
    ] = None,
) -> PerformanceAnswer:
    now = request.engine.clock()
    begin, end = _span(since, until, now, USUAL_OF_RULES)
    settings = request.account.settings
    _check_span(begin, end, "day")
    question = FindPerformance(
        name,
        _conditions(request, name),
        begin,
        end,
        settings.thresholds.deny,
        settings.time_zone,
    )
    found, lag = await request.search.ask(request.key.account, question, list[ConditionPerformance])
    views = []
    left = MOST_EXPLAINED if read_flag("overlap", overlap) else 0
    for each in found:
        also = await _also_met(request, name, each, (begin, end), min(left, EXPLAINED))
        left -= also.of
        views.append(_condition_view(each, also))
    return PerformanceAnswer(show_instant(begin), show_instant(end), views, lag_ms(lag))


ROUTES = (
    read_figures,
    find_movers,
    read_scores,
    read_false_positives,
    read_field_figures,
    read_performance,
)


def _conditions(request: Request, name: str) -> tuple[tuple[int, str], ...]:
    """Return the conditions of the active version, so that those without hits are listed too."""
    lineage = request.account.files.get(("rule", name))
    if lineage is None:
        raise NotFound("name", f"there is no rule `{name}`")
    if lineage.active is None:
        return ()
    rule = request.engine.active[request.key.account].rules[name, lineage.active]
    named = (each.condition for each in rule.applied)
    return tuple((lineage.active, condition) for condition in named if condition is not None)


def _span(since: str | None, until: str | None, now: int, usual: int) -> tuple[int, int]:
    """Read the span (µs), `usual` long by default. Raises `Problem` 422."""
    begin, end = read_moment_at("since", since, now), read_moment_at("until", until, now)
    end = now if end is None else end
    begin = end - usual if begin is None else begin
    _check_span(begin, end, None)
    return begin, end


def _check_span(since: int, until: int, every: Every | None) -> None:
    if violations := [*span_violations(since, until)]:
        raise invalid(violations)
    if every is not None and count_spans(since, until, every) > MOST:
        message = f"this makes more than {MOST} spans: ask for longer ones"
        raise invalid_at("every", "out_of_range", message)


def _money(money: dict[str, int]) -> dict[str, str]:
    return {name: f"{amount // 100}.{amount % 100:02}" for name, amount in money.items()}


def _figure_view(figure: Figure, show: Callable[[int], str]) -> FigureView:
    return FigureView(
        show(figure.start),
        show(figure.end),
        figure.by,
        tally_view(figure.tally),
        _money(dict(figure.money)),
    )


async def _also_met(
    request: Request, rule: str, hits: ConditionPerformance, span: tuple[int, int], most: int
) -> AlsoMet:
    """Return which later conditions were also met, for at most `most` of a condition's newest hits."""
    if hits.condition is None or not (hits.tally.payments and most):
        return AlsoMet(0, {})
    terms = ((Facet.RULE, rule), (Facet.VERSION, hits.version), (Facet.CONDITION, hits.condition))
    wanted = Filter(since=span[0], until=span[1], terms=tuple((each,) for each in terms))
    question = FindPayments(wanted, None, most)
    account, engine = request.key.account, request.engine
    page, _ = await request.search.ask(account, question, FoundPage)
    ids = [each.id for each in page.payments]
    return await also_met(engine.journal, engine.past_states, account, ids)


def _came_back_view(found: CameBack) -> CameBackView:
    refused, followed = list(found.refused), list(found.followed)
    return CameBackView(len(refused), len(followed), refused, followed)


def _condition_view(found: ConditionPerformance, also: AlsoMet) -> ConditionView:
    precision = found.precision
    return ConditionView(
        condition=found.condition,
        version=found.version,
        tally=tally_view(found.tally),
        money=_money(dict(found.money)),
        precision=PrecisionView(
            precision.labelled, precision.fraud, precision.share, precision.low, precision.high
        ),
        immature=found.immature,
        came_back=_came_back_view(found.came_back),
        by_score_too=found.by_score_too,
        also_met=AlsoMetView(also.of, dict(also.conditions)),
        last=None if found.last is None else show_instant(found.last),
        trend=list(found.trend),
    )
