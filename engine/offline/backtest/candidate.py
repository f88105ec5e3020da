"""The candidate of a backtest: a rule or a scorecard instead of the one that decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.decision import Action, AppliedRule, Decision
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.backtest.plan import ReplayPlan, plan_rule, plan_scorecard
from tollkeeper.engine.programs.decider import Programs, decide
from tollkeeper.engine.programs.load import loaded_rule
from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.engine.registry.state import Version
from tollkeeper.grammar.program import Rule, Scorecard, Value
from tollkeeper.grammar.vocabulary import Vocabulary


class CandidateOutcome(NamedTuple):
    """A payment's outcome; `action` is None where no recommendation was asked for."""

    action: Action | None
    rule: str | None = None
    condition: str | None = None


class PastDecision(Struct, frozen=True, gc=False):
    """A recorded decision without the aggregates that it read (see `Decision`)."""

    action: Action | None = None
    score: int | None = None
    rule: AppliedRule | None = None
    lost: tuple[int, ...] = ()
    held_out: bool = False


class PastDecisionInFull(PastDecision, frozen=True, gc=False):
    """A recorded decision with all that repeats it."""

    scorecard: int = 0
    reads: tuple[Value | None, ...] = ()


def outcome_of(decision: Decision | PastDecision) -> CandidateOutcome:
    return _outcome(decision.action, decision.rule)


@cache
def _outcome(action: Action | None, rule: AppliedRule | None) -> CandidateOutcome:
    if rule is None:
        return CandidateOutcome(action)
    return CandidateOutcome(action, rule.name, rule.condition)


_decode_past = msgspec.json.Decoder(PastDecision).decode
_decode_in_full = msgspec.json.Decoder(PastDecisionInFull).decode


@dataclass(frozen=True, slots=True)
class Situation:
    """The settings and environment as of a sequence number."""

    settings: AccountSettings
    environment: Environment


Concerns: TypeAlias = Callable[[Any, PastDecision | None, Situation], bool]
"""Whether the candidate would have decided a payment."""
Decide: TypeAlias = Callable[
    [Any, PastDecision | None, Sequence[Value | None], Situation], Decision
]
"""From (facts, the past decision, the aggregates read, the situation) to the decision."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is tried (`program`), with its plan and the functions that decide."""

    program: Rule | Scorecard
    plan: ReplayPlan
    concerns: Concerns
    decide: Decide
    decode_past: Callable[[bytes], PastDecision]


def rule_candidate(
    rule: Rule, loaded: LoadedRule, concerns: Concerns, vocabulary: Vocabulary, late: int
) -> Candidate:
    """A rule, which reads the recorded scores."""
    advising, silent = Programs(None, loaded, True), Programs(None, loaded, False)

    def decide_rule(
        facts: Any, was: PastDecision | None, values: Sequence[Value | None], situation: Situation
    ) -> Decision:
        return decide(
            advising if recommends(facts) else silent,
            facts,
            values,
            situation.environment,
            situation.settings.thresholds,
            score=None if was is None else was.score,
        )

    plan = plan_rule(rule, loaded.reading, vocabulary, late)
    return Candidate(rule, plan, concerns, decide_rule, _decode_past)


def scorecard_candidate(
    scorecard: Scorecard,
    loaded: LoadedScorecard,
    versions: Mapping[tuple[str, int], Version],
    vocabulary: Vocabulary,
    late: int,
) -> Candidate:
    """A scorecard; the rules that decided then decide again, by its scores.

    `versions` are the stored rules.
    """

    @cache
    def rule_of(name: str, version: int) -> LoadedRule:
        return loaded_rule(versions[name, version])

    def concerns(_facts: Any, was: PastDecision | None, _situation: Situation) -> bool:
        return was is not None and was.score is not None

    def decide_scorecard(
        facts: Any, was: PastDecision | None, values: Sequence[Value | None], situation: Situation
    ) -> Decision:
        rule = None
        if isinstance(was, PastDecisionInFull) and was.rule is not None:
            rule = rule_of(was.rule.name, was.rule.version)
            # The rule's reads come after the scorecard's (`Decision`).
            read = was.reads[len(was.reads) - len(rule.reading.plan.windows) :]
            values = (*values, *read)
        programs = Programs(loaded, rule, recommends(facts))
        thresholds = situation.settings.thresholds
        return decide(programs, facts, values, situation.environment, thresholds)

    plan = plan_scorecard(scorecard, loaded.reading, vocabulary, late)
    return Candidate(scorecard, plan, concerns, decide_scorecard, _decode_in_full)


def concerns_named(name: str) -> Concerns:
    """The payments that get the rule `name`: they name it, or it is the account's default."""

    def concerns(facts: Any, _was: PastDecision | None, situation: Situation) -> bool:
        analyze = facts.payment.analyze
        if analyze is None:
            return False
        wanted = None if analyze.rule is None else analyze.rule.name
        if wanted is None and analyze.bot_behaviour:
            wanted = situation.settings.default_rule
        return bool(wanted == name)

    return concerns


def every_recommendation(facts: Any, _was: PastDecision | None, _situation: Situation) -> bool:
    """Every payment that asked for a recommendation."""
    return recommends(facts)


def recommends(facts: Any) -> bool:
    """Whether a payment asked for a recommendation."""
    analyze = facts.payment.analyze
    return analyze is not None and analyze.bot_behaviour is True
