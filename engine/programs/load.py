"""From an account's state to what is in force for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.lists.contents import Contents
from tollkeeper.engine.programs.active import SCORECARD, InForce, Shadow
from tollkeeper.engine.programs.event_type import LoadedEventType, load_event_type
from tollkeeper.engine.programs.event_versions import live_versions
from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard, load_rule, load_scorecard
from tollkeeper.engine.registry.changes import Kind
from tollkeeper.engine.registry.environments import account_environment
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.settings import account_limits
from tollkeeper.engine.registry.state import Account, Lineage, Version
from tollkeeper.engine.registry.trials import Decider, shadow_version
from tollkeeper.grammar.checker import Known, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import EventType, Rule, Scorecard

SHIPPED = Path(__file__).parents[2] / "rules"


def load_account(
    account: Account, contents: Mapping[str, Contents], before: InForce | None = None
) -> InForce:
    """What is in force for the account now, with its lists' contents.

    `before` gives what is compiled already.
    """
    rules: dict[tuple[str, int], LoadedRule] = {}
    scorecards: dict[int, LoadedScorecard] = {}
    for kind, lineage in _deciders(account):
        for version in _live(lineage):
            if kind == "rule":
                key = (version.name, version.number)
                rules[key] = (before and before.rules.get(key)) or loaded_rule(version)
            elif version.name == SCORECARD:
                there = before and before.scorecards.get(version.number)
                scorecards[version.number] = there or loaded_scorecard(version)
    if not scorecards:
        scorecards[0] = shipped_scorecard()
    old_shadows = {} if before is None else {each[:2]: each for each in before.shadows}
    old_events = {} if before is None else before.events
    events = {
        key: old_events.get(key) or loaded_event_type(version)
        for (kind, name), lineage in account.files.items()
        if kind == "event"
        for version in live_versions(lineage)
        if (key := (name, version.number))
    }
    limits = account_limits(account.settings, DEFAULT_LIMITS)
    return InForce(
        account=account,
        limits=limits,
        contents=contents,
        environment=account_environment(account, contents),
        scorecards=scorecards,
        rules=rules,
        events=events,
        shadows=tuple(_shadows(account, old_shadows)),
    )


def loaded_rule(version: Version) -> LoadedRule:
    program = decode_program(version.program)
    assert isinstance(program, Rule)
    return load_rule(program, version.number, full_vocabulary())


def loaded_event_type(version: Version) -> LoadedEventType:
    program = decode_program(version.program)
    assert isinstance(program, EventType)
    return load_event_type(program, version.number, version.text, full_vocabulary())


def loaded_scorecard(version: Version) -> LoadedScorecard:
    program = decode_program(version.program)
    assert isinstance(program, Scorecard)
    return load_scorecard(program, version.number, full_vocabulary())


def shipped_text() -> str:
    """The text of `shipped_scorecard`."""
    return (SHIPPED / f"{SCORECARD}.rule").read_text()


@cache
def shipped_scorecard() -> LoadedScorecard:
    """The scorecard of accounts that have published none of their own; its version is 0."""
    text = shipped_text()
    file = parse(text).file
    assert file is not None
    program = check(file, text, full_vocabulary(), Known()).program
    assert isinstance(program, Scorecard)
    return load_scorecard(program, 0, full_vocabulary())


def _shadows(account: Account, before: Mapping[tuple[Decider, str], Shadow]) -> Iterator[Shadow]:
    for kind, name in account.files:
        if kind not in ("rule", "scorecard") or (kind == "scorecard" and name != SCORECARD):
            continue
        version = shadow_version(account, kind, name)
        if version is None:
            continue
        there = before.get((kind, name))
        if there is not None and there.loaded.version == version.number:
            yield there
        else:
            loaded = loaded_rule(version) if kind == "rule" else loaded_scorecard(version)
            yield Shadow(kind, name, loaded)


def _deciders(account: Account) -> Iterator[tuple[Kind, Lineage]]:
    for (kind, _name), lineage in account.files.items():
        if kind in ("rule", "scorecard"):
            yield kind, lineage


def _live(lineage: Lineage) -> list[Version]:
    """The versions that a payment can meet."""
    if lineage.active is None:
        return []
    numbers = {lineage.active}
    if lineage.rollout is not None:
        numbers.add(lineage.rollout.version)
    return [lineage.versions[number - 1] for number in sorted(numbers)]
