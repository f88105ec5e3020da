"""Curves from labels: what is added to the author's sum by steps, near it and each one way only.

The estimate is a logistic regression over the steps' rises, none of which may be below zero, with a
price for each: most rises come to nothing, and so do most curves.
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
"""All curves together add at most so much to the author's log-odds, and take at most so much."""
PRICES = (10.0, 30.0, 100.0)
"""What a rise of 1 costs, in nats; the one is chosen that says most of campaigns not learned from."""
CAMPAIGN_FOLDS = 3
_DEARER = 1.5
_DIGITS = 2


class Steps(NamedTuple):
    """The payments on the steps of one curve: `places` counts the bounds at or below each value,
    and is one more than there are bounds where the value is missing.

    `ways` are those that the curve may go from step to step: 1 up, -1 down.
    """

    places: StepPlaces
    bounds: int
    ways: tuple[int, ...]

    def rows(self, chosen: slice | StepPlaces) -> Steps:
        """The same curve for some of the payments."""
        return self._replace(places=self.places[chosen])


class Amounts(NamedTuple):
    """What a curve adds on each step, and where its value is missing."""

    steps: Floats
    missing: float


class EstimatedCurves(NamedTuple):
    """`baseline` is what every payment's log-odds move by."""

    baseline: float
    amounts: tuple[Amounts, ...]

    def added(self, curves: Sequence[Steps]) -> Floats:
        """What is added to each payment's log-odds."""
        total = np.full(len(curves[0].places), self.baseline)
        for curve, adds in zip(curves, self.amounts, strict=True):
            total += np.append(adds.steps, adds.missing)[curve.places]
        return total


def estimate_curves(
    curves: Sequence[Steps], author: Floats, labels: Floats, groups: StepPlaces
) -> EstimatedCurves:
    """What each curve adds to `author`, the author's log-odds of each payment.

    `groups` are the campaigns: payments of one are learned from together or not at all while the
    price is chosen. Together the curves stay within `MOST_TAKEN` and `MOST_ADDED`.
    """
    price = _best_price(curves, author, labels, groups)
    up = down = price
    start = None
    while True:
        found = _fitted(curves, author, labels, (up, down), start)
        amounts = tuple(_rounded(each) for each in _amounts(curves, found))
        taken, added = reach(amounts)
        if taken <= MOST_TAKEN and added <= MOST_ADDED:
            return EstimatedCurves(float(found[0]), amounts)
        up *= _DEARER if added > MOST_ADDED else 1
        down *= _DEARER if taken > MOST_TAKEN else 1
        start = found


def left_out(
    curves: Sequence[Steps], author: Floats, labels: Floats, groups: StepPlaces
) -> Floats | None:
    """The log-odds of each payment by curves that were learned without its campaign; None where all
    belongs to one."""
    found = author.copy()
    folds = list(_folds(labels, groups))
    for learned, held in folds:
        chosen = [each.rows(learned) for each in curves]
        estimated = estimate_curves(chosen, author[learned], labels[learned], groups[learned])
        found[held] += estimated.added([each.rows(held) for each in curves])
    return found if folds else None


def reach(amounts: Sequence[Amounts]) -> tuple[float, float]:
    """The most that curves together can take, and add."""
    ends = [np.append(each.steps, each.missing) for each in amounts]
    taken = -sum(min(0.0, float(each.min())) for each in ends)
    return taken, sum(max(0.0, float(each.max())) for each in ends)


def _best_price(
    curves: Sequence[Steps], author: Floats, labels: Floats, groups: StepPlaces
) -> float:
    losses = np.zeros(len(PRICES))
    for learned, held in _folds(labels, groups):
        chosen = [each.rows(learned) for each in curves]
        held_curves = [each.rows(held) for each in curves]
        start = None
        for place, price in reversed(list(enumerate(PRICES))):
            found = start = _fitted(chosen, author[learned], labels[learned], (price, price), start)
            estimated = EstimatedCurves(float(found[0]), tuple(_amounts(chosen, found)))
            logits = author[held] + estimated.added(held_curves)
            losses[place] += log_loss(labels[held], expit(logits), labels=(0, 1), normalize=False)
    return PRICES[int(losses.argmin())]


def _folds(labels: Floats, groups: StepPlaces) -> Iterator[tuple[StepPlaces, StepPlaces]]:
    folds = min(CAMPAIGN_FOLDS, len(np.unique(groups[labels > 0])))
    if folds > 1:
        yield from GroupKFold(folds).split(labels, labels, groups)


def _fitted(
    curves: Sequence[Steps],
    author: Floats,
    labels: Floats,
    prices: tuple[float, float],
    start: Floats | None,
) -> Floats:
    """The baseline's move, and behind it each curve's rises by way and its two amounts if missing."""
    prices_of = np.concatenate([np.zeros(1), *(_prices(each, *prices) for each in curves)])

    def loss(found: Floats) -> tuple[float, Floats]:
        logits = author + found[0]
        for curve, adds in zip(curves, _amounts(curves, found), strict=True):
            logits += np.append(adds.steps, adds.missing)[curve.places]
        residual = expit(logits) - labels
        gradient = prices_of.copy()
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
        return float(likelihood + prices_of @ found), gradient

    begin = np.zeros(len(prices_of)) if start is None else start
    bounds = [(None, None), *([(0.0, None)] * (len(prices_of) - 1))]
    result = minimize(
        loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 150}
    )
    best: Floats = result.x
    return best


def _prices(curve: Steps, up: float, down: float) -> Floats:
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
    """As they are written, towards zero, so that nothing gets beyond what it may."""
    unit = 10.0**_DIGITS
    steps: Floats = np.trunc(amounts.steps * unit) / unit
    return Amounts(steps, float(np.trunc(amounts.missing * unit) / unit))
