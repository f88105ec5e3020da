"""The bounds of a curve's steps: the author's, or quantiles of the values that are learned from."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata  # type: ignore[import-untyped]

from tollkeeper.engine.offline.fit.curves import Amounts, Floats, StepPlaces, Steps
from tollkeeper.engine.offline.fit.weighed import CurveInput, number_of
from tollkeeper.grammar.checker.curves import MAX_STEPS
from tollkeeper.grammar.types import Duration

_DIGITS = 3
_UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}
_MILLISECOND = 1_000


class CutInput(NamedTuple):
    """An input with its bounds, in the input's unit (µs for durations), and each payment's step."""

    input: CurveInput
    bounds: Floats
    steps: Steps


def cut(
    read: CurveInput, values: Floats, rows: StepPlaces, labels: Floats, surprise: Floats
) -> CutInput | None:
    """Cut an input into steps; None when all its values are the same.

    `labels` and `surprise` (label less the author's probability) are of the payments in `rows`, which
    are learned from. The author's curve keeps its direction, or may go both ways if it has none; a
    new curve rises if larger values go with more surprise, else it falls.
    """
    learned = values[rows]
    if read.curve is None:
        bounds = _new_bounds(learned, labels, isinstance(read.expression.type, Duration))
        if not len(bounds):
            return None
        ways: tuple[int, ...] = (_direction(learned, surprise),)
    else:
        bounds = np.array([number_of(each) for each in read.curve.bounds])
        ways = {"rising": (1,), "falling": (-1,), None: (1, -1)}[read.curve.direction]
    places = np.searchsorted(bounds, values, side="right")
    people = places[rows[(labels == 0) & ~np.isnan(learned)]]
    common = int(np.bincount(people, minlength=len(bounds) + 1).argmax())
    places[np.isnan(values)] = len(bounds) + 1
    return CutInput(read, bounds, Steps(places, len(bounds), ways, common, read.curve is not None))


def braces(cut: CutInput, amounts: Amounts) -> str:
    """The steps as text, `{ < 3: 0.5, else 1 }`; in a new curve, equal neighbours are merged."""
    steps = []
    for bound, adds, following in zip(cut.bounds, amounts.steps, amounts.steps[1:], strict=False):
        if cut.input.curve is not None or adds != following:
            steps.append(f"< {_bound_text(bound, cut.input)}: {_decimal(adds)}")
    steps.append(f"else {_decimal(amounts.steps[-1])}")
    if amounts.missing:
        steps.append(f"missing: {_decimal(amounts.missing)}")
    return f"{{ {', '.join(steps)} }}"


def _new_bounds(values: Floats, labels: Floats, in_time: bool) -> Floats:
    """Quantiles of all payments' values and of bots' values, at most `MAX_STEPS - 1` of them."""
    present = ~np.isnan(values)
    shares = np.linspace(0, 1, MAX_STEPS + 1)[1:-1]
    parts = [values[present], values[present & (labels > 0)]]
    found = np.concatenate(
        [np.quantile(each, shares, method="nearest") for each in parts if len(each)] or [values[:0]]
    )
    rounded = np.unique([_round(each, in_time) for each in found])
    rounded = rounded[rounded > values[present].min()] if len(rounded) else rounded
    chosen = np.linspace(0, len(rounded) - 1, MAX_STEPS - 1).round().astype(int)
    return rounded[np.unique(chosen)] if len(rounded) >= MAX_STEPS else rounded


def _round(value: float, in_time: bool) -> float:
    readable = float(f"{value:.{_DIGITS}g}")
    return float(round(readable / _MILLISECOND) * _MILLISECOND) if in_time else readable


def _direction(values: Floats, surprise: Floats) -> int:
    present = ~np.isnan(values)
    ranks = rankdata(values[present])
    return 1 if np.dot(ranks - ranks.mean(), surprise[present]) >= 0 else -1


def _bound_text(bound: float, read: CurveInput) -> str:
    if not isinstance(read.expression.type, Duration):
        return _decimal(bound)
    for unit, size in _UNITS.items():
        if bound % size == 0:
            return f"{bound / size:.0f}{unit}"
    return f"{bound / _MILLISECOND:.0f}ms"


def _decimal(value: float) -> str:
    """The number as a decimal without an exponent."""
    text = f"{Decimal(repr(float(value))):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
