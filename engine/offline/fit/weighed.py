"""The weights and curves of a scorecard, and what a payment's values for them are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple, TypeAlias

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.compile.python import compile_values
from tollkeeper.grammar.program import (
    Arithmetic,
    Constant,
    Curve,
    Expression,
    LetValue,
    Scorecard,
    Value,
)
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.types import Duration, Number
from tollkeeper.grammar.vocabulary import Vocabulary


class Measures(NamedTuple):
    """A payment's value for each signal, and for each input of a curve."""

    signals: tuple[float, ...]
    inputs: tuple[float, ...]


Measure: TypeAlias = Callable[[Any, Sequence[Value | None], Environment], Measures]
"""From the payment's facts, the aggregates read for it, and lists and tables, to its measures."""


@dataclass(frozen=True, slots=True)
class Weight:
    """The literal weight of a signal: `W` in `adds W when …` and in `adds W * …`."""

    signal: str
    span: Span
    value: float


@dataclass(frozen=True, slots=True)
class CurveInput:
    """A value that a curve may read: `name` is the signal that has the author's `curve`, or a let that
    no curve reads."""

    name: str
    expression: Expression
    curve: Curve | None


def weights(scorecard: Scorecard) -> tuple[Weight | None, ...]:
    """The weight of each signal; None for one without, such as `adds amount`."""
    return tuple(
        Weight(signal.name, literal.span, number_of(literal))
        if (literal := _literal(signal.adds)) is not None and literal.value
        else None
        for signal in scorecard.signals
    )


def measure(scorecard: Scorecard, vocabulary: Vocabulary) -> Measure:
    """Compile a function that computes a payment's measures.

    A signal's measure is what its weight is multiplied by, or, without a weight, all that it adds; 0
    when its `when` is not met or a value is missing. An input that is missing is nan; a duration is
    in µs.
    """
    adds = [
        _measure_signal(signal.adds) if weight is not None else signal.adds
        for signal, weight in zip(scorecard.signals, weights(scorecard), strict=True)
    ]
    whens = [signal.when for signal in scorecard.signals]
    inputs = [each.expression for each in curve_inputs(scorecard)]
    asked = [each for each in (*adds, *whens, *inputs) if each is not None]
    values_of = compile_values(asked, scorecard.lets, scorecard.histories, vocabulary)

    def measured(facts: Any, read: Sequence[Value | None], environment: Environment) -> Measures:
        values = iter(values_of(facts, None, read, environment))
        amounts = [1.0 if each is None else _number(next(values), each, 0.0) for each in adds]
        met = [True if each is None else next(values) is True for each in whens]
        return Measures(
            tuple(each if is_met else 0.0 for each, is_met in zip(amounts, met, strict=True)),
            tuple(_number(next(values), each, nan) for each in inputs),
        )

    return measured


def curve_inputs(scorecard: Scorecard) -> tuple[CurveInput, ...]:
    """The inputs of the author's curves, then each let that is a number or a duration and that no
    curve reads directly."""
    written = [
        CurveInput(signal.name, signal.adds.value, signal.adds)
        for signal in scorecard.signals
        if isinstance(signal.adds, Curve)
    ]
    read = {each.expression.index for each in written if isinstance(each.expression, LetValue)}
    lets = (
        CurveInput(let.name, LetValue(let.value.id, let.span, let.value.type, index), None)
        for index, let in enumerate(scorecard.lets)
        if index not in read and isinstance(let.value.type, (Number, Duration))
    )
    return (*written, *lets)


def _literal(adds: Expression) -> Constant | None:
    if isinstance(adds, Constant):
        return adds
    if isinstance(adds, Arithmetic) and adds.operator == "*" and isinstance(adds.left, Constant):
        return adds.left
    return None


def _measure_signal(adds: Expression) -> Expression | None:
    """What the weight is multiplied by, None for 1."""
    return adds.right if isinstance(adds, Arithmetic) else None


def number_of(constant: Constant) -> float:
    """The value of a constant as it was written, without its scale."""
    return _number(constant.value, constant, 0.0)


def _number(value: Value | None, node: Expression, missing: float) -> float:
    if value is None:
        return missing
    assert isinstance(value, (int, float))
    scale = node.type.scale if isinstance(node.type, Number) else 0
    return float(value) if not scale else value / 10**scale
