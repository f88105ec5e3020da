"""An account's active programs, compiled, with the lists, tables and rates that they read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.folder_key import FolderKey
from tollkeeper.engine.instants import DAY
from tollkeeper.engine.intake.limits import Limits
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.lists.contents import Contents
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.decider import Programs
from tollkeeper.engine.programs.event_type import LoadedEventType
from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard
from tollkeeper.engine.registry.changes import ProgramKind, RolloutKey
from tollkeeper.engine.registry.state import Account, Lineage, Version
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.registry.versions import version_in_force
from tollkeeper.engine.velocity.contract import Read, SeriesPlan

SCORECARD_NAME = "bot_behaviour"


VersionId: TypeAlias = tuple[ProgramKind, str, int]
"""The kind, name and number of a stored version."""
AnalysisRequest: TypeAlias = tuple[str | None, bool]
"""The rule that a payment asks for, and whether it asks for a recommendation."""
Loaded: TypeAlias = LoadedRule | LoadedScorecard | LoadedEventType


class Shadow(NamedTuple):
    """A version that is evaluated beside the active one of its name, and never decides."""

    kind: Decider
    name: str
    loaded: LoadedRule | LoadedScorecard

    def reads(self, facts: Facts, environment: Environment) -> tuple[Read, ...]:
        """Its reads of the windows; without the keyed ones when computing the keys fails."""
        try:
            return self.loaded.reading.reads(facts, environment)
        except Exception:  # the decision goes on; evaluating the shadow reports the failure
            return tuple((window, None) for window in self.loaded.reading.plan.windows)


@dataclass(frozen=True, slots=True)
class ActivePrograms:
    """An immutable snapshot of what is active in one account; a request uses one from start to end.

    `rules` are the loaded versions that can decide a payment, by name and version. `chosen` are the
    programs of payments that ask alike (`AnalysisRequest`), where neither the payment nor the time says which
    version decides.
    """

    account: Account
    limits: Limits
    contents: Mapping[str, Contents]
    environment: Environment
    scorecards: Mapping[int, LoadedScorecard]
    rules: Mapping[tuple[str, int], LoadedRule] = field(default_factory=dict)
    events: Mapping[tuple[str, int], LoadedEventType] = field(default_factory=dict)
    shadows: tuple[Shadow, ...] = ()
    chosen: dict[AnalysisRequest, Programs] = field(init=False, default_factory=dict, compare=False)

    def compiled(self) -> dict[VersionId, Loaded]:
        """All loaded versions by their ids, the shadows' included."""
        versions: dict[VersionId, Loaded] = {}
        for number, scorecard in self.scorecards.items():
            versions["scorecard", SCORECARD_NAME, number] = scorecard
        for (name, number), rule in self.rules.items():
            versions["rule", name, number] = rule
        for (name, number), type_ in self.events.items():
            versions["event", name, number] = type_
        for shadow in self.shadows:
            versions[shadow.kind, shadow.name, shadow.loaded.version] = shadow.loaded
        return versions

    def plans(self) -> list[SeriesPlan]:
        """The series that these programs need."""
        return [series for loaded in self.compiled().values() for series in loaded.series]


def choose_event_type(active: ActivePrograms, name: str, at: int) -> LoadedEventType | None:
    """The version of an event type in force at `at` (µs), None for a type that is not published."""
    lineage = active.account.files.get(("event", name))
    version = None if lineage is None else version_in_force(lineage, at)
    return None if version is None else active.events.get((name, version.number))


def choose_programs(active: ActivePrograms, payment: Payment, at: int) -> Programs:
    """The programs that decide a payment at `at` (µs): none unless it asks for an analysis."""
    name = rule_name(active, payment)
    recommends = payment.analyze is not None and payment.analyze.bot_behaviour is True
    chosen = active.chosen.get((name, recommends))
    if chosen is not None:
        return chosen
    rule = choose_rule(active, payment, at)
    scorecard = choose_scorecard(active, payment, at) if recommends or rule is not None else None
    programs = Programs(scorecard, rule, recommends)
    # Names without a rule are not kept: a client that invents names would fill the memory.
    if (name is None or rule is not None) and _is_the_same_for_all(active, name):
        active.chosen[name, recommends] = programs
    return programs


def _is_the_same_for_all(active: ActivePrograms, rule: str | None) -> bool:
    """Whether all payments that ask for the rule get one version of it and one scorecard, now and
    later."""
    files = active.account.files
    lineages = files.get(("scorecard", SCORECARD_NAME)), files.get(("rule", rule or ""))
    return all(each is None or (each.rollout is None and each.until is None) for each in lineages)


