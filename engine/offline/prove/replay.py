"""Decide the solver's payment by the interpreter and by the compiled function."""

from __future__ import annotations

from dataclasses import dataclass

from tollkeeper.engine.decision import Action
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.prove.witness import Witness
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


class DisagreementError(Exception):
    """The interpreter and the compiled function differ: a bug in the engine, shown with the
    payment.
    """


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
    compiled = ReplayedDecision(decision.action, decision.rule.condition)
    scope = replay_scope(rule, witness)
    met = (each.name for each in rule.conditions if evaluate(each.when, scope) is True)
    meant = next(met, None)
    if compiled.condition != meant:
        raise DisagreementError(f"rule `{rule.name}`: {meant} by meaning, {compiled} compiled")
    return compiled


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
