"""The operations on rules, scorecards, event types and definitions: one life cycle for all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from tollkeeper.api.http.files import NOUNS, PUBLISH_SECONDS, Chosen
from tollkeeper.api.http.openapi import examples
from tollkeeper.api.http.openapi.errors import refusal
from tollkeeper.api.http.openapi.operation import (
    TEXT,
    Answer,
    Content,
    Example,
    Operation,
    answered,
    path_parameter,
    query_parameter,
)
from tollkeeper.api.http.trials import DECIDERS
from tollkeeper.engine.publish.diff import Difference
from tollkeeper.engine.registry.changes import Kind, RolloutKey
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.shadows.report import ShadowReport

TAGS: dict[Kind, str] = {
    "rule": "Rules",
    "scorecard": "Scorecards",
    "event": "Event types",
    "definitions": "Definitions",
}

Share = Annotated[float, Meta(ge=0, le=1, description="Share of the windows filled so far.")]
Percent = Annotated[int, Meta(ge=0, le=100, description="Percentage of the payments.")]
Version = Annotated[int, Meta(ge=1, description="The version meant.")]

_TEXTS: dict[Kind, str] = {
    "rule": examples.RULE,
    "scorecard": examples.SCORECARD,
    "event": examples.EVENT_TYPE,
    "definitions": examples.DEFINITIONS,
}
_PLURALS: dict[Kind, str] = {
    "rule": "rules",
    "scorecard": "scorecards",
    "event": "event types",
    "definitions": "definitions",
}


_PLAN = (
    query_parameter(
        "breaking",
        "For an event type's version that existing events may not fit: whether that is meant.",
        bool,
    ),
    query_parameter(
        "applies_from",
        "For an event type's version: the instant from which it applies, RFC 3339, not in the "
        "past. A breaking version needs it.",
    ),
)


class RunningRollout(Struct):
    """A version that a percentage of the payments gets, stable by a key."""

    version: int
    percent: int
    by: RolloutKey


class FileSummary(Struct):
    """One file among others: its newest version, the active one, what is on trial."""

    name: str
    newest: int
    active: int | None
    shadow: int | None
    rollout: RunningRollout | None
    filling: Share | UnsetType = UNSET


class VersionSummary(Struct):
    version: int
    stored_at: str
    stored_by: str
    checksum: str


class FileShown(FileSummary, kw_only=True):
    """A file with all its versions, newest first, and the text of the active or newest one."""

    text: str
    versions: list[VersionSummary]


class VersionShown(Struct):
    """One version: its text, the texts of the definitions that it uses, and who stored it."""

    name: str
    version: int
    text: str
    uses: dict[str, str]
    checksum: str
    language: int
    stored_at: str
    stored_by: str


class VersionState(Struct):
    """`filling` is there while the windows of a version are being filled."""

    name: str
    version: int
    active: bool
    filling: Share | UnsetType = UNSET


class Unpublished(Struct):
    name: str
    active: bool


class ShadowState(Struct):
    name: str
    shadow: int | None
    filling: Share | UnsetType = UNSET


class AskedRollout(Struct, forbid_unknown_fields=True):
    version: Version
    percent: Percent
    by: RolloutKey


class RolloutState(Struct):
    name: str
    rollout: AskedRollout | None
    filling: Share | UnsetType = UNSET


def _later(noun: str, shape: Any) -> Answer:
    return answered(
        f"It takes longer than {PUBLISH_SECONDS:g} seconds to fill the windows from history; it "
        "goes on, and takes effect once they are whole.",
        {noun: shape},
    )


def _file_operations(kind: Kind) -> Iterator[Operation]:
    path, noun = NOUNS[kind]
    words = _PLURALS[kind]
    one = words.removesuffix("s") if kind != "definitions" else "definitions file"
    base = f"/v1/{path}"
    text = _TEXTS[kind]
    written = text.split()[1]
    name = path_parameter("name", f"The name of the {one}.", written)

    yield Operation(
        "get",
        base,
        f"list_{path}",
        TAGS[kind],
        f"List {words}",
        "Those that the account has stored, by name.",
        "rules",
        {200: answered("All of them.", {path: list[FileSummary]})},
    )
    yield Operation(
        "get",
        f"{base}/{{name}}",
        f"read_{noun}",
        TAGS[kind],
        f"Read a {one}" if kind != "event" else f"Read an {one}",
        "All its versions, newest first, with the text of the active one, or of the newest when "
        "none is active.",
        "rules",
        {200: answered("The file.", {noun: FileShown})},
        (404,),
        (name,),
    )
    yield Operation(
        "get",
        f"{base}/{{name}}/versions/{{number}}",
        f"read_{noun}_version",
        TAGS[kind],
        f"Read one version of {'an' if kind == 'event' else 'a'} {one}",
        "Versions are numbered from 1 and never change.",
        "rules",
        {200: answered("The version.", {noun: VersionShown})},
        (404,),
        (name, path_parameter("number", "The version's number.", 1, Version)),
    )
    yield Operation(
        "get",
        f"{base}/{{name}}/diff",
        f"diff_{noun}",
        TAGS[kind],
        f"Tell what changed in meaning between two versions of {'an' if kind == 'event' else 'a'} {one}",
        "What was added, removed, moved or changed, in the author's words; nothing for two texts "
        "that say the same.",
        "rules",
        {200: answered("The differences.", {"differences": list[Difference]})},
        (404, 422),
        (
            name,
            query_parameter(
                "from", "The older version, the one before `to` when not sent.", Version, 1
            ),
            query_parameter("to", "The newer version, the newest when not sent.", Version, 2),
        ),
    )
    yield Operation(
        "post",
        f"{base}/{{name}}/versions",
        f"store_{noun}",
        TAGS[kind],
        "Check and store a new version",
        """The body is the file's text, which must name `{name}`. Each diagnostic of the checker is one item of a 422, with the place in the text as its `field` and the code as its `type`. Warnings never prevent it. A text equal to the newest version's gives that version again.

