"""Logistic regression with the author's weights as the prior; no weight changes its sign."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize  # type: ignore[import-untyped]
from scipy.special import expit, logit  # type: ignore[import-untyped]

Floats = NDArray[np.float64]

DOUBT = 0.25
"""Standard deviation of a weight's prior, as a share of the authored weight. It is narrow because the
payments of a campaign come by the dozen and are not independent evidence."""
BASELINE_DOUBT = 3.0
"""Standard deviation of the prior of the baseline's logit, in which labelled samples differ most."""
LEAST = 0.05
"""The least weight, as a share of the authored one."""
MOST_FACTOR = 3.0
"""The largest factor of a calibration: where bots and people are separated perfectly, the likelihood
grows with the factor without end."""


class Estimate(NamedTuple):
    """`baseline` is a probability."""

    baseline: float
    weights: Floats


CERTAINTY = 1e-9
"""The least distance of a baseline from 0 and from 1."""


def estimate(
    measures: Floats, fixed: Floats, labels: Floats, baseline: float, authored: Floats
) -> Estimate:
    """The most probable baseline and weights, given the labels and the author's baseline and weights.

    `measures` has a row for each payment and a column for each weight, `fixed` what signals without
    a weight add to each payment's logit; `labels` are 0 or 1.
    """
    middle = np.concatenate(([logit(baseline)], authored))
    spread = np.concatenate(([BASELINE_DOUBT], DOUBT * np.abs(authored)))
    design = np.column_stack((np.ones(len(labels)), measures)) * spread

    def loss(steps: Floats) -> tuple[float, Floats]:
        """Negative log posterior and gradient at `middle + steps * spread`."""
        logits = start + design @ steps
        likelihood = np.logaddexp(0.0, logits) - labels * logits
        gradient = design.T @ (expit(logits) - labels) + steps
        return float(likelihood.sum() + steps @ steps / 2), gradient

    start = fixed + np.column_stack((np.ones(len(labels)), measures)) @ middle
    # In steps, a weight's sign and least size are one bound: (LEAST - 1) / DOUBT from the author's.
    direction = np.sign(authored)
    bounds = [(None, None)] + [
        ((LEAST - 1) / DOUBT, None) if sign > 0 else (None, (1 - LEAST) / DOUBT)
        for sign in direction
    ]
    found = minimize(loss, np.zeros(len(middle)), jac=True, method="L-BFGS-B", bounds=bounds)
    best = middle + spread * found.x
    # With few payments the logit may become so large that `expit` gives 1, which is no baseline.
    return Estimate(float(np.clip(expit(best[0]), CERTAINTY, 1 - CERTAINTY)), best[1:])


def calibrate(sums: Floats, labels: Floats, baseline: float) -> tuple[float, float]:
    """The baseline's logit and the factor of `sums` that make the labels most likely.

    `baseline` is the author's, as a logit. The factor is between `LEAST` and `MOST_FACTOR`.
    """

    def loss(found: Floats) -> tuple[float, Floats]:
        logits = found[0] + found[1] * sums
        residual = expit(logits) - labels
        likelihood = np.logaddexp(0.0, logits).sum() - labels @ logits
        return float(likelihood), np.array((residual.sum(), residual @ sums))

    start, bounds = np.array((baseline, 1.0)), [(None, None), (LEAST, MOST_FACTOR)]
    shift, factor = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(shift), float(factor)
