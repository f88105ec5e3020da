"""Curves estimated from labels: step functions whose values are added to the author's log-odds.

The estimate is a logistic regression with an L1 penalty over the rises between steps, which must not
be negative, so that curves are monotonic. The penalty makes most rises zero, and so most curves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize  # type: ignore[import-untyped]
from scipy.special import expit  # type: ignore[import-untyped]
from sklearn.metrics import log_loss  # type: ignore[import-untyped]
from sklearn.model_selection import GroupKFold  # type: ignore[import-untyped]

Floats: TypeAlias = NDArray[np.float64]
StepPlaces: TypeAlias = NDArray[np.int64]

MOST_ADDED = 6.0
MOST_TAKEN = 2.0
"""The most that all curves together add to the author's log-odds, and subtract from them."""
PENALTIES = (10.0, 30.0, 100.0)
"""Penalties of a rise of 1, in nats; the one with the least loss on held-out campaigns is chosen."""
CAMPAIGN_FOLDS = 3
_PENALTY_GROWTH = 1.5
_DIGITS = 2


class Steps(NamedTuple):
    """The step of one curve that each payment is on: `places` has the number of bounds at or below its
    value, and `bounds + 1` where the value is missing.

    `ways` are the directions in which the curve may go from step to step: 1 up, -1 down.
    """

    places: StepPlaces
    bounds: int
    ways: tuple[int, ...]

    def rows(self, chosen: slice | StepPlaces) -> Steps:
        """The same curve for some of the payments."""
        return self._replace(places=self.places[chosen])


class Amounts(NamedTuple):
    """What a curve adds to the log-odds on each step, and for a missing value."""

    steps: Floats
    missing: float


class EstimatedCurves(NamedTuple):
    """`baseline` is added to every payment's log-odds, the amounts of a curve by its steps."""

    baseline: float
    amounts: tuple[Amounts, ...]

    def added(self, curves: Sequence[Steps]) -> Floats:
        """What the baseline and the curves add to each payment's log-odds."""
        total = np.full(len(curves[0].places), self.baseline)
        for curve, adds in zip(curves, self.amounts, strict=True):
            total += np.append(adds.steps, adds.missing)[curve.places]
        return total


def estimate_curves(
    curves: Sequence[Steps], author: Floats, labels: Floats, groups: StepPlaces
) -> EstimatedCurves:
    """Estimate what each curve adds to `author`, the author's log-odds of each payment.

    `groups` are the payments' campaigns: while the penalty is chosen, a campaign is held out as a
    whole. Together the curves stay within `MOST_TAKEN` and `MOST_ADDED`.
    """
    up = down = _best_penalty(curves, author, labels, groups)
    start = None
    while True:
        found = _fitted(curves, author, labels, (up, down), start)
        amounts = tuple(_rounded(each) for each in _amounts(curves, found))
        taken, added = reach(amounts)
        if taken <= MOST_TAKEN and added <= MOST_ADDED:
            return EstimatedCurves(float(found[0]), amounts)
        up *= _PENALTY_GROWTH if added > MOST_ADDED else 1
        down *= _PENALTY_GROWTH if taken > MOST_TAKEN else 1
        start = found


def held_out_logits(
    curves: Sequence[Steps], author: Floats, labels: Floats, groups: StepPlaces
) -> Floats | None:
    """The log-odds of each payment by curves that were learned without its campaign; None when there
    are too few campaigns to hold some out."""
    found = author.copy()
    folds = list(_folds(labels, groups))
    for learned, held in folds:
        chosen = [each.rows(learned) for each in curves]
        estimated = estimate_curves(chosen, author[learned], labels[learned], groups[learned])
        found[held] += estimated.added([each.rows(held) for each in curves])
    return found if folds else None