With `publish=true` the version becomes active once the windows that it reads are filled from history.""",
        "rules",
        {
            201: answered(
                "The version is stored, and active when that was asked for.",
                {noun: VersionState},
                stored=Example("stored", {noun: {"name": written, "version": 1, "active": False}}),
            ),
            202: _later(noun, VersionState),
        },
        (404, 409, 422, 503),
        (
            name,
            query_parameter("publish", "Whether to make it active at once.", bool),
            query_parameter(
                "expected",
                "The newest version that the author has seen, 0 for none; when there is a newer "
                "one, the answer is 409.",
                Annotated[int, Meta(ge=0)],
            ),
            *_PLAN,
        ),
        Content(str, TEXT, {"text": Example(f"a small {one}", text)}),
        {
            "diagnostic": Example(
                "an unknown field",
                refusal(
                    f"{written}.rule:2:18",
                    "unknown-name",
                    "there is no field `amonut`; did you mean `amount`?",
                ),
            )
        },
    )
    yield Operation(
        "put",
        f"{base}/{{name}}/active",
        f"activate_{noun}",
        TAGS[kind],
        "Make a version active",
        "Publishes a stored version, or goes back to an earlier one.",
        "rules",
        {
            200: answered("It is active.", {noun: VersionState}),
            202: _later(noun, VersionState),
        },
        (404, 409, 422, 503),
        (name,),
        Content(Chosen, examples={"first": Example("back to version 1", {"version": 1})}),
    )
    yield Operation(
        "delete",
        f"{base}/{{name}}/active",
        f"deactivate_{noun}",
        TAGS[kind],
        f"Take {'an' if kind == 'event' else 'a'} {one} out of force",
        "Its versions stay; any of them can be made active again.",
        "rules",
        {200: answered("It is not active any more.", {noun: Unpublished})},
        (404, 409, 422, 503),
        (name,),
    )


def _trial_operations(kind: Decider) -> Iterator[Operation]:
    path, noun = NOUNS[kind]
    name = path_parameter("name", f"The name of the {noun}.", _TEXTS[kind].split()[1])
    base = f"/v1/{path}/{{name}}"
    yield Operation(
        "get",
        f"{base}/shadow",
        f"report_{noun}_shadow",
        TAGS[kind],
        f"Report what a {noun}'s shadow would change",
        "How many decisions would go from which action to which, with examples.",
        "rules",
        {200: answered("The report.", {"shadow": ShadowReport})},
        (404, 503),
        (name,),
    )
    yield Operation(
        "put",
        f"{base}/shadow",
        f"set_{noun}_shadow",
        TAGS[kind],
        f"Evaluate a version of a {noun} beside the active one",
        "What it says is recorded and never applied; it delays no answer.",
        "rules",
        {
            200: answered("It is evaluated from now on.", {noun: ShadowState}),
            202: _later(noun, ShadowState),
        },
        (404, 409, 503),
        (name,),
        Content(Chosen, examples={"second": Example("version 2", {"version": 2})}),
    )
    yield Operation(
        "delete",
        f"{base}/shadow",
        f"clear_{noun}_shadow",
        TAGS[kind],
        f"End a {noun}'s shadow",
        "What it recorded stays.",
        "rules",
        {200: answered("There is no shadow any more.", {noun: ShadowState})},
        (404, 409, 503),
        (name,),
    )
    yield Operation(
        "put",
        f"{base}/rollout",
        f"set_{noun}_rollout",
        TAGS[kind],
        f"Give a version of a {noun} to a percentage of the payments",
        "The same user, device or order always falls on the same side. A payment without the key "
        "gets the active version.",
        "rules",
        {
            200: answered("It decides for that part.", {noun: RolloutState}),
            202: _later(noun, RolloutState),
        },
        (404, 409, 422, 503),
        (name,),
        Content(
            AskedRollout,
            examples={
                "tenth": Example(
                    "a tenth of the users", {"version": 2, "percent": 10, "by": "user"}
                )
            },
        ),
    )
    yield Operation(
        "delete",
        f"{base}/rollout",
        f"clear_{noun}_rollout",
        TAGS[kind],
        f"End a {noun}'s rollout",
        "The active version decides for all again.",
        "rules",
        {200: answered("There is no rollout any more.", {noun: RolloutState})},
        (404, 409, 503),
        (name,),
    )


OPERATIONS = (
    *(operation for kind in NOUNS for operation in _file_operations(kind)),
    *(operation for kind in DECIDERS for operation in _trial_operations(kind)),
)
