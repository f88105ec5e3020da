"""Labelled history and a scorecard's text in; the text with new weights, and what they gain, out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit  # type: ignore[import-untyped]

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.estimate import Estimate, estimate
from tollkeeper.engine.offline.fit.labelled import read_labelled
from tollkeeper.engine.offline.fit.quality import Quality, quality
from tollkeeper.engine.offline.fit.replay import score_history
from tollkeeper.engine.offline.fit.weighed import Weight, measure, weights
from tollkeeper.engine.programs.loaded import load_scorecard
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import Scorecard
from tollkeeper.grammar.syntax import Baseline, Span

Floats = NDArray[np.float64]

LEARNED = 0.7
"""Share of the labelled payments that are learned from, the earliest; the rest judge."""


class FitError(Exception):
    """Why nothing can be learned from a history."""


@dataclass(frozen=True, slots=True)
class FittedWeight:
    """`met` is the number of labelled payments that the signal said anything of."""

    signal: str
    before: float
    after: float
    met: int


@dataclass(frozen=True, slots=True)
class FittedScorecard:
    """`text` is the file's with new weights; `before` and `after` are judged on the later part.

    `learned` and `judged` are the numbers of labelled payments in each part.
    """

    text: str
    baseline_before: float
    baseline_after: float
    weights: tuple[FittedWeight, ...]
    before: Quality
    after: Quality
    learned: int
    judged: int


@dataclass(frozen=True, slots=True)
class _Examples:
    """A row of measures and a label for each labelled payment, in order of arrival."""

    measures: Floats
    labels: Floats


def fit(
    text: str,
    scorecard: Scorecard,
    history: Path,
    progress: Callable[[float], None] = lambda _share: None,
    environment: Environment | None = None,
) -> FittedScorecard:
    """Estimate the baseline and weights of `scorecard`, checked from `text`.

    Learns from the first 70 % of the labelled payments in `history` (`labelled.py`) and judges by
    the rest. Signals without a literal weight add what they always did. `environment` gives lists
    and tables as they are now. Raises `StreamError` for a line that can't be read, `FitError`
    when there is not enough to learn from, `OSError`.
    """
    environment = environment or Environment()
    examples = _examples(scorecard, history, progress, environment)
    split = int(len(examples.labels) * LEARNED)
    _require_both_labels(examples.labels[:split], "first 70 %")
    _require_both_labels(examples.labels[split:], "last 30 %")
    known = weights(scorecard)
    weighed = np.array([weight is not None for weight in known])
    literals = [weight for weight in known if weight is not None]
    authored = np.array([weight.value for weight in literals])
    measures = examples.measures[:, weighed]
    fixed = examples.measures[:, ~weighed].sum(axis=1)
    found = estimate(
        measures[:split], fixed[:split], examples.labels[:split], scorecard.baseline, authored
    )
    written = _WrittenNumbers.of(text, literals, found)

    def judged(baseline: float, chosen: Floats) -> Quality:
        logits = logit(baseline) + fixed[split:] + measures[split:] @ chosen
        return quality(expit(logits), examples.labels[split:])

    met = np.count_nonzero(measures, axis=0)
    return FittedScorecard(
        text=written.text,
        baseline_before=scorecard.baseline,
        baseline_after=written.baseline,
        weights=tuple(
            FittedWeight(weight.signal, weight.value, after, int(count))
            for weight, after, count in zip(literals, written.weights, met, strict=True)
        ),
        before=judged(scorecard.baseline, authored),
        after=judged(written.baseline, np.array(written.weights)),
        learned=split,
        judged=len(examples.labels) - split,
    )


@dataclass(frozen=True, slots=True)
class _WrittenNumbers:
    """The text with the numbers as they stand in it, rounded to three digits."""

    text: str
    baseline: float
    weights: tuple[float, ...]

    @classmethod
    def of(cls, text: str, literals: Sequence[Weight], found: Estimate) -> _WrittenNumbers:
        baseline = _digits(min(max(found.baseline, 1e-6), 1 - 1e-6))
        numbers = [_digits(value) for value in found.weights]
        places = [(_baseline_span(text), baseline)]
        places += [(weight.span, new) for weight, new in zip(literals, numbers, strict=True)]
        for span, number in sorted(places, reverse=True):
            if float(number) != float(text[span.start : span.end].replace(" ", "")):
                text = text[: span.start] + number + text[span.end :]
        return cls(text, float(baseline), tuple(map(float, numbers)))


def _examples(
    scorecard: Scorecard,
    history: Path,
    progress: Callable[[float], None],
    environment: Environment,
) -> _Examples:
    vocabulary = full_vocabulary()
    measured = measure(scorecard, vocabulary, environment)
    loaded = load_scorecard(scorecard, 0, vocabulary)
    lines = read_labelled(_lines(history, progress))
    rows, labels = [], []
    for scored in score_history(lines, loaded, environment):
        if scored.label is not None:
            rows.append(measured(scored))
            labels.append(float(scored.label))
    shape = (len(rows), len(scorecard.signals))
    return _Examples(np.array(rows, dtype=float).reshape(shape), np.array(labels))


def _lines(history: Path, progress: Callable[[float], None]) -> Iterator[bytes]:
    """The lines of a file; `progress` is told the share that is read, 0 to 1."""
    size = max(1, history.stat().st_size)
    done = 0
    with history.open("rb") as stream:
        for number, line in enumerate(stream):
            yield line
            done += len(line)
            if number % 256 == 0:
                progress(min(0.99, done / size))
    progress(1.0)


def _require_both_labels(labels: Floats, part: str) -> None:
    if len(np.unique(labels)) < 2:
        raise FitError(f"the {part} of the labelled payments need both labels, 0 and 1")


def _baseline_span(text: str) -> Span:
    file = parse(text).file
    assert file is not None
    return next(item.value.span for item in file.items if isinstance(item, Baseline))


def _digits(value: float) -> str:
    """Three significant digits at most, and no exponent."""
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".")
