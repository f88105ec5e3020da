"""Versions of rules, scorecards, event types and definitions, and which of them is active.

A version is immutable, numbered from 1 for its kind and name. Storing one never changes what is
active; activating one does, which is also how to roll back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from tollkeeper.engine.registry.changes import Activated, Deactivated, ProgramKind, VersionStored
from tollkeeper.engine.registry.errors import Conflict, Forbidden, Invalid, NotFound
from tollkeeper.engine.registry.programs import LANGUAGE_VERSION, encode_program
from tollkeeper.engine.registry.state import Account, Lineage, Version
from tollkeeper.grammar.program import Definitions, EventType, Program, Rule, Scorecard

MAX_REASON = 500
MAX_PROGRAMS: Final[Mapping[ProgramKind, int]] = {
    "rule": 500,
    "scorecard": 50,
    "event": 100,
    "definitions": 100,
}
"""How many names of a kind an account has."""
MAX_STORED = 256 * 1024 * 1024
"""Bytes of all of an account's versions, which are held in memory: texts and encoded programs."""
NOUNS: Mapping[ProgramKind, str] = {
    "rule": "rule",
    "scorecard": "scorecard",
    "event": "event type",
    "definitions": "definitions",
}
_KINDS: Mapping[type[Program], ProgramKind] = {
    Rule: "rule",
    Scorecard: "scorecard",
    EventType: "event",
    Definitions: "definitions",
}


def program_kind(program: Program) -> ProgramKind:
    return _KINDS[type(program)]


def file_checksum(text: str, uses: Mapping[str, str]) -> str:
    """SHA-256, in hex, of a text and of the definitions it imports."""
    digest = hashlib.sha256()
    for part in (text, *(part for name in sorted(uses) for part in (name, uses[name]))):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """The kind and name that a file declares, and its encoded program."""

    kind: ProgramKind
    name: str
    program: bytes


def encode_file(program: Program) -> EncodedFile:
    """The file that a program was checked from."""
    return EncodedFile(program_kind(program), program.name, encode_program(program))


def store_version(
    account: Account,
    file: EncodedFile,
    text: str,
    uses: Mapping[str, str],
    expected: int | None = None,
) -> Version | VersionStored:
    """The next version of a file with this text.

    Returns the newest version when its text and uses are the same. `expected` is the newest version
    that the author knew of, 0 for none: raises `Conflict` when there is a newer one, and when the
    account has as many files or as much text as it may.
    """
    versions = account.files.get((file.kind, file.name), Lineage()).versions
    sum_ = file_checksum(text, uses)
    if versions and versions[-1].checksum == sum_:
        return versions[-1]
    if expected is not None and expected != len(versions):
        message = f"the newest version of `{file.name}` is {len(versions)}, not {expected}"
        raise Conflict("version", message)
    _check_room(account, file, text)
    return VersionStored(
        kind=file.kind,
        name=file.name,
        number=len(versions) + 1,
        text=text,
        uses=dict(uses),
        checksum=sum_,
        language=LANGUAGE_VERSION,
        program=file.program,
    )


def _check_room(account: Account, file: EncodedFile, text: str) -> None:
    """Raises `Conflict`."""
    if (file.kind, file.name) not in account.files:
        most = MAX_PROGRAMS[file.kind]
        if sum(kind == file.kind for kind, _ in account.files) >= most:
            noun = "files of definitions" if file.kind == "definitions" else f"{NOUNS[file.kind]}s"
            raise Conflict("name", f"an account has at most {most} {noun}")
    stored = (each for lineage in account.files.values() for each in lineage.versions)
    held = sum(len(each.text) + len(each.program) for each in stored)
    if held + len(text) + len(file.program) > MAX_STORED:
        message = f"an account's versions take at most {MAX_STORED // 2**20} MiB"
        raise Conflict("version", message)


def find_lineage(account: Account, kind: ProgramKind, name: str) -> Lineage:
    """Raises `NotFound`."""
    lineage = account.files.get((kind, name))
    if lineage is None:
        raise NotFound("name", f"there is no {NOUNS[kind]} `{name}`")
    return lineage


def find_version(account: Account, kind: ProgramKind, name: str, number: int) -> Version:
    """Raises `NotFound` for the name or the number."""
    versions = find_lineage(account, kind, name).versions
    if not 1 <= number <= len(versions):
        message = f"{NOUNS[kind]} `{name}` has no version {number}, only 1 to {len(versions)}"
        raise NotFound("version", message)
    return versions[number - 1]


