"""Fits a scorecard's numbers to examples: the text with the new numbers, and its quality before and
after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit  # type: ignore[import-untyped]

from tollkeeper.engine.offline.fit.curves import (
    Steps,
    choose_penalty,
    estimate_curves,
    held_out_logits,
)
from tollkeeper.engine.offline.fit.estimate import calibrate, estimate
from tollkeeper.engine.offline.fit.examples import Examples
from tollkeeper.engine.offline.fit.quality import Quality, quality
from tollkeeper.engine.offline.fit.steps import CutInput, cut
from tollkeeper.engine.offline.fit.weighed import Weight, curve_inputs, number_of, weights
from tollkeeper.engine.offline.fit.write_curves import FittedCurve, write_curves
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import Curve, Scorecard
from tollkeeper.grammar.syntax import Baseline, Span

Floats = NDArray[np.float64]

LEARNED = 0.7
"""The share of the labelled payments, the earliest, that is learned from; the rest is judged by."""
_LEAST_BASELINE = 1e-6


class FitError(Exception):
    """Nothing can be learned from the examples; the message says why."""


@dataclass(frozen=True, slots=True)
class FittedWeight:
    """`met` is the number of labelled payments for which the signal adds anything."""

    signal: str
    before: float
    after: float
    met: int


@dataclass(frozen=True, slots=True)
class FittedScorecard:
    """`text` is the file's with new numbers; `before` and `after` are judged on the later part.

    `learned` and `judged` are the numbers of labelled payments in each part; `set_aside` counts, by
    reason, payments whose outcome is unknown. `left_out` is, for curves, the quality before and after
    on the earlier part, each payment scored by curves learned without its campaign; None with a
    single campaign.
    """

    text: str
    baseline_before: float
    baseline_after: float
    weights: tuple[FittedWeight, ...]
    curves: tuple[FittedCurve, ...]
    before: Quality
    after: Quality
    left_out: tuple[Quality, Quality] | None
    learned: int
    judged: int
    set_aside: Mapping[str, int]


def fit_weights(text: str, scorecard: Scorecard, examples: Examples) -> FittedScorecard:
    """Estimate the baseline and weights of `scorecard`, checked from `text`.

    Learns from the first 70 % of the examples and is judged by the rest. Signals without a literal
    weight stay as they are. Raises `FitError` when there are too few examples.
    """
    split = _split(examples.labels)
    known = weights(scorecard)
    weighed = np.array([weight is not None for weight in known], dtype=bool)
    literals = [weight for weight in known if weight is not None]
    authored = np.array([weight.value for weight in literals])
    measures = examples.measures[:, weighed]
    fixed = examples.measures[:, ~weighed].sum(axis=1)
    found = estimate(
        measures[:split], fixed[:split], examples.labels[:split], scorecard.baseline, authored
    )
    numbers = [_digits(value) for value in found.weights]
    baseline = _baseline(found.baseline)
    places = [(weight.span, new) for weight, new in zip(literals, numbers, strict=True)]
    after = np.array([float(each) for each in numbers])

    def judged(baseline: float, chosen: Floats) -> Quality:
        logits = logit(baseline) + fixed[split:] + measures[split:] @ chosen
        return quality(expit(logits), examples.labels[split:])

    return FittedScorecard(
        text=_replaced(text, [(_baseline_span(text), baseline), *places]),
        baseline_before=scorecard.baseline,
        baseline_after=float(baseline),
        weights=_fitted_weights(literals, numbers, measures),
        curves=(),
        before=judged(scorecard.baseline, authored),
        after=judged(float(baseline), after),
        left_out=None,
        learned=split,
        judged=len(examples.labels) - split,
        set_aside=examples.set_aside,
    )


class OfferedCurves(NamedTuple):
    """Curves that may be learned, the steps of every example on each, and the log-odds of every
    example by all that the author says, and by all but the author's curves."""

    cuts: tuple[CutInput, ...]
    steps: tuple[Steps, ...]
    author: Floats
    others: Floats


def fit_curves(text: str, scorecard: Scorecard, examples: Examples) -> FittedScorecard:
    """Estimate the baseline and curves; the author's other signals stay as they are.

    The author's curves keep their direction and bounds; a let that no curve reads gets a signal
    `NAME_by_labels` if its estimated curve adds anything. Learns, is judged and raises as
    `fit_weights`.
    """
    split = _split(examples.labels)
    labels, campaigns = examples.labels, examples.campaigns[:split]
    offered = offer_curves(scorecard, examples, np.arange(split))
    early = [each.rows(slice(split)) for each in offered.steps]
    learned = offered.others[:split], labels[:split]
    penalty = choose_penalty(early, *learned, campaigns)
    estimated = estimate_curves(early, *learned, penalty)
    held_out = held_out_logits(early, *learned, campaigns, penalty)
    after = offered.others + estimated.added(offered.steps)
    prior = float(logit(scorecard.baseline))
    baseline = _baseline(float(expit(prior + estimated.baseline)))
    based = _replaced(text, [(_baseline_span(text), baseline)])
    written = write_curves(based, list(zip(offered.cuts, estimated.amounts, strict=True)))
    return FittedScorecard(
        text=written.text,
        baseline_before=scorecard.baseline,
        baseline_after=float(baseline),
        weights=(),
        curves=written.curves,
        before=quality(expit(offered.author[split:]), labels[split:]),
        after=quality(expit(after[split:]), labels[split:]),
        left_out=None
        if held_out is None
        else (
            quality(expit(offered.author[:split]), labels[:split]),
            quality(expit(held_out), labels[:split]),
        ),
        learned=split,
        judged=len(labels) - split,
        set_aside=examples.set_aside,
    )


