"""Curves estimated from labels: step functions whose values are added to the author's log-odds.

The estimate is a logistic regression with an elastic-net penalty over the rises between steps, which
must not be negative, so that curves are monotonic. Amounts are counted from the step that most people
are on, so that a curve that adds to bots takes nothing from anyone else. The penalty's linear part
makes most rises zero, and so many curves; its square part shares a rise among inputs that say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize  # type: ignore[import-untyped]
from scipy.sparse import block_diag, csr_matrix  # type: ignore[import-untyped]
from scipy.special import expit  # type: ignore[import-untyped]
from sklearn.metrics import log_loss  # type: ignore[import-untyped]
from sklearn.model_selection import GroupKFold  # type: ignore[import-untyped]

from tollkeeper.grammar.checker.curves import MAX_CURVES

Floats: TypeAlias = NDArray[np.float64]
StepPlaces: TypeAlias = NDArray[np.int64]

MOST_ADDED = 6.0
MOST_TAKEN = 2.0
"""The most that all curves together add to the author's log-odds, and subtract from them."""
PENALTIES = (50.0, 20.0, 8.0)
"""Penalties in nats; the one with the least loss on held-out campaigns is chosen."""
SQUARE = 0.3
"""A rise of r costs the penalty times r + SQUARE r² / 2."""
CAMPAIGN_FOLDS = 3
_PENALTY_GROWTH = 1.2
_DIGITS = 2


class Steps(NamedTuple):
    """The step of one curve that each payment is on: `places` has the number of bounds at or below its
    value, and `bounds + 1` where the value is missing.

    `ways` are the directions in which the curve may go from step to step: 1 up, -1 down. `common` is
    the step that most people with a value are on; it adds nothing. An `authored` curve is in the file
    already.
    """

    places: StepPlaces
    bounds: int
    ways: tuple[int, ...]
    common: int
    authored: bool

    def rows(self, chosen: slice | StepPlaces) -> Steps:
        """The same curve for some of the payments."""
        return self._replace(places=self.places[chosen])


class Amounts(NamedTuple):
    """What a curve adds to the log-odds on each step, and for a missing value."""

    steps: Floats
    missing: float

    def range(self) -> float:
        """The largest amount less the smallest."""
        return float(np.ptp(np.append(self.steps, self.missing)))


class _Design(NamedTuple):
    """`steps` says which steps each payment is on, `amounts` what each rise adds on each step; `adds`
    says which rises add to steps, where the others take from them. A curve's last step is that of a
    missing value, with a rise and a fall of its own.
    """

    steps: csr_matrix
    amounts: csr_matrix
    adds: NDArray[np.bool_]


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


def choose_penalty(
    curves: Sequence[Steps], author: Floats, labels: Floats, groups: StepPlaces
) -> float:
    """Choose the penalty whose curves have the least loss on campaigns that were held out.

    `author` has the author's log-odds of each payment; `groups` are the payments' campaigns, each
    held out as a whole.
    """
    losses = np.zeros(len(PENALTIES))
    for learned, held in _folds(labels, groups):
        design = _design([each.rows(learned) for each in curves])
        held_steps = _design([each.rows(held) for each in curves]).steps
        start = None
        for place, penalty in enumerate(PENALTIES):
            found = _fitted(design, author[learned], labels[learned], (penalty, penalty), start)
            logits = author[held] + found[0] + held_steps @ (design.amounts @ found[1:])
            losses[place] += log_loss(labels[held], expit(logits), labels=(0, 1), normalize=False)
            start = found
    return PENALTIES[int(losses.argmin())]


def estimate_curves(
    curves: Sequence[Steps], author: Floats, labels: Floats, penalty: float
) -> EstimatedCurves:
    """Estimate what each curve adds to `author`, the author's log-odds of each payment.

    Together the curves stay within `MOST_TAKEN` and `MOST_ADDED`: the penalty grows until they do. No
    more than `MAX_CURVES` add anything: new curves of the smallest ranges are left out.
    """
    design = _design(curves)
    up = down = penalty
    start = None
    while True:
        found = _fitted(design, author, labels, (up, down), start)
        amounts = _amounts(curves, design.amounts @ found[1:])
        taken, added = reach(amounts)
        if taken <= MOST_TAKEN and added <= MOST_ADDED:
            return EstimatedCurves(float(found[0]), _widest(curves, amounts))
        up *= _PENALTY_GROWTH if added > MOST_ADDED else 1
        down *= _PENALTY_GROWTH if taken > MOST_TAKEN else 1
        start = found