def find_shipped(account: Account, kind: ProgramKind, name: str) -> Version:
    """The shipped scorecard, which is version 0. Raises `NotFound`."""
    shipped = shipped_version(account, kind, name)
    if shipped is None:
        raise NotFound("version", f"{NOUNS[kind]} `{name}` has no version 0")
    return shipped


def shipped_version(account: Account, kind: ProgramKind, name: str) -> Version | None:
    """The shipped scorecard, which is version 0; None for other files."""
    shipped = account.shipped
    named = shipped is not None and (shipped.kind, shipped.name) == (kind, name)
    return shipped if named else None


def lineages_of(account: Account, kind: ProgramKind) -> dict[str, Lineage]:
    """The files of a kind by name, always including the shipped scorecard."""
    lineages = {name: file for (each, name), file in account.files.items() if each == kind}
    shipped = account.shipped
    if shipped is not None and shipped.kind == kind:
        lineages.setdefault(shipped.name, Lineage())
    return lineages


def active_version(account: Account, kind: ProgramKind, name: str) -> Version | None:
    """The published version, None for a name that is unknown or not published."""
    lineage = account.files.get((kind, name))
    if lineage is None or lineage.active is None:
        return None
    return lineage.versions[lineage.active - 1]


def was_active(account: Account, version: Version) -> bool:
    """Whether the version was activated since its name was last unpublished."""
    lineage = find_lineage(account, version.kind, version.name)
    return any(each.number == version.number for each in lineage.activations)


def version_in_force(lineage: Lineage, at: int) -> Version | None:
    """The version that applies at `at` (µs); for an event type, the event's own timestamp.

    An activation applies from its time on, and cancels earlier ones that would begin later. The
    first one also applies before its time. None when the name is not published.
    """
    if not lineage.activations:
        return None
    number = lineage.activations[0].number
    for activation in lineage.activations:
        if activation.applies_from <= at:
            number = activation.number
    return lineage.versions[number - 1]


def check_publish_alone(account: Account) -> None:
    """Raise `Forbidden` where publications need another person's approval."""
    if account.settings.approvals.publish:
        raise Forbidden("approval", "another person must approve this: propose it")


class Terms(Struct, frozen=True):
    """The terms of a publication.

    `applies_from` (µs) is the time from which an event type's version applies; `untested` says that
    its tests were skipped; at `until` (µs) the version that was active without an end returns.
    """

    applies_from: int | None = None
    untested: bool = False
    until: int | None = None
    reason: str = ""


FOR_GOOD: Final = Terms()


def activate(
    account: Account, kind: ProgramKind, name: str, number: int, terms: Terms = FOR_GOOD
) -> Activated:
    """Publish a version or roll back to it.

    Raises `NotFound`, `Invalid`, and `Conflict` for an `until` on the version that is active
    without an end.
    """
    find_version(account, kind, name, number)
    lineage = find_lineage(account, kind, name)
    if len(terms.reason) > MAX_REASON or not terms.reason.isprintable():
        message = f"a reason has at most {MAX_REASON} characters, none of them a control"
        raise Invalid.at("reason", "invalid_format", message)
    if terms.until is not None:
        if kind not in ("rule", "scorecard"):
            message = f"{NOUNS[kind]} has no end: only what decides is published until a time"
            raise Invalid.at("until", "invalid_value", message)
        if lineage.active == number and lineage.until is None:
            raise Conflict("until", f"version {number} is active already, for good")
    return Activated(
        kind,
        name,
        number,
        terms.applies_from,
        terms.untested,
        until=terms.until,
        reason=terms.reason,
    )


def end_publication(account: Account, kind: ProgramKind, name: str) -> Activated | Deactivated:
    """The change that makes the former version active again when a publication ends."""
    former = find_lineage(account, kind, name).former
    if former is None:
        return Deactivated(kind, name, ended=True)
    return Activated(kind, name, former, ended=True)


def deactivate(account: Account, kind: ProgramKind, name: str) -> Deactivated:
    """Unpublish a file. Raises `NotFound`, also for a name that is not published."""
    if find_lineage(account, kind, name).active is None:
        raise NotFound("name", f"{NOUNS[kind]} `{name}` is not published")
    return Deactivated(kind, name)
