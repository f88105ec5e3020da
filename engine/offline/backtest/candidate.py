"""What is tried: a rule or a scorecard in the place of the one that decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.decision import Action, AppliedRule
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.backtest.plan import ReplayPlan, plan_rule, plan_scorecard
from tollkeeper.engine.programs.decider import action_at
from tollkeeper.engine.programs.load import loaded_rule
from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.engine.registry.state import Version
from tollkeeper.grammar.program import Rule, Scorecard, Value
from tollkeeper.grammar.vocabulary import Vocabulary


class Outcome(NamedTuple):
    """What a payment got: `action` is None where no recommendation was asked for."""

    action: Action | None
    rule: str | None = None
    condition: str | None = None


class Decided(Struct, frozen=True, gc=False):
    """A recorded decision, without the aggregates that were read (`Decision`)."""

    action: Action | None = None
    score: int | None = None
    rule: AppliedRule | None = None
    lost: tuple[int, ...] = ()


class DecidedInFull(Decided, frozen=True, gc=False):
    """A recorded decision with all that repeats it."""

    scorecard: int = 0
    reads: tuple[Value | None, ...] = ()


_decode_decided = msgspec.json.Decoder(Decided).decode
_decode_in_full = msgspec.json.Decoder(DecidedInFull).decode


@dataclass(frozen=True, slots=True)
class Situation:
    """What was configured at one place of the sequence."""

    settings: AccountSettings
    environment: Environment


Concerns: TypeAlias = Callable[[Any, Decided | None, Situation], bool]
"""Whether the candidate would have had a say in a payment."""
Decide: TypeAlias = Callable[
    [Any, Decided | None, Sequence[Value | None], Situation], tuple[Outcome, int | None]
]
"""(facts, what was decided, the aggregates read, the situation) to the outcome and the score."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is tried, with what it needs; `program` is its rule or scorecard."""

    program: Rule | Scorecard
    plan: ReplayPlan
    concerns: Concerns
    decide: Decide
    decode_decided: Callable[[bytes], Decided]


def rule_candidate(loaded: LoadedRule, concerns: Concerns, vocabulary: Vocabulary) -> Candidate:
    """A rule, which reads the recorded scores."""
    rule = loaded.rule
    met_by = [Outcome(each.action, rule.name, each.name) for each in rule.conditions]
    unmet = {action: Outcome(action, rule.name) for action in ("allow", "challenge", "deny")}
    run = loaded.decide

    def decide(
        facts: Any, was: Decided | None, values: Sequence[Value | None], situation: Situation
    ) -> tuple[Outcome, int | None]:
        score = None if was is None else was.score
        met = run(facts, score, values, situation.environment)
        if met >= 0:
            outcome = met_by[met]
        else:
            # Without a recorded score nothing speaks against the payment.
            outcome = unmet[rule.otherwise or action_at(score or 0, situation.settings.thresholds)]
        return _as_asked(facts, outcome), score

    return Candidate(rule, plan_rule(loaded, vocabulary), concerns, decide, _decode_decided)


def scorecard_candidate(
    loaded: LoadedScorecard,
    versions: Mapping[tuple[str, int], Version],
    vocabulary: Vocabulary,
) -> Candidate:
    """A scorecard; the rules that decided then decide again, by its scores.

    `versions` are the stored rules.
    """

    @cache
    def rule_of(name: str, version: int) -> LoadedRule:
        return loaded_rule(versions[name, version])

    def concerns(_facts: Any, was: Decided | None, _situation: Situation) -> bool:
        return was is not None and was.score is not None

    def decide(
        facts: Any, was: Decided | None, values: Sequence[Value | None], situation: Situation
    ) -> tuple[Outcome, int | None]:
        score = loaded.score(facts, values, situation.environment)
        action = action_at(score, situation.settings.thresholds)
        applied = None if was is None else was.rule
        if not isinstance(was, DecidedInFull) or applied is None:
            return _as_asked(facts, Outcome(action)), score
        rule = rule_of(applied.name, applied.version)
        # The rule's reads stand behind the scorecard's (`Decision`).
        read = was.reads[len(was.reads) - len(rule.reading.plan.windows) :]
        met = rule.decide(facts, score, read, situation.environment)
        if met < 0:
            outcome = Outcome(rule.rule.otherwise or action, applied.name)
        else:
            condition = rule.rule.conditions[met]
            outcome = Outcome(condition.action, applied.name, condition.name)
        return _as_asked(facts, outcome), score

    plan = plan_scorecard(loaded, vocabulary)
    return Candidate(loaded.scorecard, plan, concerns, decide, _decode_in_full)


def named(name: str) -> Concerns:
    """The payments that get the rule `name`: they name it, or it is the account's default."""

    def concerns(facts: Any, _was: Decided | None, situation: Situation) -> bool:
        analyze = facts.payment.analyze
        if analyze is None:
            return False
        asked = None if analyze.rule is None else analyze.rule.name
        if asked is None and analyze.bot_behaviour:
            asked = situation.settings.default_rule
        return bool(asked == name)

    return concerns


def every_recommendation(facts: Any, _was: Decided | None, _situation: Situation) -> bool:
    """Every payment that asked for a recommendation."""
    analyze = facts.payment.analyze
    return analyze is not None and analyze.bot_behaviour is True


def _as_asked(facts: Any, outcome: Outcome) -> Outcome:
    analyze = facts.payment.analyze
    if analyze is not None and analyze.bot_behaviour:
        return outcome
    return outcome._replace(action=None)