def offer_curves(
    scorecard: Scorecard, examples: Examples, rows: NDArray[np.int64]
) -> OfferedCurves:
    """Cut each input into steps by these `rows` of the examples, which are learned from. Raises
    `FitError` where no value differs."""
    labels = examples.labels[rows]
    curved = np.array([isinstance(each.adds, Curve) for each in scorecard.signals], dtype=bool)
    weigh = np.array([1.0 if each is None else each.value for each in weights(scorecard)])
    author = float(logit(scorecard.baseline)) + examples.measures @ weigh
    others = author - examples.measures[:, curved] @ weigh[curved]
    surprise = labels - expit(others[rows])
    pairs = zip(curve_inputs(scorecard), examples.values.T, strict=True)
    cuts = tuple(
        read
        for each, values in pairs
        if (read := cut(each, values, rows, labels, surprise)) is not None
    )
    if not cuts:
        raise FitError("no curve has anything to read: every value is the same, or missing")
    return OfferedCurves(cuts, tuple(each.steps for each in cuts), author, others)


def fit_calibration(text: str, scorecard: Scorecard, examples: Examples) -> FittedScorecard:
    """Estimate the baseline and one factor for all signals, so that the order of payments stays, and
    of payments with a score of 0.90 about nine in ten are bots.

    Learns, is judged and raises as `fit_weights`; also raises `FitError` for a signal without a
    number that the factor could multiply.
    """
    split = _split(examples.labels)
    known = weights(scorecard)
    curved = np.array([isinstance(each.adds, Curve) for each in scorecard.signals], dtype=bool)
    for signal, weight in zip(scorecard.signals, known, strict=True):
        if weight is None and not isinstance(signal.adds, Curve):
            raise FitError(f"`{signal.name}` adds no number that a factor could go into")
    literals = [weight for weight in known if weight is not None]
    authored = np.array([weight.value for weight in literals])
    measures, curves = examples.measures[:, ~curved], examples.measures[:, curved].sum(axis=1)
    sums = measures @ authored + curves
    labels = examples.labels
    prior = float(logit(scorecard.baseline))
    shift, factor = calibrate(sums[:split], labels[:split], prior)
    baseline = _baseline(float(expit(shift)))
    numbers = [_digits(factor * weight.value) for weight in literals]
    places = [(weight.span, number) for weight, number in zip(literals, numbers, strict=True)]
    places += [
        (constant.span, _digits(factor * value))
        for signal in scorecard.signals
        if isinstance(signal.adds, Curve)
        for constant in (*signal.adds.amounts, signal.adds.absent)
        if constant is not None and (value := number_of(constant))
    ]
    after = logit(float(baseline)) + measures @ np.array(list(map(float, numbers)))
    return FittedScorecard(
        text=_replaced(text, [(_baseline_span(text), baseline), *places]),
        baseline_before=scorecard.baseline,
        baseline_after=float(baseline),
        weights=_fitted_weights(literals, numbers, measures),
        curves=(),
        before=quality(expit(prior + sums[split:]), labels[split:]),
        after=quality(expit((after + factor * curves)[split:]), labels[split:]),
        left_out=None,
        learned=split,
        judged=len(labels) - split,
        set_aside=examples.set_aside,
    )


def _split(labels: Floats) -> int:
    """The number of examples to learn from. Raises `FitError` unless both parts have bots and
    people."""
    split = int(len(labels) * LEARNED)
    for part, words in ((labels[:split], "first 70 %"), (labels[split:], "last 30 %")):
        if len(np.unique(part)) < 2:
            raise FitError(f"the {words} of the labelled payments need both labels, 0 and 1")
    return split


def _replaced(text: str, places: Sequence[tuple[Span, str]]) -> str:
    """The text with new numbers in these places; a number of the same value stays as written."""
    for span, number in sorted(places, reverse=True):
        if float(number) != float(text[span.start : span.end].replace(" ", "")):
            text = text[: span.start] + number + text[span.end :]
    return text


def _baseline(probability: float) -> str:
    return _digits(min(max(probability, _LEAST_BASELINE), 1 - _LEAST_BASELINE))


def _baseline_span(text: str) -> Span:
    file = parse(text).file
    assert file is not None
    return next(item.value.span for item in file.items if isinstance(item, Baseline))


def _fitted_weights(
    authored: Sequence[Weight], numbers: Sequence[str], measures: Floats
) -> tuple[FittedWeight, ...]:
    """Each signal's weight before and after."""
    met = np.count_nonzero(measures, axis=0)
    return tuple(
        FittedWeight(weight.signal, weight.value, float(new), int(count))
        for weight, new, count in zip(authored, numbers, met, strict=True)
    )


def _digits(value: float) -> str:
    """The number with at most three significant digits, or all of its integer part; no exponent."""
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
