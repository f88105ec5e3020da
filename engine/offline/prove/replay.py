"""Decide the solver's payment by the interpreter and by the compiled function."""

from __future__ import annotations

from dataclasses import dataclass

from tollkeeper.engine.decision import Action
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.prove.witness import Witness
from tollkeeper.engine.offline.testing.outcomes import agree, first_met
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.interpreter import EvaluationScope, evaluate, with_lets
from tollkeeper.engine.programs.decider import Programs, decide
from tollkeeper.engine.programs.loaded import load_rule
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.grammar import program as p


@dataclass(frozen=True, slots=True)
class ReplayedDecision:
    """A rule's decision on a payment; `condition` is None if none was met."""

    action: Action
    condition: str | None


def decide_witness(
    rule: p.Rule,
    witness: Witness,
    thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
) -> ReplayedDecision:
    """Raises `DisagreementError`."""
    loaded = load_rule(rule, 0, full_vocabulary())
    digests = Digests(rule.lets)
    values = tuple(witness.values.get(digests.of(each)) for each in rule.histories)
    decision = decide(
        Programs(None, loaded, recommends=True),
        witness.facts,
        values,
        witness.environment,
        thresholds,
        score=witness.score,
    )
    assert decision.action is not None
    assert decision.rule is not None
    agree(first_met(rule, replay_scope(rule, witness)), decision.rule.condition)
    return ReplayedDecision(decision.action, decision.rule.condition)


def replay_scope(rule: p.Rule, witness: Witness) -> EvaluationScope:
    """The values of names on the witness's payment."""
    scope = EvaluationScope(
        vocabulary=full_vocabulary(),
        digests=Digests(rule.lets),
        facts=witness.facts,
        score=witness.score,
        histories=witness.values,
        environment=witness.environment,
    )
    return with_lets(scope, rule.lets)


def is_true(rule: p.Rule, node: p.Expression, witness: Witness) -> bool:
    """Whether an expression of the rule is definitely true."""
    return evaluate(node, replay_scope(rule, witness)) is True
