"""Rules, scorecards, event types and definitions: store versions, publish them, roll back."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Final, TypeAlias

from litestar import Response
from litestar.handlers import HTTPRouteHandler
from msgspec import UNSET, Meta, Struct, structs

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.authentication import check_scope
from tollkeeper.api.http.bodies import read_json, read_text
from tollkeeper.api.http.error_answers import refusal
from tollkeeper.api.http.errors import invalid, invalid_at
from tollkeeper.api.http.file_kinds import FILE_KINDS, FileKind
from tollkeeper.api.http.operation import TEXT, Answer, Body, Example, operation
from tollkeeper.api.http.parameters import (
    AHEAD,
    FLAG,
    INSTANT,
    NAME,
    path_parameter,
    query_parameter,
    whole,
)
from tollkeeper.api.http.publishing import (
    Filling,
    accepted_response,
    filled_share,
    later,
    within_time,
)
from tollkeeper.api.http.queries import read_count, read_flag, read_version_number
from tollkeeper.api.http.request import Request
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.lists.values import read_instant
from tollkeeper.engine.offline.testing.publishable import try_beside
from tollkeeper.engine.programs.event_versions import EventVersionPlan
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.publish.activate import (
    Deactivate,
    RejectedFileError,
    needs_of,
    place_diagnostics,
    place_unmet,
    publish,
    read_until,
    store,
    violations,
)
from tollkeeper.engine.registry.state import Lineage, Rollout, Version
from tollkeeper.engine.registry.trials import has_decided
from tollkeeper.engine.registry.versions import (
    Terms,
    find_lineage,
    find_shipped,
    find_version,
    lineages_of,
    shipped_version,
)
from tollkeeper.grammar.diagnostics import Diagnostic

FileName = Annotated[
    str, path_parameter("The name that the file's text declares.", "checkout", NAME)
]
VersionNumber = Annotated[str, path_parameter("The version's number.", 1, whole(0))]
Breaking = Annotated[
    str | None,
    query_parameter(
        (
            "For a version of an event type that existing events may not fit: whether that "
            "is intended."
        ),
        FLAG,
    ),
]
Untested = Annotated[
    str | None,
    query_parameter(
        ("With `publish`: whether to publish although its own tests fail; the audit log shows it."),
        FLAG,
    ),
]
Until = Annotated[
    str | None,
    query_parameter(
        (
            "With `publish`, for a rule or a scorecard: when the version that was last "
            "active without an end becomes active again; an instant or a span ahead."
        ),
        AHEAD,
        "6h",
    ),
]
Reason = Annotated[
    str | None,
    query_parameter("With `publish`: the reason, for the audit log.", {"type": "string"}),
]
AppliesFrom = Annotated[
    str | None,
    query_parameter(
        (
            "For a version of an event type: the instant from which it applies, not in the "
            "past. A breaking version needs it."
        ),
        INSTANT,
    ),
]


SpanAhead: TypeAlias = Annotated[
    str, Meta(extra_json_schema={"pattern": AHEAD["pattern"]}, examples=["6h"])
]


class VersionChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """The version to publish.

    `untested` publishes it although its own tests fail, which the audit log shows. At `until` (an
    instant, or a span ahead such as `6h`) the version that was last active without an end becomes
    active again; only for rules and scorecards. The audit log records `reason`.
    """

    version: int
    untested: bool = False
    until: SpanAhead | None = None
    reason: str = ""


class EventVersionChoice(VersionChoice, frozen=True, forbid_unknown_fields=True):
    """The version of an event type to publish; it applies from `applies_from` on, and `breaking`
    allows that existing events may not fit it. The rest is as in `VersionChoice`.
    """

    breaking: bool = False
    applies_from: InstantText | None = None


class FileSummary(Struct, frozen=True):
    """A file in a list: its newest version, the active one, and those on trial.

    At `until`, if set, version `former` becomes active again, or none if `former` is null.
    """

    name: str
    newest: int
    active: int | None
    shadow: int | None
    rollout: Rollout | None
    until: InstantText | None = None
    former: int | None = None
    filling: Filling = UNSET


class VersionSummary(Struct, frozen=True):
    version: int
    stored_at: InstantText
    stored_by: str
    checksum: str


class FileView(FileSummary, frozen=True, kw_only=True):
    """A file with all its versions, newest first, and the text of the active or newest one."""

    text: str
    versions: list[VersionSummary]


class VersionView(Struct, frozen=True):
    """One version: its text, the texts of the definitions that it uses, and who stored it."""

    name: str
    version: int
    text: str
    uses: dict[str, str]
    checksum: str
    language: int
    stored_at: InstantText
    stored_by: str


class VersionState(Struct, frozen=True):
    """`filling` is included while the version's windows are being filled.

    `warnings` are the checker's, and one for each thing that the version reads but the account
    lacks: entries of a list, rates. The `field` of each is its place in the text.
    """

    name: str
    version: int
    active: bool
    warnings: list[Violation]
    filling: Filling = UNSET


class UnpublishedFile(Struct, frozen=True):
    name: str
    active: bool = False


def list_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("List", list[FileSummary], file_kind.path.replace("-", "_"))

    @operation(
        "GET",
        file_kind.base,
        f"list_{file_kind.path}",
        tag=file_kind.tag,
        summary=f"List {file_kind.plural}",
        doc=(
            "Those that the account has stored, by name, and the shipped scorecard, as version 0."
        ),
        scope="rules:read",
        answers={200: Answer("All of them.", answer)},
    )
    async def list_files(request: Request) -> Struct:
        return answer(
            [
                file_summary(request, file_kind, name, lineage)
                for name, lineage in sorted(lineages_of(request.account, file_kind.kind).items())
            ]
        )

    return list_files


def read_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("Answer", FileView)

    @operation(
        "GET",
        f"{file_kind.base}/{{name:str}}",
        f"read_{file_kind.noun}",
        tag=file_kind.tag,
        summary=f"Read {file_kind.one}",
        doc=(
            "All versions, newest first, with the text of the active one, or of the newest "
            "if none is active."
        ),
        scope="rules:read",
        answers={200: Answer("The file.", answer)},
        refusals=(404,),
    )
    async def read_file(request: Request, name: FileName) -> Struct:
        shown = lineages_of(request.account, file_kind.kind).get(name)
        lineage = shown or find_lineage(request.account, file_kind.kind, name)
        return answer(file_view(request, file_kind, name, lineage))

    return read_file


def read_version_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("VersionAnswer", VersionView)

    @operation(
        "GET",
        f"{file_kind.base}/{{name:str}}/versions/{{number:str}}",
        f"read_{file_kind.noun}_version",
        tag=file_kind.tag,
        summary=f"Read one version of {file_kind.one}",
        doc=(
            "Versions are numbered from 1 and never change. Version 0 of the scorecard is "
            "the shipped one."
        ),
        scope="rules:read",
        answers={200: Answer("The version.", answer)},
        refusals=(404,),
    )
    async def read_version(request: Request, name: FileName, number: VersionNumber) -> Struct:
        account, wanted = request.account, read_version_number(number)
        if wanted == 0:
            return answer(version_view(find_shipped(account, file_kind.kind, name)))
        return answer(version_view(find_version(account, file_kind.kind, name, wanted)))

    return read_version


def store_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("StateAnswer", VersionState)
    stored = {
        file_kind.noun: {"name": file_kind.example, "version": 1, "active": False, "warnings": []}
    }

    @operation(
        "POST",
        f"{file_kind.base}/{{name:str}}/versions",
        f"store_{file_kind.noun}",
        tag=file_kind.tag,
        summary="Check and store a new version",
        doc="""The body is the file's text, which must name `{name}`. Each diagnostic of the checker is one item of a 422, with the place in the text as its `field` and the code as its `type`. Warnings never prevent it. A text equal to the newest version's gives that version again.