def choose_rule(active: ActivePrograms, payment: Payment, at: int) -> LoadedRule | None:
    """The rule that a payment gets (docs/api.md, "Analysis").

    The one it names, when that has an active version; the account's default rule when it names
    none and asks for a recommendation.
    """
    name = rule_name(active, payment)
    if name is None:
        return None
    version = pick_version(active.account, "rule", name, at, lambda by: rollout_key(payment, by))
    return None if version is None else active.rules.get((name, version.number))


def rule_name(active: ActivePrograms, payment: Payment) -> str | None:
    """The name of the rule that a payment asks for, whether or not such a rule exists."""
    analyze = payment.analyze
    if analyze is None:
        return None
    if analyze.rule is not None and analyze.rule.name is not None:
        return analyze.rule.name
    return active.account.settings.default_rule if analyze.bot_behaviour else None


def choose_shadows(active: ActivePrograms, payment: Payment, at: int) -> tuple[Shadow, ...]:
    """The shadows to evaluate for a payment: of the rule it asks for, and of its scorecard.

    Empty for a payment that gets neither score nor rule.
    """
    analyze = payment.analyze
    if not active.shadows or analyze is None:
        return ()
    if not analyze.bot_behaviour and choose_rule(active, payment, at) is None:
        return ()
    name = rule_name(active, payment)
    return tuple(
        shadow for shadow in active.shadows if shadow.kind == "scorecard" or shadow.name == name
    )


def choose_scorecard(active: ActivePrograms, payment: Payment, at: int) -> LoadedScorecard:
    """The account's own scorecard when it has published one, else the shipped one."""
    version = pick_version(
        active.account, "scorecard", SCORECARD_NAME, at, lambda by: rollout_key(payment, by)
    )
    return active.scorecards[0 if version is None else version.number]


def pick_version(
    account: Account,
    kind: Decider,
    name: str,
    at: int,
    key_of: Callable[[RolloutKey], str | None],
) -> Version | None:
    """The version for one payment at `at` (µs): the rollout's for its share of the keys, else the
    active one.

    `key_of` reads the payment's user, device or order; a payment without it gets the active
    version. None for a name that is unknown or not published.
    """
    lineage = account.files.get((kind, name))
    number = None if lineage is None else _version_at(lineage, at)
    if lineage is None or number is None:
        return None
    rollout = lineage.rollout
    if rollout is not None and number == lineage.active:
        key = key_of(rollout.by)
        if key is not None and _percentile(account, kind, name, key) < rollout.percent:
            return lineage.versions[rollout.version - 1]
    return lineage.versions[number - 1]


def _version_at(lineage: Lineage, at: int) -> int | None:
    """The number of the version that decides at `at` (µs), None for none.

    A publication ends exactly at its time; the journal's entry about it follows a little later.
    """
    is_over = lineage.until is not None and lineage.until <= at
    return lineage.former if is_over else lineage.active


def _percentile(account: Account, kind: Decider, name: str, key: str) -> int:
    """A number from 0 to 99 for a key, always the same, so that a rollout that grows keeps its keys."""
    hashed = f"{account.number} {kind} {name} {key}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(hashed, digest_size=8).digest()) % 100


def is_held_out(
    active: ActivePrograms, payment: Payment, arrived: int, folder_key: FolderKey
) -> bool:
    """Whether a denied payment is let pass all the same (held out), so that its outcome becomes
    known.

    The same all day (UTC, of `arrived` in µs) for one user, device or order, whichever the account
    chose; a payment without that field is not held out. The draw uses the folder's secret key and
    changes daily, so an attacker can't keep using a value that passed once.
    """
    holdout = active.account.settings.holdout
    key = rollout_key(payment, holdout.by) if holdout.percent else None
    if key is None:
        return False
    lot = f"holdout {active.account.number} {arrived // DAY} {key}"
    return folder_key.draw(lot, 10_000) < holdout.percent


def rollout_key(payment: Payment, by: RolloutKey) -> str | None:
    """The value by which a share of payments is chosen, for a rollout and for the hold-out."""
    match by:
        case "user":
            return payment.user.id if payment.user is not None else None
        case "device":
            fingerprint = payment.device.fingerprint if payment.device is not None else None
            return None if fingerprint is None else fingerprint.id
        case "order":
            return payment.order.id if payment.order is not None else None
