"""Load an account's active programs from its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.lists.contents import Contents
from tollkeeper.engine.lists.spec import ListSpec
from tollkeeper.engine.programs.active import (
    SCORECARD_NAME,
    ActivePrograms,
    Loaded,
    Shadow,
    VersionId,
)
from tollkeeper.engine.programs.event_type import LoadedEventType, load_event_type
from tollkeeper.engine.programs.event_versions import live_versions
from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard, load_rule, load_scorecard
from tollkeeper.engine.registry.environments import account_environment
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.settings import account_limits
from tollkeeper.engine.registry.state import Account, Lineage, Version
from tollkeeper.engine.registry.trials import shadow_version
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import Definitions, EventType, Program, Rule, Scorecard

SHIPPED = Path(__file__).parents[2] / "rules"


def load_account(
    account: Account, contents: Mapping[str, Contents], compiled: Mapping[VersionId, Loaded] = {}
) -> ActivePrograms:
    """The account's active programs, with its lists' contents.

    Versions that are in `compiled` are not compiled again.
    """

    def find(version: Version) -> Loaded:
        return compiled.get(id_of(version)) or load_version(version)

    rules: dict[tuple[str, int], LoadedRule] = {}
    scorecards: dict[int, LoadedScorecard] = {}
    events: dict[tuple[str, int], LoadedEventType] = {}
    for version in _versions_in_use(account):
        match find(version):
            case LoadedRule() as rule:
                rules[version.name, version.number] = rule
            case LoadedScorecard() as scorecard:
                scorecards[version.number] = scorecard
            case LoadedEventType() as type_:
                events[version.name, version.number] = type_
    return ActivePrograms(
        account=account,
        limits=account_limits(account.settings, DEFAULT_LIMITS),
        contents=contents,
        environment=account_environment(account, contents),
        scorecards=scorecards
        if _has_own_scorecard(account)
        else {0: shipped_scorecard(), **scorecards},
        rules=rules,
        events=events,
        shadows=tuple(_shadows(account, find)),
    )


def with_contents(
    active: ActivePrograms, account: Account, name: str, contents: Contents
) -> ActivePrograms:
    """The same with new contents of one list or table. Nothing else is touched, so an edit's cost
    does not grow with what the account has published.
    """
    kept = active.environment
    environment = (
        replace(kept, lists={**kept.lists, name: contents})
        if isinstance(contents.spec, ListSpec)
        else replace(kept, tables={**kept.tables, name: contents})
    )
    held = {**active.contents, name: contents}
    return replace(active, account=account, contents=held, environment=environment)


def id_of(version: Version) -> VersionId:
    return version.kind, version.name, version.number


def load_version(version: Version) -> Loaded:
    """Compiles a stored version; a rule, a scorecard or an event type."""
    return load_program(decode_program(version.program), version)


def load_program(program: Program, version: Version) -> Loaded:
    """Compiles the program of a stored version; a rule, a scorecard or an event type."""
    number = version.number
    match program:
        case Rule():
            return load_rule(program, number, full_vocabulary())
        case Scorecard():
            return load_scorecard(program, number, full_vocabulary())
        case EventType():
            return load_event_type(program, number, version.text, full_vocabulary())
        case Definitions():
            raise AssertionError(version.kind)


def loaded_rule(version: Version) -> LoadedRule:
    loaded = load_version(version)
    assert isinstance(loaded, LoadedRule)
    return loaded


def shipped_text() -> str:
    """The text of `shipped_scorecard`."""
    return (SHIPPED / f"{SCORECARD_NAME}.rule").read_text()


@cache
def shipped_scorecard() -> LoadedScorecard:
    """The scorecard of accounts that have published none of their own; its version is 0."""
    return load_scorecard(shipped_program(), 0, full_vocabulary())


@cache
def shipped_program() -> Scorecard:
    """The program of `shipped_scorecard`."""
    text = shipped_text()
    file = parse(text).file
    assert file is not None
    program = check(file, text, full_vocabulary(), KnownNames()).program
    assert isinstance(program, Scorecard)
    return program


def _shadows(account: Account, find: Callable[[Version], Loaded]) -> Iterator[Shadow]:
    for kind, name in account.files:
        if kind not in ("rule", "scorecard") or (kind == "scorecard" and name != SCORECARD_NAME):
            continue
        version = shadow_version(account, kind, name)
        if version is not None:
            loaded = find(version)
            assert not isinstance(loaded, LoadedEventType)
            yield Shadow(kind, name, loaded)


def _versions_in_use(account: Account) -> Iterator[Version]:
    """The versions that can decide a payment or read an event."""
    for (kind, name), lineage in account.files.items():
        if kind == "event":
            yield from live_versions(lineage)
        elif kind == "rule" or (kind == "scorecard" and name == SCORECARD_NAME):
            yield from _deciding(lineage)


def _has_own_scorecard(account: Account) -> bool:
    """Whether a scorecard of its own is active without an end, so that the shipped one is not
    needed."""
    own = account.files.get(("scorecard", SCORECARD_NAME), Lineage())
    return (own.active if own.until is None else own.former) is not None


def _deciding(lineage: Lineage) -> list[Version]:
    if lineage.active is None:
        return []
    numbers = {lineage.active}
    if lineage.former is not None:
        # Its windows are kept whole for when it becomes active again.
        numbers.add(lineage.former)
    if lineage.rollout is not None:
        numbers.add(lineage.rollout.version)
    return [lineage.versions[number - 1] for number in sorted(numbers)]