With `publish=true`, which needs the scope `rules:publish` too, the text's own tests run first: each that fails is one item with the type `failing-test`, and then nothing is stored. A test that takes files fails, as none come with the text. The version becomes active once the windows that it reads are filled from history.""",
        scope="rules:write",
        demand="change",
        sent=Body(str, {"text": Example(f"a small {file_kind.words}", file_kind.text)}, TEXT),
        answers={
            201: Answer(
                "The version is stored, and active if requested.",
                answer,
                {"stored": Example("stored", stored)},
            ),
            202: later(answer),
        },
        refusals=(404, 409, 422, 503),
        errors={
            "diagnostic": Example(
                "an unknown field",
                refusal(
                    f"{file_kind.example}.rule:2:18",
                    "unknown-name",
                    "there is no field `amonut`; did you mean `amount`?",
                ),
            )
        },
        unlisted=() if file_kind.kind == "event" else ("breaking", "applies_from"),
    )
    async def store_version(
        request: Request,
        name: FileName,
        publish: Annotated[
            str | None, query_parameter("Whether to make it active at once.", FLAG)
        ] = None,
        expected: Annotated[
            str | None,
            query_parameter(
                (
                    "The newest version that the author has seen, 0 for none; if there is a "
                    "newer one, the answer is 409."
                ),
                whole(0),
            ),
        ] = None,
        untested: Untested = None,
        until: Until = None,
        reason: Reason = None,
        breaking: Breaking = None,
        applies_from: AppliesFrom = None,
    ) -> Response[Struct]:
        at_once, newest = read_flag("publish", publish), read_count("expected", expected)
        planned = read_plan(read_flag("breaking", breaking), applies_from)
        terms = read_terms(request, read_flag("untested", untested), until, reason or "")
        content = await read_text(request)
        # Only now: the key may have another scope than before its body arrived.
        key = request.key
        if at_once:
            check_scope(key, "rules:publish")
        if at_once and not terms.untested:
            of_tests = await require_passing(request, name, content)
        else:
            of_tests = []
        try:
            stored = await store(
                request.engine, key.account, key.id, file_kind.kind, name, content, newest
            )
        except RejectedFileError as refused_file:
            raise invalid(violations(name, refused_file)) from None
        number = stored.version.number
        if at_once:
            filling = await publish_within_time(request, file_kind, name, number, planned, terms)
            active = filling is UNSET
        else:
            filling, active = UNSET, request.account.files[file_kind.kind, name].active == number
        warnings = place_diagnostics(name, stored.version.text, [*stored.warnings, *of_tests])
        warnings += place_unmet(request.engine, key.account, stored.version, stored.needs)
        state = VersionState(name, number, active, warnings, filling)
        return accepted_response(answer(state), filling, HTTPStatus.CREATED)

    return store_version


