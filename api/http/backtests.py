"""`/v1/backtests`: run a version or a text over stored history, in another process."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import invalid, invalid_at
from tollkeeper.api.http.examples import RULE
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import SpanBack
from tollkeeper.api.http.queries import read_moment_at
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.runs import RunId, RunView, run_members
from tollkeeper.api.http.tags import BACKTESTS
from tollkeeper.engine.instants import DAY, show_instant
from tollkeeper.engine.offline.backtest.backtest import backtest_program
from tollkeeper.engine.offline.backtest.report import FirstChange, Report
from tollkeeper.engine.offline.jobs.runs import JobRun, new_run
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.publish.activate import RejectedFileError, violations
from tollkeeper.engine.registry.known import known_of
from tollkeeper.engine.registry.programs import encode_program
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.registry.versions import find_version, program_kind
from tollkeeper.grammar.program import Rule, Scorecard

_USUAL_DAYS = 30


class VersionOf(Struct, frozen=True, forbid_unknown_fields=True):
    """A stored version."""

    name: str
    version: int
    kind: Decider = "rule"


class BacktestBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A `TextBacktestBody` or a `VersionBacktestBody`; which one is not checked yet."""

    text: str | None = None
    version: VersionOf | None = None
    since: str | None = None


class TextBacktestBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Run `text` on what arrived at `since` or later: an instant, or a span back; `30d` by default."""

    text: Annotated[str, Meta(extra_json_schema={"minLength": 1})]
    since: SpanBack | None = None


class VersionBacktestBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Run the stored version on what arrived at `since` or later: an instant, or a span back; `30d`
    by default.
    """

    version: VersionOf
    since: SpanBack | None = None


class _BacktestCandidate(NamedTuple):
    """The candidate of a backtest; `version` is None for a text that isn't stored; `since` in µs."""

    kind: Decider
    name: str
    version: int | None
    since: int


class BacktestSummary(RunView, frozen=True):
    """A backtest and its progress. `version` is null for a text that was not stored."""

    kind: Decider
    name: str
    version: int | None
    since: str


class BacktestView(BacktestSummary, frozen=True):
    """`report` is included when the backtest is done, in the form of `toll backtest --json`."""

    first_changes: Annotated[
        list[FirstChange],
        Meta(
            description=(
                "The first payment of each change, as soon as it is found; for up to twenty "
                "changes, in the order in which they were found."
            )
        ),
    ]
    report: Report | None


class BacktestAnswer(Struct, frozen=True):
    backtest: BacktestView


class BacktestList(Struct, frozen=True):
    backtests: Annotated[list[BacktestSummary], Meta(description="The newest first.")]


@operation(
    "POST",
    "/v1/backtests",
    "start_backtest",
    tag=BACKTESTS,
    summary="Try a version or a text on stored history",
    doc=(
        "What it would have changed in the decisions of that time, as if it had decided "
        "live: windows are as they were then, and the labels known by now tell the "
        "payments' outcomes. It runs in a process of its own; an account has one at a time."
    ),
    scope="rules:write",
    sent=Body(
        TextBacktestBody | VersionBacktestBody,
        {
            "text": Example("a text", {"text": RULE, "since": "7d"}),
            "version": Example("a version", {"version": {"name": "checkout", "version": 2}}),
        },
    ),
    answers={202: Answer("The backtest is running.")},
    refusals=(404, 409, 422, 503),
)
async def start_backtest(request: Request) -> BacktestAnswer:
    sent = await read_json(request, BacktestBody)
    if (sent.text is None) is (sent.version is None):
        raise invalid_at("text", "invalid_value", "send either a `text` or a `version`")
    engine, key, account = request.engine, request.key, request.account
    now = engine.clock()
    since = read_moment_at("since", sent.since, now)
    if since is None:
        since = max(0, now - _USUAL_DAYS * DAY)
    if since > now:
        raise invalid_at("since", "out_of_range", "it is in the future")
    if sent.version is not None:
        kind, name, number = sent.version.kind, sent.version.name, sent.version.version
        program = find_version(account, kind, name, number).program
        tried = _BacktestCandidate(kind, name, number, since)
    else:
        assert sent.text is not None
        kind, name, program = await asyncio.to_thread(_read, account, sent.text)
        tried = _BacktestCandidate(kind, name, None, since)
    run = request.jobs.start(
        account.number,
        new_run("backtest", tried, now, key.id),
        backtest_program,
        engine.source,
        account.name,
        program,
        (since, now),
    )
    return BacktestAnswer(_view(run))


@operation(
    "GET",
    "/v1/backtests",
    "list_backtests",
    tag=BACKTESTS,
    summary="List the backtests, newest first",
    doc=(
        "The last twenty that the account has started since the service began, without "
        "their reports."
    ),
    scope="rules:read",
    answers={200: Answer("All of them.")},
)
async def list_backtests(request: Request) -> BacktestList:
    runs = request.jobs.runs(request.key.account, "backtest")
    return BacktestList([BacktestSummary(**_members(run)) for run in runs])


@operation(
    "GET",
    "/v1/backtests/{id:str}",
    "read_backtest",
    tag=BACKTESTS,
    summary="Read a backtest",
    doc=(
        "Its progress and the first payments that would be decided differently; once it is "
        "done, its report."
    ),
    scope="rules:read",
    answers={200: Answer("The backtest.")},
    refusals=(404,),
)
async def read_backtest(request: Request, id_: RunId) -> BacktestAnswer:
    return BacktestAnswer(_view(request.jobs.run(request.key.account, "backtest", id_)))


@operation(
    "DELETE",
    "/v1/backtests/{id:str}",
    "end_backtest",
    tag=BACKTESTS,
    summary="Cancel and delete a backtest",
    doc="A running one is cancelled at once.",
    scope="rules:write",
    answers={200: Answer("The backtest is deleted.")},
    refusals=(404,),
)
async def end_backtest(request: Request, id_: RunId) -> BacktestAnswer:
    return BacktestAnswer(_view(await request.jobs.remove(request.key.account, "backtest", id_)))


ROUTES = (start_backtest, list_backtests, read_backtest, end_backtest)


def _read(account: Account, text: str) -> tuple[Decider, str, bytes]:
    """Return the kind, name and stored form of a text. Raises `Problem` 422."""
    reading = read_file(text.encode("utf-8", "surrogatepass"), known_of(account))
    program = reading.program
    if program is None:
        raise invalid(violations("text", RejectedFileError(reading.text, reading.diagnostics)))
    if not isinstance(program, Rule | Scorecard):
        message = f"this is {program_kind(program)} `{program.name}`: nothing in it decides"
        raise invalid_at("text", "invalid_value", message)
    kind: Decider = "rule" if isinstance(program, Rule) else "scorecard"
    return kind, program.name, encode_program(program)


def _members(run: JobRun) -> dict[str, Any]:
    tried: _BacktestCandidate = run.subject
    return {
        **run_members(run),
        "kind": tried.kind,
        "name": tried.name,
        "version": tried.version,
        "since": show_instant(tried.since),
    }


def _view(run: JobRun) -> BacktestView:
    return BacktestView(**_members(run), first_changes=run.shown, report=run.found)
