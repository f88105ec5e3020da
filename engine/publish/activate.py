"""Store a file as a version, publish it once its windows are filled, roll it back, unpublish it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from tollkeeper.engine.filling import fill
from tollkeeper.engine.instants import DAY, HOUR
from tollkeeper.engine.intake.violations import MAX_LISTED, Violation
from tollkeeper.engine.lists.values import read_instant
from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.programs.active import SCORECARD_NAME, Loaded, VersionId
from tollkeeper.engine.programs.carry import unpack_loaded
from tollkeeper.engine.programs.event_versions import AT_ONCE, EventVersionPlan, applies_from
from tollkeeper.engine.programs.load import shipped_scorecard
from tollkeeper.engine.progress import Progress, unwatched
from tollkeeper.engine.publish.needs import AccountNeed, unmet_needs
from tollkeeper.engine.publish.prepare import find_needs, prepare_version, read_text
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry.accounts import check_live, sharing
from tollkeeper.engine.registry.changes import Change, ProgramKind, VersionStored
from tollkeeper.engine.registry.errors import Conflict, Invalid
from tollkeeper.engine.registry.known import stored_names
from tollkeeper.engine.registry.lists import make_declared_lists
from tollkeeper.engine.registry.state import Account, Version
from tollkeeper.engine.registry.versions import (
    FOR_GOOD,
    Terms,
    activate,
    active_version,
    check_publish_alone,
    deactivate,
    find_version,
    store_version,
)
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import SeriesPlan
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.render import Source

_SPAN = re.compile(r"([1-9][0-9]{0,3})([mhd])")
_UNITS = {"m": HOUR // 60, "h": HOUR, "d": DAY}
_MOST_READINGS = 5
MAX_COUNTING = 50_000_000
"""Nanoseconds, as the checker reckons, that counting one payment may take for all versions in use."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A stored version, the warnings about its text, and the lists and rates that it needs."""

    version: Version
    warnings: tuple[Diagnostic, ...]
    needs: tuple[AccountNeed, ...]


