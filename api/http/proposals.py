"""`/v1/proposals`: changes that take effect when another person approves them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Literal

from litestar import Response
from msgspec import UNSET, Meta, Struct, defstruct, structs

from tollkeeper.api.http.account import AccountChange, without_name
from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.authentication import check_scope
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import invalid_at
from tollkeeper.api.http.file_kinds import KIND_OF, NOUN_OF, FileNoun
from tollkeeper.api.http.files import read_plan, read_terms, require_passing
from tollkeeper.api.http.lists import EntryChange, EntryView, entry_view, values_of
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import path_parameter, whole
from tollkeeper.api.http.publishing import Filling, accepted_response, later, within_time
from tollkeeper.api.http.queries import read_version_number
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import RULES
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.offline.backtest.report import Report
from tollkeeper.engine.programs.event_versions import applies_from
from tollkeeper.engine.publish.activate import place_diagnostics
from tollkeeper.engine.publish.proposals import (
    Approve,
    PublishAlone,
    Refuse,
    make_proposal,
)
from tollkeeper.engine.registry.changes import (
    Activated,
    BacktestFigures,
    Deactivated,
    EntriesWanted,
    MovedPayments,
    Proposable,
    RolloutKey,
    RolloutSet,
    SettingsChanged,
)
from tollkeeper.engine.registry.errors import Conflict
from tollkeeper.engine.registry.lists import find_list, want_entries
from tollkeeper.engine.registry.proposals import (
    LASTS,
    alone_until,
    find_proposal,
    is_waiting,
    why_void,
)
from tollkeeper.engine.registry.settings import change_settings, show_settings
from tollkeeper.engine.registry.state import Account, Proposal, ProposalState
from tollkeeper.engine.registry.trials import Decider, has_decided, set_rollout
from tollkeeper.engine.registry.versions import activate, deactivate, find_version

ProposalNumber = Annotated[str, path_parameter("The proposal's number.", 1, whole(1))]


class ProposedVersion(Struct, frozen=True, forbid_unknown_fields=True):
    """A version to activate; `until`, `breaking` and `applies_from` as when publishing."""

    name: str
    version: int
    kind: FileNoun = "rule"
    until: str | None = None
    untested: bool = False
    breaking: bool = False
    applies_from: InstantText | None = None


class ProposedEnd(Struct, frozen=True, forbid_unknown_fields=True):
    """A file to deactivate."""

    name: str
    kind: FileNoun = "rule"


class ProposedEntries(Struct, frozen=True, forbid_unknown_fields=True):
    """Up to 1,000 entries to add to a list or to remove; to remove them, their values are enough."""

    name: str
    entries: list[EntryChange]
    action: Literal["put", "remove"] = "put"


class SentProposedEntries(Struct, frozen=True, forbid_unknown_fields=True):
    """`ProposedEntries` that are not checked yet."""

    name: str
    entries: tuple[Any, ...]
    action: Literal["put", "remove"] = "put"


class WaitingEntries(Struct, frozen=True):
    """`entries` are included until the decision, for those who may read lists."""

    action: Literal["put", "remove"]
    count: int
    entries: list[EntryView]


class ProposedRollout(Struct, frozen=True, forbid_unknown_fields=True):
    """A version to roll out to a percentage of the payments."""

    name: str
    version: int
    percent: Annotated[int, Meta(ge=0, le=100)]
    by: RolloutKey
    kind: Decider = "rule"


def _proposal_body(name: str, type_: Any) -> Any:
    """Return the type of a body that proposes one thing."""
    doc = (
        "`note` says why; `backtest` is the id of one of the version that is done, whose figures are "
        "kept with the proposal."
    )
    wanted = defstruct(
        f"{name.title()}Wish",
        [("note", str), (name, type_), ("backtest", str | None, None)],
        namespace={"__doc__": doc},
        forbid_unknown_fields=True,
    )
    return defstruct(f"{name.title()}WishBody", [("proposal", wanted)], forbid_unknown_fields=True)


_BODIES = (
    _proposal_body("publish", ProposedVersion)
    | _proposal_body("unpublish", ProposedEnd)
    | _proposal_body("rollout", ProposedRollout)
    | _proposal_body("settings", AccountChange)
    | _proposal_body("entries", ProposedEntries)
)


class SentProposal(Struct, frozen=True, forbid_unknown_fields=True):
    """The proposal, exactly one member; settings are not checked yet."""

    note: str
    publish: ProposedVersion | None = None
    unpublish: ProposedEnd | None = None
    rollout: ProposedRollout | None = None
    settings: dict[str, Any] | None = None
    entries: SentProposedEntries | None = None
    backtest: str | None = None


class SentProposalBody(Struct, frozen=True, forbid_unknown_fields=True):
    proposal: SentProposal


class Refusing(Struct, frozen=True, forbid_unknown_fields=True):
    reason: str


class RefusingBody(Struct, frozen=True, forbid_unknown_fields=True):
    refusal: Refusing


class AloneTerms(Struct, frozen=True, forbid_unknown_fields=True):
    """`until` is an instant or a span ahead, within 24 hours."""

    until: str
    reason: str


class AloneBody(Struct, frozen=True, forbid_unknown_fields=True):
    alone: AloneTerms


class ProposalView(Struct, frozen=True):
    """What is proposed: `kind`, `name` and `version` of a file, with the active version as `base`;
    or `settings`; or `entries` of the list `name`. `open` says whether it can still be decided;
    `alone` means that it took effect before anybody approved it, and still needs approval. Of a
    version, `warnings` say which `must` lines are not proved or were not tried, what the checker
    warned of, and which lists and rates the account lacked, as of the proposal; `untested` says that
    its author skipped its tests. While it waits, `void` says why nobody can approve it any more, and after
    `expires_at` it is closed; what took effect without approval holds until `alone_until`.
    """

    number: int
    action: str
    kind: FileNoun | None
    name: str | None
    version: int | None
    base: str
    until: InstantText | None
    applies_from: InstantText | None
    rollout: ProposedRollout | None
    settings: dict[str, Any] | None
    entries: WaitingEntries | None
    note: str
    backtest: BacktestFigures | None
    untested: bool
    warnings: tuple[Violation, ...]
    by: str
    at: InstantText
    state: ProposalState
    open: bool
    expires_at: InstantText | None
    void: str | None
    alone_until: InstantText | None
    decided_by: str | None
    decided_at: InstantText | None
    reason: str
    filling: Filling = UNSET


class ProposalList(Struct, frozen=True):
    proposals: list[ProposalView]


class ProposalAnswer(Struct, frozen=True):
    proposal: ProposalView


@operation(
    "GET",
    "/v1/proposals",
    "list_proposals",
    tag=RULES,
    summary="List the proposals, newest first",
    doc="Those that wait for another person, and the last hundred that were decided.",
    scope="rules:read",
    answers={200: Answer("The proposals.")},
)
async def list_proposals(request: Request) -> ProposalList:
    now = request.engine.clock()
    every = sorted(request.account.proposals.values(), key=lambda each: -each.number)
    waiting = [each for each in every if is_waiting(each, now)]
    decided = [each for each in every if not is_waiting(each, now)][:100]
    return ProposalList([_view(request, each) for each in waiting + decided])


@operation(
    "GET",
    "/v1/proposals/{number:str}",
    "read_proposal",
    tag=RULES,
    summary="Read a proposal",
    doc="What is proposed, why, and the outcome.",
    scope="rules:read",
    answers={200: Answer("The proposal.")},
    refusals=(404,),
)
async def read_proposal(request: Request, number: ProposalNumber) -> ProposalAnswer:
    return _answer(request, read_version_number(number))


@operation(
    "POST",
    "/v1/proposals",
    "propose",
    tag=RULES,
    summary="Propose a change",
    doc=(
        "The tests of a version that is to be published or rolled out run first. Its changes in meaning are the differences "
        "between `base` and its version, neither of which ever changes."
    ),
    scope="rules:write",
    demand="change",
    sent=Body(
        _BODIES,
        {
            "publish": Example(
                "a version",
                {
                    "proposal": {
                        "note": "guessing also by night",
                        "publish": {"name": "checkout", "version": 2},
                    }
                },
            )
        },
    ),
    answers={201: Answer("The proposal waits.")},
    refusals=(404, 409, 503),
)
async def propose(request: Request) -> ProposalAnswer:
    sent = (await read_json(request, SentProposalBody)).proposal
    _require_one(sent)
    warnings = await _try_version(request, sent)
    change = _change(request, sent)
    figures = None if sent.backtest is None else _figures(request, sent.backtest, change)
    number = await make_proposal(
        request.engine, request.key.account, request.key.id, change, sent.note, figures, warnings
    )
    return _answer(request, number)


@operation(
    "POST",
    "/v1/proposals/{number:str}/approval",
    "approve_proposal",
    tag=RULES,
    summary="Approve a proposal, which makes the change",
    doc=(
        "Only as another user than the one who proposed it, with a session or with a key "
        "that has an owner. A proposal becomes void if something else is active than when "
        "it was made, and after 7 days. Approving what was published alone makes it "
        "permanent."
    ),
    scope="rules:publish",
    demand="change",
    answers={200: Answer("The change is made.", ProposalAnswer), 202: later(ProposalAnswer)},
    refusals=(404, 409, 422, 503),
)
async def approve_proposal(request: Request, number: ProposalNumber) -> Response[Struct]:
    wanted = read_version_number(number)
    proposal = find_proposal(request.account, wanted)
    if isinstance(proposal.change, SettingsChanged):
        check_scope(request.key, "settings:write")
    doing = request.perform(Approve(request.account.name, wanted))
    return await _decide_proposal(request, proposal, doing)


@operation(
    "POST",
    "/v1/proposals/{number:str}/refusal",
    "refuse_proposal",
    tag=RULES,
    summary="Refuse a proposal, or withdraw one's own",
    doc=(
        "With a reason. What was published alone and still decides is reverted at once. To "
        "refuse another's proposal also needs the scope `rules:publish`."
    ),
    scope="rules:write",
    demand="change",
    sent=Body(
        RefusingBody,
        {"reason": Example("a reason", {"refusal": {"reason": "it denies our best customers"}})},
    ),
    answers={200: Answer("The proposal is refused.")},
    refusals=(404, 409, 503),
)
async def refuse_proposal(request: Request, number: ProposalNumber) -> ProposalAnswer:
    wanted = read_version_number(number)
    reason = (await read_json(request, RefusingBody)).refusal.reason
    proposal = find_proposal(request.account, wanted)
    if proposal.by != request.key.id or proposal.state == "alone":
        check_scope(request.key, "rules:publish")
    await request.perform(Refuse(request.account.name, wanted, reason))
    return _answer(request, wanted)


@operation(
    "POST",
    "/v1/proposals/{number:str}/alone",
    "publish_alone",
    tag=RULES,
    summary="Break the glass: publish before approval",
    doc=(
        "In an emergency, publish a version that decides, or add entries to a list, until a "
        "time within 24 hours, with a reason. The audit log shows that it was done alone, "
        "and it waits for approval."
    ),
    scope="rules:publish",
    demand="change",
    sent=Body(
        AloneBody,
        {"night": Example("at night", {"alone": {"until": "6h", "reason": "card testing"}})},
    ),
    answers={200: Answer("The change is made.", ProposalAnswer), 202: later(ProposalAnswer)},
    refusals=(404, 409, 422, 503),
)
async def break_glass(request: Request, number: ProposalNumber) -> Response[Struct]:
    wanted = read_version_number(number)
    proposal = find_proposal(request.account, wanted)
    sent = (await read_json(request, AloneBody)).alone
    until = read_terms(request, False, sent.until, "").until
    assert until is not None
    doing = request.perform(PublishAlone(request.account.name, wanted, until, sent.reason))
    return await _decide_proposal(request, proposal, doing)


async def _decide_proposal(request: Request, proposal: Proposal, doing: Any) -> Response[Struct]:
    change = proposal.change
    if isinstance(change, SettingsChanged | EntriesWanted):
        await doing
        return Response(_answer(request, proposal.number))
    of = change.kind, change.name
    filling = await within_time(request.engine, request.key.account, *of, doing)
    return accepted_response(_answer(request, proposal.number, filling), filling, HTTPStatus.OK)


async def _try_version(request: Request, sent: SentProposal) -> tuple[Violation, ...]:
    """Return what a version that is to decide is warned of, unless it is untested or a rolled-out
    one has decided before. Raises `Problem`, `Refused`.
    """
    account = request.account
    if sent.publish is not None and not sent.publish.untested:
        wanted: ProposedVersion | ProposedRollout = sent.publish
        version = find_version(account, KIND_OF[sent.publish.kind], wanted.name, wanted.version)
    elif sent.rollout is not None:
        wanted = sent.rollout
        _rollout(account, wanted)
        version = find_version(account, wanted.kind, wanted.name, wanted.version)
        if has_decided(account, version):
            return ()
    else:
        return ()
    found = await require_passing(request, wanted.name, version.text.encode())
    return tuple(place_diagnostics(wanted.name, version.text, found))


def _rollout(account: Account, sent: ProposedRollout) -> RolloutSet:
    return set_rollout(account, sent.kind, sent.name, sent.version, sent.percent, sent.by)


def _require_one(sent: SentProposal) -> None:
    """Raise `Problem` unless one thing is proposed."""
    proposed = (sent.publish, sent.unpublish, sent.rollout, sent.settings, sent.entries)
    if sum(each is not None for each in proposed) != 1:
        message = "propose one of `publish`, `unpublish`, `rollout`, `settings` and `entries`"
        raise invalid_at("proposal", "invalid_value", message)


def _change(request: Request, sent: SentProposal) -> Proposable:
    """Return the proposed change, checked as if it were made. Raises `Problem`, `Refused`."""
    account = request.account
    if sent.publish is not None:
        wanted = sent.publish
        kind = KIND_OF[wanted.kind]
        version = find_version(account, kind, wanted.name, wanted.version)
        terms = read_terms(request, wanted.untested, wanted.until, sent.note)
        planned = read_plan(wanted.breaking, wanted.applies_from)
        from_ = applies_from(account, version, planned, request.engine.clock())
        terms = structs.replace(terms, applies_from=from_)
        return activate(account, kind, wanted.name, wanted.version, terms)
    if sent.unpublish is not None:
        return deactivate(account, KIND_OF[sent.unpublish.kind], sent.unpublish.name)
    if sent.rollout is not None:
        return _rollout(account, sent.rollout)
    if sent.entries is not None:
        check_scope(request.key, "lists:write")
        named, entries = sent.entries, sent.entries.entries
        given = values_of(entries) if named.action == "remove" else entries
        return want_entries(account, named.name, named.action, given)
    assert sent.settings is not None
    change = change_settings(account, without_name(account, sent.settings))
    if change is None:
        raise Conflict("proposal.settings", "the settings are so already")
    return change


def _figures(request: Request, id_: str, change: Proposable) -> BacktestFigures:
    """Return the result of a backtest of the proposed version. Raises `NotFound`, `Conflict`."""
    run = request.jobs.run(request.key.account, "backtest", id_)
    report: Report | None = run.found
    if report is None:
        raise Conflict("proposal.backtest", "this backtest is not done")
    tried = run.subject
    wanted = (change.kind, change.name, change.number) if isinstance(change, Activated) else None
    if (tried.kind, tried.name, tried.version) != wanted:
        raise Conflict("proposal.backtest", "this backtest is of something else")
    moved = tuple(MovedPayments(each.was, each.now, each.payments) for each in report.actions)
    return BacktestFigures(
        report.since, report.until, report.payments.payments, report.changed.payments, moved
    )


def _answer(request: Request, number: int, filling: Filling = UNSET) -> ProposalAnswer:
    return ProposalAnswer(_view(request, find_proposal(request.account, number), filling))


def _view(request: Request, proposal: Proposal, filling: Filling = UNSET) -> ProposalView:
    change, now = proposal.change, request.engine.clock()
    is_open = is_waiting(proposal, now)
    version = change.number if isinstance(change, Activated | RolloutSet) else None
    until = change.until if isinstance(change, Activated) else None
    settings = None
    if isinstance(change, SettingsChanged):
        shown = show_settings(change.settings)
        settings = {name: shown[name] for name in change.changed}
    return ProposalView(
        number=proposal.number,
        action=_ACTIONS[type(change)],
        kind=None if isinstance(change, SettingsChanged | EntriesWanted) else NOUN_OF[change.kind],
        name=_name(change),
        version=version,
        base=proposal.base,
        until=_instant(until),
        applies_from=_instant(change.applies_from if isinstance(change, Activated) else None),
        rollout=ProposedRollout(
            change.name,
            change.number,
            change.percent,
            change.by,
            change.kind,  # type: ignore[arg-type]
        )
        if isinstance(change, RolloutSet)
        else None,
        settings=settings,
        entries=_entries(request, change) if isinstance(change, EntriesWanted) else None,
        note=proposal.note,
        backtest=proposal.backtest,
        untested=isinstance(change, Activated) and change.untested,
        warnings=proposal.warnings,
        by=proposal.by,
        at=show_instant(proposal.at),
        state=proposal.state,
        open=is_open,
        expires_at=_instant(proposal.at + LASTS if proposal.state == "waiting" else None),
        void=why_void(request.account, proposal, now) if is_open else None,
        alone_until=_instant(alone_until(request.account, proposal)),
        decided_by=proposal.decided_by,
        decided_at=_instant(proposal.decided_at),
        reason=proposal.reason,
        filling=filling,
    )


def _name(change: Proposable) -> str | None:
    if isinstance(change, EntriesWanted):
        return change.list
    return None if isinstance(change, SettingsChanged) else change.name


def _entries(request: Request, wanted: EntriesWanted) -> WaitingEntries:
    shown: list[EntryView] = []
    if "lists:read" in request.key.granted:
        spec = find_list(request.account, wanted.list).spec
        shown = [entry_view(spec, entry) for entry in wanted.entries]
    return WaitingEntries(wanted.action, wanted.count, shown)


_ACTIONS: dict[type[Proposable], str] = {
    Activated: "publish",
    Deactivated: "unpublish",
    RolloutSet: "rollout",
    SettingsChanged: "settings",
    EntriesWanted: "entries",
}


def _instant(at: int | None) -> str | None:
    return None if at is None else show_instant(at)


ROUTES = (
    list_proposals,
    read_proposal,
    propose,
    approve_proposal,
    refuse_proposal,
    break_glass,
)
