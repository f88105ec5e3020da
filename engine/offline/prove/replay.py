"""A payment of the solver, decided by the interpreter and by the compiled function."""

from __future__ import annotations

from dataclasses import dataclass

from tollkeeper.engine.decide import by_thresholds
from tollkeeper.engine.decision import Action
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.prove.witness import Witness
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.interpreter import Scope, evaluate, with_lets
from tollkeeper.engine.programs.compile.python import compile_rule
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.grammar import program as p


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a rule decides about a payment; `condition` is None where none was met."""

    action: Action
    condition: str | None


class DisagreementError(Exception):
    """Interpreter and compiled function differ: a fault of the engine, shown with its payment."""


def replay(rule: p.Rule, witness: Witness, thresholds: Thresholds = Thresholds()) -> Replayed:  # noqa: B008 - frozen
    """Raises `DisagreementError`."""
    scope = scope_of(rule, witness)
    met = (each for each in range(len(rule.conditions)) if _is_met(rule, each, scope))
    first = next(met, -1)
    digests = Digests(rule.lets)
    values = tuple(witness.values.get(digests.of(each)) for each in rule.histories)
    compiled = compile_rule(rule, full_vocabulary()).decide(
        witness.facts, witness.score, values, witness.environment
    )
    if compiled != first:
        raise DisagreementError(f"rule `{rule.name}`: {first} by meaning, {compiled} compiled")
    if first >= 0:
        condition = rule.conditions[first]
        return Replayed(condition.action, condition.name)
    return Replayed(rule.otherwise or by_thresholds(witness.score or 0, thresholds), None)


def scope_of(rule: p.Rule, witness: Witness) -> Scope:
    """What names mean on the witness's payment."""
    scope = Scope(
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
    return evaluate(node, scope_of(rule, witness)) is True


def _is_met(rule: p.Rule, index: int, scope: Scope) -> bool:
    return evaluate(rule.conditions[index].when, scope) is True
