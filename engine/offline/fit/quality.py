"""How well probabilities separate bots from people, and how well they are calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (  # type: ignore[import-untyped]
    average_precision_score,
    roc_auc_score,
    roc_curve,
)

from tollkeeper.engine.registry.changes import Thresholds

Floats = NDArray[np.float64]

FALSE_POSITIVE_RATES = (0.001, 0.01)
BINS = 10
THRESHOLDS = (Thresholds().challenge / 100, Thresholds().deny / 100)
"""The thresholds of an account that has set none, as probabilities."""


@dataclass(frozen=True, slots=True)
class Bin:
    """`count` payments of similar probabilities: their mean, and the share that were bots."""

    count: int
    predicted: float
    observed: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """The shares of people and of bots whose probability is at least `threshold`."""

    threshold: float
    people: float
    bots: float


@dataclass(frozen=True, slots=True)
class Quality:
    """`recall` is aligned with `FALSE_POSITIVE_RATES`, `stopped` with `THRESHOLDS`.

    `calibration` has those of ten bins of equal width that have payments, `calibration_error` the
    mean of |predicted - observed| over them, weighted by their counts.
    """

    roc_auc: float
    pr_auc: float
    recall: tuple[float, ...]
    calibration: tuple[Bin, ...]
    calibration_error: float
    stopped: tuple[Stopped, ...]


def quality(probabilities: Floats, labels: Floats) -> Quality:
    """The quality of `probabilities` of being a bot; `labels` must have both zeros and ones."""
    bins = _bins(probabilities, labels)
    distances = sum(each.count * abs(each.predicted - each.observed) for each in bins)
    return Quality(
        roc_auc=float(roc_auc_score(labels, probabilities)),
        pr_auc=float(average_precision_score(labels, probabilities)),
        recall=recall_at(probabilities, labels, FALSE_POSITIVE_RATES),
        calibration=bins,
        calibration_error=distances / len(labels),
        stopped=tuple(_stopped(probabilities, labels, each) for each in THRESHOLDS),
    )


def recall_at(probabilities: Floats, labels: Floats, rates: Sequence[float]) -> tuple[float, ...]:
    """For each of the false positive `rates`, the largest recall of a threshold that does not exceed it."""
    false, true, _ = roc_curve(labels, probabilities, drop_intermediate=False)
    return tuple(float(true[false <= rate].max()) for rate in rates)


def _stopped(probabilities: Floats, labels: Floats, threshold: float) -> Stopped:
    people, bots = (float((probabilities[labels == label] >= threshold).mean()) for label in (0, 1))
    return Stopped(threshold, people, bots)


def _bins(probabilities: Floats, labels: Floats) -> tuple[Bin, ...]:
    places = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    members = (places == place for place in np.unique(places))
    return tuple(
        Bin(int(inside.sum()), float(probabilities[inside].mean()), float(labels[inside].mean()))
        for inside in members
    )