class RejectedFileError(Exception):
    """A text with errors; nothing was stored."""

    def __init__(self, text: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("the file has errors")
        self.text = text
        self.diagnostics = diagnostics


async def store(
    engine: Engine,
    account: int,
    by: str,
    kind: ProgramKind,
    name: str,
    content: bytes,
    expected: int | None = None,
) -> StoredVersion:
    """Check a text and store it as the newest version.

    Raises `RejectedFileError` for a text with errors, `Invalid` when it declares another kind or
    name, `Conflict` when `expected` is not the newest version, or when the definitions and lists
    that texts can refer to keep changing while it is checked.
    """
    for _ in range(_MOST_READINGS):
        before = engine.state.accounts[account]
        check_live(before)
        names = stored_names(before)
        read = await engine.run_in_worker(account, read_text, content, names)
        file = read.file
        if file is None:
            raise RejectedFileError(read.text, read.diagnostics)
        if (file.kind, file.name) != (kind, name):
            message = f"this is {file.kind} `{file.name}`, not {kind} `{name}`"
            raise Invalid.at("name", "invalid_value", message)
        async with engine.changing:
            state = engine.state.accounts[account]
            if stored_names(state) != names:
                # A definition or list that it may refer to has changed since: check it again.
                continue
            uses = dict(read.shipped) | {
                used: version.text
                for used in read.uses
                if (version := active_version(state, "definitions", used)) is not None
            }
            stored = store_version(state, file, read.text, uses, expected)
            if isinstance(stored, VersionStored):
                await make_change(engine, account, by, stored)
                stored = find_version(engine.state.accounts[account], kind, name, stored.number)
            return StoredVersion(stored, read.diagnostics, read.needs)
    raise Conflict("name", "what the text may refer to was changed meanwhile; store it again")


async def publish(
    engine: Engine,
    account: int,
    by: str,
    kind: ProgramKind,
    name: str,
    number: int,
    progress: Progress,
    planned: EventVersionPlan = AT_ONCE,
    terms: Terms = FOR_GOOD,
) -> None:
    """Make a version the active one once its windows are whole; also rolls back.

    Until then, and when this fails, the former version stays active. Raises `NotFound`, and
    `Invalid` when the account has a declared list with another type, when an event type's version
    breaks the contract and is not `planned`, or when the end of the `terms` is not in the future.
    """
    now = engine.clock()
    if terms.until is not None and terms.until <= now:
        raise Invalid.at("until", "out_of_range", "this is not in the future")

    def change(state: Account) -> Change:
        check_publish_alone(state)
        version = find_version(state, kind, name, number)
        from_ = applies_from(state, version, planned, now)
        return activate(state, kind, name, number, structs.replace(terms, applies_from=from_))

    await bring_in(engine, account, by, kind, name, number, change, progress)


async def bring_in(
    engine: Engine,
    account: int,
    by: str,
    kind: ProgramKind,
    name: str,
    number: int,
    change: Callable[[Account], Change],
    progress: Progress,
) -> None:
    """Make a change that puts a version to use, after creating its lists and filling its windows.

    Raises what `publish` raises, and what `change` raises: it is called before and after the
    filling.
    """
    state = engine.state.accounts[account]
    check_live(state)
    version = find_version(state, kind, name, number)
    change(state)
    prepared = await engine.run_in_worker(account, prepare_version, version)
    compiled: dict[VersionId, Loaded] = {}
    if prepared.loaded is not None:
        compiled[kind, name, number] = await asyncio.to_thread(unpack_loaded, prepared.loaded)
    async with engine.publishing[account]:
        # Another version may have been published while this one was prepared.
        change(engine.state.accounts[account])
        _check_cost({**engine.active[account].compiled(), **compiled})
        async with engine.changing:
            for each in sharing(engine.state, account):
                for made in make_declared_lists(
                    engine.state.accounts[each], prepared.lists, prepared.tables
                ):
                    await make_change(engine, each, by, made)
        if engine.ready.is_set():
            for loaded in compiled.values():
                await _fill_windows(engine, account, loaded.series, (account, kind, name), progress)
        await _change(engine, account, by, change, compiled)


def _check_cost(in_use: Mapping[VersionId, Loaded]) -> None:
    """Raises `Conflict` when versions count a payment for longer than those of an account may."""
    total = sum(each.cost for each in in_use.values())
    if total > MAX_COUNTING:
        message = (
            f"counting one payment for all that is in use would take up to {total // 1_000_000} ms,"
            f" and {MAX_COUNTING // 1_000_000} ms are the most: take out of use what is not needed"
        )
        raise Conflict("version", message)


async def _fill_windows(
    engine: Engine,
    account: int,
    plans: Sequence[SeriesPlan],
    key: tuple[int, ProgramKind, str],
    progress: Progress,
) -> None:
    """Fill series in addition to those in use, and show the progress in `engine.filling[key]`."""

    def tell(share: float) -> None:
        engine.filling[key] = share
        progress(share)

    engine.filling[key] = 0.0
    try:
        await _fill_further(engine, account, plans, tell)
    finally:
        engine.filling.pop(key, None)


async def _fill_further(
    engine: Engine, account: int, plans: Sequence[SeriesPlan], progress: Progress
) -> None:
    """Fill series in addition to those in use, first in the test account."""
    for each in reversed(sharing(engine.state, account)):
        await fill(engine, each, [*engine.active[each].plans(), *plans], progress)


async def take_out(
    engine: Engine, account: int, by: str, change: Callable[[Account], Change]
) -> None:
    """Make a change that takes a version out of use. Raises what `change` raises."""
    async with engine.publishing[account]:
        check_live(engine.state.accounts[account])
        await _change(engine, account, by, change)


async def _change(
    engine: Engine,
    account: int,
    by: str,
    change: Callable[[Account], Change],
    compiled: Mapping[VersionId, Loaded] = {},
) -> None:
    async with engine.changing:
        made = change(engine.state.accounts[account])
        await make_change(engine, account, by, made, compiled=compiled)
    for each in sharing(engine.state, account):
        await engine.windows.keep(each, engine.active[each].plans())


def read_until(text: str, now: int) -> int:
    """When a publication ends, in µs: an instant, or a span ahead of `now` such as `6h`.

    Raises `ValueError`.
    """
    if span := _SPAN.fullmatch(text):
        return now + int(span[1]) * _UNITS[span[2]]
    return read_instant(text)


def violations(name: str, rejected: RejectedFileError) -> list[Violation]:
    """The errors as items of an error body (docs/api.md, "Other operations")."""
    errors = [each for each in rejected.diagnostics if each.severity == "error"]
    return place_diagnostics(name, rejected.text, errors)


def place_diagnostics(name: str, text: str, found: Iterable[Diagnostic]) -> list[Violation]:
    """The diagnostics as items of an error body, with `name.rule:line:column` as the field."""
    source = Source.of(f"{name}.rule", text)
    items = []
    for each in found:
        line, column = source.position(each.span.start)
        message = f"{each.message}; {each.help}" if each.help else each.message
        items.append(Violation(f"{source.name}:{line}:{column}", each.code, message))
    return items


async def needs_of(engine: Engine, account: int, version: Version) -> tuple[AccountNeed, ...]:
    """The lists and rates that the version needs."""
    return await engine.run_in_worker(account, find_needs, version.program)


async def find_warnings(engine: Engine, account: int, version: Version) -> list[Violation]:
    """What the version is warned of now, as its author was: by the checker, of at most `MAX_LISTED`
    places, and for each list or rate that it needs and the account lacks.
    """
    names = stored_names(engine.state.accounts[account])
    read = await engine.run_in_worker(account, read_text, version.text.encode(), names)
    found = [each for each in read.diagnostics if each.severity == "warning"][:MAX_LISTED]
    placed = place_diagnostics(version.name, version.text, found)
    return [*placed, *place_unmet(engine, account, version, read.needs)]


def place_unmet(
    engine: Engine, account: int, version: Version, needs: Iterable[AccountNeed]
) -> list[Violation]:
    """A warning for each list or rate that the version needs and the account lacks."""
    return place_diagnostics(version.name, version.text, unmet_needs(needs, engine.active[account]))


class Store(AccountVerb, frozen=True):
    """Store `text` as a version; publish it too when `activate`.

    `expected` is the newest version that the author knew of, None for any. `terms` are those of the
    publication.
    """

    kind: ProgramKind
    name: str
    text: str
    activate: bool
    expected: int | None = None
    planned: EventVersionPlan = AT_ONCE
    terms: Terms = FOR_GOOD

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        account, kind, name = self.number(engine), self.kind, self.name
        try:
            stored = await store(
                engine, account, author, kind, name, self.text.encode(), self.expected
            )
        except RejectedFileError as rejected:
            raise Invalid(violations(name, rejected)) from None
        version = stored.version.number
        if self.activate:
            await publish(
                *(engine, account, author, kind, name, version, progress),
                *(self.planned, self.terms),
            )
        unmet = place_unmet(engine, account, stored.version, stored.needs)
        return Effect(version=version, warnings=tuple(unmet))


class Activate(AccountVerb, frozen=True):
    """Make a stored version the active one."""

    kind: ProgramKind
    name: str
    version: int
    terms: Terms = FOR_GOOD

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        account = self.number(engine)
        version = find_version(engine.state.accounts[account], self.kind, self.name, self.version)
        needs = await needs_of(engine, account, version)
        await publish(
            *(engine, account, author, self.kind, self.name, self.version, progress),
            terms=self.terms,
        )
        unmet = place_unmet(engine, account, version, needs)
        return Effect(version=self.version, warnings=tuple(unmet))


class Deactivate(AccountVerb, frozen=True):
    """Unpublish a file. Raises `NotFound`.

    The shipped scorecard replaces an account's own one, once its windows are whole.
    """

    kind: ProgramKind
    name: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        account, file = self.number(engine), (self.kind, self.name)

        def change(state: Account) -> Change:
            check_publish_alone(state)
            return deactivate(state, *file)

        async with engine.publishing[account]:
            check_live(engine.state.accounts[account])
            change(engine.state.accounts[account])
            if file == ("scorecard", SCORECARD_NAME) and engine.ready.is_set():
                await _fill_further(engine, account, shipped_scorecard().series, unwatched)
            await _change(engine, account, author, change)
        return Effect()
