"""What of a scorecard has a weight of its own, and what of it a payment brings to each weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.replay import ScoredPayment
from tollkeeper.engine.programs.compile.python import compile_values
from tollkeeper.grammar.program import Arithmetic, Constant, Expression, Scorecard, Value
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.types import Number
from tollkeeper.grammar.vocabulary import Vocabulary

Measure = Callable[[ScoredPayment], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Weight:
    """The literal that weighs a signal: `W` of `adds W when …` and of `adds W * …`."""

    signal: str
    span: Span
    value: float


def weights(scorecard: Scorecard) -> tuple[Weight | None, ...]:
    """The weight of each signal; None for one that has none to change, as `adds amount`."""
    return tuple(
        Weight(signal.name, literal.span, _number(literal.value, literal))
        if (literal := _literal(signal.adds)) is not None and literal.value
        else None
        for signal in scorecard.signals
    )


def measure(scorecard: Scorecard, vocabulary: Vocabulary, environment: Environment) -> Measure:
    """A function that tells how much of each signal a payment has.

    For a signal with a weight that is what the weight is multiplied with, for one without all
    that it adds; 0 where its `when` is not met or a value is missing.
    """
    adds = [
        _measure_signal(signal.adds) if weight is not None else signal.adds
        for signal, weight in zip(scorecard.signals, weights(scorecard), strict=True)
    ]
    whens = [signal.when for signal in scorecard.signals]
    asked = [each for each in (*adds, *whens) if each is not None]
    values_of = compile_values(asked, scorecard.lets, scorecard.histories, vocabulary)

    def measured(scored: ScoredPayment) -> tuple[float, ...]:
        values = iter(values_of(scored.facts, None, scored.values, environment))
        amounts = [1.0 if each is None else _number(next(values), each) for each in adds]
        met = [True if each is None else next(values) is True for each in whens]
        return tuple(each if is_met else 0.0 for each, is_met in zip(amounts, met, strict=True))

    return measured


def _literal(adds: Expression) -> Constant | None:
    if isinstance(adds, Constant):
        return adds
    if isinstance(adds, Arithmetic) and adds.operator == "*" and isinstance(adds.left, Constant):
        return adds.left
    return None


def _measure_signal(adds: Expression) -> Expression | None:
    """What the weight is multiplied with, None for 1."""
    return adds.right if isinstance(adds, Arithmetic) else None


def _number(value: Value | None, node: Expression) -> float:
    if value is None:
        return 0.0
    assert isinstance(node.type, Number)
    assert isinstance(value, (int, float))
    return float(value) if node.type.scale is None else value / 10**node.type.scale