def reach(amounts: Sequence[Amounts]) -> tuple[float, float]:
    """The most that the curves together can subtract from log-odds, and add to them."""
    ends = [np.append(each.steps, each.missing) for each in amounts]
    taken = -sum(min(0.0, float(each.min())) for each in ends)
    return taken, sum(max(0.0, float(each.max())) for each in ends)


def _best_penalty(
    curves: Sequence[Steps], author: Floats, labels: Floats, groups: StepPlaces
) -> float:
    losses = np.zeros(len(PENALTIES))
    for learned, held in _folds(labels, groups):
        chosen = [each.rows(learned) for each in curves]
        held_curves = [each.rows(held) for each in curves]
        start = None
        for place, penalty in reversed(list(enumerate(PENALTIES))):
            found = start = _fitted(
                chosen, author[learned], labels[learned], (penalty, penalty), start
            )
            estimated = EstimatedCurves(float(found[0]), tuple(_amounts(chosen, found)))
            logits = author[held] + estimated.added(held_curves)
            losses[place] += log_loss(labels[held], expit(logits), labels=(0, 1), normalize=False)
    return PENALTIES[int(losses.argmin())]


def _folds(labels: Floats, groups: StepPlaces) -> Iterator[tuple[StepPlaces, StepPlaces]]:
    folds = min(CAMPAIGN_FOLDS, len(np.unique(groups[labels > 0])))
    if folds > 1:
        yield from GroupKFold(folds).split(labels, labels, groups)


def _fitted(
    curves: Sequence[Steps],
    author: Floats,
    labels: Floats,
    way_penalties: tuple[float, float],
    start: Floats | None,
) -> Floats:
    """The parameters of least loss: the baseline's change, then, for each curve, the rises of each of
    its ways, and what a missing value adds and subtracts."""
    penalties = np.concatenate(
        [np.zeros(1), *(_penalties(each, *way_penalties) for each in curves)]
    )

    def loss(found: Floats) -> tuple[float, Floats]:
        logits = author + found[0]
        for curve, adds in zip(curves, _amounts(curves, found), strict=True):
            logits += np.append(adds.steps, adds.missing)[curve.places]
        residual = expit(logits) - labels
        gradient = penalties.copy()
        gradient[0] = residual.sum()
        place = 1
        for curve in curves:
            by_step = np.bincount(curve.places, residual, curve.bounds + 2)
            beyond = by_step[curve.bounds :: -1].cumsum()[::-1][1:]
            for way in curve.ways:
                gradient[place : place + curve.bounds] += way * beyond
                place += curve.bounds
            gradient[place : place + 2] += by_step[-1] * np.array((1, -1))
            place += 2
        likelihood = np.logaddexp(0.0, logits).sum() - labels @ logits
        return float(likelihood + penalties @ found), gradient

    begin = np.zeros(len(penalties)) if start is None else start
    bounds = [(None, None), *([(0.0, None)] * (len(penalties) - 1))]
    result = minimize(
        loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 150}
    )
    best: Floats = result.x
    return best


def _penalties(curve: Steps, up: float, down: float) -> Floats:
    of_ways = [np.full(curve.bounds, up if way > 0 else down) for way in curve.ways]
    return np.concatenate([*of_ways, np.array((up, down))])


def _amounts(curves: Sequence[Steps], found: Floats) -> list[Amounts]:
    amounts, place = [], 1
    for curve in curves:
        steps = np.zeros(curve.bounds + 1)
        for way in curve.ways:
            steps[1:] += way * found[place : place + curve.bounds].cumsum()
            place += curve.bounds
        amounts.append(Amounts(steps, float(found[place] - found[place + 1])))
        place += 2
    return amounts


def _rounded(amounts: Amounts) -> Amounts:
    """The amounts rounded towards zero to the digits that are written, so that they stay in bounds."""
    unit = 10.0**_DIGITS
    steps: Floats = np.trunc(amounts.steps * unit) / unit
    return Amounts(steps, float(np.trunc(amounts.missing * unit) / unit))
