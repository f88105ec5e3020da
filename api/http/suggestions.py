"""`/v1/suggestions`: conditions learned from an account's labels, in another process."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import invalid_at, unavailable
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import SpanBack
from tollkeeper.api.http.queries import read_moment_at
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.runs import RunId, RunView, run_members
from tollkeeper.api.http.tags import BACKTESTS
from tollkeeper.engine.instants import DAY, show_instant
from tollkeeper.engine.offline.jobs.runs import JobRun, new_run
from tollkeeper.engine.offline.suggest.account import SuggestionWish, suggest_for_account
from tollkeeper.engine.offline.suggest.columns import families
from tollkeeper.engine.offline.suggest.report import SuggestedAction, Suggestion

_USUAL_DAYS = 90


Family: TypeAlias = Annotated[str, Meta(extra_json_schema={"enum": sorted(families())})]


class SuggestionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What to learn from, and limits for the conditions. Payments that arrived at `since` or later
    are used: an instant, or a span back; `90d` by default. A payment without a label counts as
    honest once it is `mature_days` old. `by_score` uses the score in place of labels. `precision`
    is the share of fraud that each condition should reach with nine chances in ten, `people` the
    share of honest payments that all conditions together may meet; `without` are fields that no
    condition may read.
    """

    since: SpanBack | None = None
    mature_days: Annotated[int, Meta(ge=0, le=365)] = 45
    name: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,63}$")] = "suggested"
    action: SuggestedAction = "deny"
    conditions: Annotated[int, Meta(ge=1, le=20)] = 5
    precision: Annotated[float, Meta(ge=0.5, le=0.999)] = 0.9
    people: Annotated[float, Meta(ge=0, le=0.1)] = 0.002
    without: tuple[Family, ...] = ()
    by_score: Annotated[float, Meta(ge=0, le=1)] | None = None


class SuggestionSummary(RunView, frozen=True):
    """A suggestion and its progress."""

    name: str
    since: str


class SuggestionView(SuggestionSummary, frozen=True):
    """`suggestion` is included when it is done, in the form of `toll suggest --json`."""

    suggestion: Suggestion | None


class SuggestionAnswer(Struct, frozen=True):
    suggestion: SuggestionView


class SuggestionList(Struct, frozen=True):
    suggestions: Annotated[list[SuggestionSummary], Meta(description="The newest first.")]


@operation(
    "POST",
    "/v1/suggestions",
    "start_suggestion",
    tag=BACKTESTS,
    summary="Learn conditions from the account's labels",
    doc=(
        "A few readable conditions that would have stopped payments labelled fraud, as a "
        "rule file with tests made from real payments. It learns from the first 60 % of the "
        "payments, drops what doesn't hold in the next 20 %, and is measured on the last 20 "
        "%. Denied payments have no outcome and are left out. Nothing is published. It runs "
        "in a process of its own; an account has one at a time."
    ),
    scope="rules:write",
    sent=Body(
        SuggestionBody,
        {"usual": Example("what is usual", {"since": "90d", "mature_days": 45})},
    ),
    answers={202: Answer("The suggestion is running.")},
    refusals=(409, 422, 503),
)
async def start_suggestion(request: Request) -> SuggestionAnswer:
    sent = await read_json(request, SuggestionBody)
    if find_spec("numpy") is None:
        raise unavailable("this service learns nothing: it was installed without the extra `fit`")
    unknown = set(sent.without) - families()
    if unknown:
        message = f"conditions read {', '.join(sorted(families()))}"
        raise invalid_at("without", "invalid_value", message)
    now = request.engine.clock()
    since = read_moment_at("since", sent.since, now)
    wish = SuggestionWish(
        since=max(0, now - _USUAL_DAYS * DAY) if since is None else since,
        mature=sent.mature_days * DAY,
        late=request.engine.windows.late,
        name=sent.name,
        action=sent.action,
        conditions=sent.conditions,
        precision=sent.precision,
        people=sent.people,
        without=frozenset(sent.without),
        by_score=None if sent.by_score is None else round(sent.by_score * 100),
    )
    account = request.account
    run = request.jobs.start(
        account.number,
        new_run("suggestion", wish, now, request.key.id),
        suggest_for_account,
        request.engine.source,
        account.name,
        wish,
    )
    return SuggestionAnswer(_view(run))


@operation(
    "GET",
    "/v1/suggestions",
    "list_suggestions",
    tag=BACKTESTS,
    summary="List the suggestions, newest first",
    doc=(
        "The last twenty that the account has started since the service began, without "
        "their results."
    ),
    scope="rules:read",
    answers={200: Answer("All of them.")},
)
async def list_suggestions(request: Request) -> SuggestionList:
    runs = request.jobs.runs(request.key.account, "suggestion")
    return SuggestionList([SuggestionSummary(**_members(run)) for run in runs])


@operation(
    "GET",
    "/v1/suggestions/{id:str}",
    "read_suggestion",
    tag=BACKTESTS,
    summary="Read a suggestion",
    doc="Its progress; once it is done, its rule file and what each condition stops.",
    scope="rules:read",
    answers={200: Answer("The suggestion.")},
    refusals=(404,),
)
async def read_suggestion(request: Request, id_: RunId) -> SuggestionAnswer:
    return SuggestionAnswer(_view(request.jobs.run(request.key.account, "suggestion", id_)))


@operation(
    "DELETE",
    "/v1/suggestions/{id:str}",
    "end_suggestion",
    tag=BACKTESTS,
    summary="Cancel and delete a suggestion",
    doc="A running one is cancelled at once.",
    scope="rules:write",
    answers={200: Answer("The suggestion is deleted.")},
    refusals=(404,),
)
async def end_suggestion(request: Request, id_: RunId) -> SuggestionAnswer:
    return SuggestionAnswer(
        _view(await request.jobs.remove(request.key.account, "suggestion", id_))
    )


ROUTES = (start_suggestion, list_suggestions, read_suggestion, end_suggestion)


def _members(run: JobRun) -> dict[str, Any]:
    wish: SuggestionWish = run.subject
    return {**run_members(run), "name": wish.name, "since": show_instant(wish.since)}


def _view(run: JobRun) -> SuggestionView:
    return SuggestionView(**_members(run), suggestion=run.found)