def _widest(curves: Sequence[Steps], amounts: Sequence[Amounts]) -> tuple[Amounts, ...]:
    """The amounts, with nothing for the new curves of the smallest ranges beyond `MAX_CURVES`."""
    order = sorted(
        range(len(curves)), key=lambda place: (not curves[place].authored, -amounts[place].range())
    )
    kept = {*order[:MAX_CURVES]}
    return tuple(
        each if place in kept else Amounts(np.zeros_like(each.steps), 0.0)
        for place, each in enumerate(amounts)
    )


def held_out_logits(
    curves: Sequence[Steps], author: Floats, labels: Floats, groups: StepPlaces, penalty: float
) -> Floats | None:
    """The log-odds of each payment by curves that were learned without its campaign; None when there
    are too few campaigns to hold some out."""
    found = author.copy()
    folds = list(_folds(labels, groups))
    for learned, held in folds:
        chosen = [each.rows(learned) for each in curves]
        estimated = estimate_curves(chosen, author[learned], labels[learned], penalty)
        found[held] += estimated.added([each.rows(held) for each in curves])
    return found if folds else None


def reach(amounts: Sequence[Amounts]) -> tuple[float, float]:
    """The most that the curves together can subtract from log-odds, and add to them."""
    ends = [np.append(each.steps, each.missing) for each in amounts]
    taken = -sum(min(0.0, float(each.min())) for each in ends)
    return taken, sum(max(0.0, float(each.max())) for each in ends)


def _folds(labels: Floats, groups: StepPlaces) -> Iterator[tuple[StepPlaces, StepPlaces]]:
    folds = min(CAMPAIGN_FOLDS, len(np.unique(groups[labels > 0])))
    if folds > 1:
        yield from GroupKFold(folds).split(labels, labels, groups)


def _design(curves: Sequence[Steps]) -> _Design:
    places = np.column_stack([each.places for each in curves])
    firsts = np.cumsum([0, *(each.bounds + 2 for each in curves)])
    rows = np.arange(0, places.size + 1, len(curves))
    steps = csr_matrix(
        (np.ones(places.size), (places + firsts[:-1]).ravel(), rows),
        shape=(len(places), firsts[-1]),
    )
    blocks = []
    for curve in curves:
        rises = np.tri(curve.bounds + 2, curve.bounds, -1)
        rises -= rises[curve.common]
        rises[-1] = 0
        missing = np.zeros((curve.bounds + 2, 2))
        missing[-1] = (1, -1)
        blocks.append(np.hstack([*(way * rises for way in curve.ways), missing]))
    adds = np.concatenate([each.max(axis=0) > 0 for each in blocks])
    return _Design(steps, block_diag(blocks, format="csr"), adds)


def _fitted(
    design: _Design,
    author: Floats,
    labels: Floats,
    sign_penalties: tuple[float, float],
    start: Floats | None,
) -> Floats:
    """The parameters of least loss: the baseline's change, then the rises. `sign_penalties` are those
    of what adds and of what takes."""
    up, down = sign_penalties
    penalties = np.concatenate(([0.0], np.where(design.adds, up, down)))
    payments_of, rises_of = design.steps.T.tocsr(), design.amounts.T.tocsr()

    def loss(found: Floats) -> tuple[float, Floats]:
        logits = author + found[0] + design.steps @ (design.amounts @ found[1:])
        residual = expit(logits) - labels
        gradient = np.concatenate(([residual.sum()], rises_of @ (payments_of @ residual)))
        unlikeliness = np.logaddexp(0.0, logits).sum() - labels @ logits
        price = penalties @ (found + SQUARE / 2 * found**2)
        return float(unlikeliness + price), gradient + penalties * (1 + SQUARE * found)

    begin = np.zeros(len(penalties)) if start is None else start
    bounds = [(None, None), *([(0.0, None)] * (len(penalties) - 1))]
    result = minimize(
        loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 150}
    )
    best: Floats = result.x
    return best


def _amounts(curves: Sequence[Steps], by_step: Floats) -> tuple[Amounts, ...]:
    """The amounts rounded towards zero to the digits that are written, so that they stay in bounds."""
    unit = 10.0**_DIGITS
    rounded = np.trunc(by_step * unit) / unit
    ends = np.cumsum([each.bounds + 2 for each in curves])
    parts = np.split(rounded, ends[:-1])
    return tuple(Amounts(each[:-1], float(each[-1])) for each in parts)