def activate_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("StateAnswer", VersionState)

    @operation(
        "PUT",
        f"{file_kind.base}/{{name:str}}/active",
        f"activate_{file_kind.noun}",
        tag=file_kind.tag,
        summary="Make a version active",
        doc=(
            "Publishes a stored version, or goes back to an earlier one. The tests of a "
            "version that has not decided before run first; if one fails, nothing changes."
        ),
        scope="rules:publish",
        demand="change",
        sent=Body(
            EventVersionChoice if file_kind.kind == "event" else VersionChoice,
            {"first": Example("back to version 1", {"version": 1})},
        ),
        answers={200: Answer("The version is active.", answer), 202: later(answer)},
        refusals=(404, 409, 422, 503),
    )
    async def activate(request: Request, name: FileName) -> Response[Struct]:
        # All kinds accept the members for event types: clients generated from earlier descriptions
        # send them.
        chosen = await read_json(request, EventVersionChoice)
        planned = read_plan(chosen.breaking, chosen.applies_from)
        terms = read_terms(request, chosen.untested, chosen.until, chosen.reason)
        version = find_version(request.account, file_kind.kind, name, chosen.version)
        if not (chosen.untested or has_decided(request.account, version)):
            of_tests = await require_passing(request, name, version.text.encode())
        else:
            of_tests = []
        engine, account = request.engine, request.key.account
        needs = await needs_of(engine, account, version)
        filling = await publish_within_time(
            request, file_kind, name, chosen.version, planned, terms
        )
        warnings = place_diagnostics(name, version.text, of_tests)
        warnings += place_unmet(engine, account, version, needs)
        state = VersionState(name, chosen.version, filling is UNSET, warnings, filling)
        return accepted_response(answer(state), filling, HTTPStatus.OK)

    return activate


def deactivate_route(file_kind: FileKind) -> HTTPRouteHandler:
    answer = file_kind.answer_type("UnpublishedAnswer", UnpublishedFile)

    @operation(
        "DELETE",
        f"{file_kind.base}/{{name:str}}/active",
        f"deactivate_{file_kind.noun}",
        tag=file_kind.tag,
        summary=f"Deactivate {file_kind.one}",
        doc="Its versions stay; any of them can be activated again.",
        scope="rules:publish",
        demand="change",
        answers={200: Answer("It is no longer active.", answer)},
        refusals=(404, 409, 422, 503),
    )
    async def deactivate(request: Request, name: FileName) -> Struct:
        await request.perform(Deactivate(request.account.name, file_kind.kind, name))
        return answer(UnpublishedFile(name))

    return deactivate


async def require_passing(request: Request, name: str, content: bytes) -> list[Diagnostic]:
    """Run the text's own tests, and return the warnings. Raise `Problem` 422 with each test that fails
    and each `must` that a payment breaks.
    """
    diagnostics = await try_beside(request.jobs, request.account, content)
    errors = [each for each in diagnostics if each.severity == "error"]
    if errors:
        raise invalid(place_diagnostics(name, content.decode("utf-8", "replace"), errors))
    return diagnostics


async def publish_within_time(
    request: Request,
    file_kind: FileKind,
    name: str,
    number: int,
    planned: EventVersionPlan,
    terms: Terms,
) -> Filling:
    engine, account, by = request.engine, request.key.account, request.key.id
    doing = publish(engine, account, by, file_kind.kind, name, number, unwatched, planned, terms)
    return await within_time(engine, account, file_kind.kind, name, doing)


def read_terms(request: Request, untested: bool, until: str | None, reason: str) -> Terms:
    """Read the terms of publishing a version. Raises `Problem` 422."""
    try:
        end = None if until is None else read_until(until.replace(" ", "+"), request.engine.clock())
    except ValueError as error:
        raise invalid_at("until", "invalid_format", str(error)) from None
    return Terms(untested=untested, until=end, reason=reason)


def read_plan(breaking: bool, applies_from: str | None) -> EventVersionPlan:
    """Read how an event type's version is published. Raises `Problem` 422."""
    try:
        return EventVersionPlan(
            breaking, None if applies_from is None else read_instant(applies_from.replace(" ", "+"))
        )
    except ValueError as error:
        raise invalid_at("applies_from", "invalid_format", str(error)) from None


def file_summary(request: Request, file_kind: FileKind, name: str, lineage: Lineage) -> FileSummary:
    shipped = shipped_version(request.account, file_kind.kind, name)
    return FileSummary(
        name,
        len(lineage.versions),
        0 if lineage.active is None and shipped is not None else lineage.active,
        lineage.shadow,
        lineage.rollout,
        None if lineage.until is None else show_instant(lineage.until),
        lineage.former,
        filled_share(request.engine, request.key.account, file_kind.kind, name),
    )


def file_view(request: Request, file_kind: FileKind, name: str, lineage: Lineage) -> FileView:
    summary = file_summary(request, file_kind, name, lineage)
    shipped = shipped_version(request.account, file_kind.kind, name)
    versions = [*lineage.versions] if shipped is None else [shipped, *lineage.versions]
    shown = versions[-1].number if summary.active is None else summary.active
    return FileView(
        **structs.asdict(summary),
        text=next(each.text for each in versions if each.number == shown),
        versions=[
            VersionSummary(
                version.number, show_instant(version.stored_at), version.stored_by, version.checksum
            )
            for version in reversed(versions)
        ],
    )


def version_view(version: Version) -> VersionView:
    return VersionView(
        version.name,
        version.number,
        version.text,
        dict(version.uses),
        version.checksum,
        version.language,
        show_instant(version.stored_at),
        version.stored_by,
    )


_MAKERS: Final[tuple[Callable[[FileKind], HTTPRouteHandler], ...]] = (
    list_route,
    read_route,
    read_version_route,
    store_route,
    activate_route,
    deactivate_route,
)
ROUTES = tuple(make(file_kind) for file_kind in FILE_KINDS for make in _MAKERS)
