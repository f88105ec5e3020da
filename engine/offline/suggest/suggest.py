"""From a labelled history to a rule file: learn, prune and judge once, each on a period of its own."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from tollkeeper.engine.offline.suggest.atoms import Atom, atoms_of
from tollkeeper.engine.offline.suggest.incidents import incidents
from tollkeeper.engine.offline.suggest.judge import count_stopped
from tollkeeper.engine.offline.suggest.report import SuggestedCondition, Suggestion
from tollkeeper.engine.offline.suggest.search import (
    Conjunction,
    SearchAims,
    SearchSpace,
    chance,
    cover,
)
from tollkeeper.engine.offline.suggest.table import PaymentTable
from tollkeeper.engine.offline.suggest.write import name_conditions, write_rule
from tollkeeper.engine.progress import Progress

_LEARNED, _PRUNED = 0.6, 0.8
"""The ends of the learned and of the pruned period, as shares of the payments by arrival."""
_PARTS, _QUIET = 8, 2
"""The time before judging is cut into this many parts, and this many are its quietest."""


def suggest(
    table: PaymentTable, aims: SearchAims, name: str, action: str, progress: Progress
) -> Suggestion:
    """Conditions for a rule `name` that would take `action`, from payments in order of arrival."""
    rows = np.arange(len(table))
    learned = rows[: int(_LEARNED * len(rows))]
    pruning = rows[len(learned) : int(_PRUNED * len(rows))]
    later = rows[int(_PRUNED * len(rows)) :]
    atoms = atoms_of(table, aims.incidents, aims.without)
    found = _search(table, atoms, learned, pruning, aims, progress)
    kept = name_conditions(found.taken)
    conditions: list[SuggestedCondition] = []
    before = np.zeros(len(table), np.bool_)
    for each in kept:
        figures = (count_stopped(table, span, each.met, before) for span in (learned, later))
        conditions.append(SuggestedCondition(each.name, each.text, *figures))
        before |= each.met
    counted = [each.later for each in conditions]
    return Suggestion(
        text=write_rule(name, action, table, kept, counted) if kept else "",
        conditions=tuple(conditions),
        together=count_stopped(table, later, before, np.zeros(len(table), np.bool_)),
        payments=len(table),
        frauds=int(table.fraud.sum()),
        incidents=len(set(_incidents(table, np.flatnonzero(table.fraud)).tolist())),
        floor=found.floor,
        dropped=tuple(each.text for each in name_conditions(found.dropped)),
        set_aside=table.set_aside,
        judged_since=int(table.arrived[later[0]]),
    )


def quiet_share(fraud: np.ndarray[Any, np.dtype[np.bool_]]) -> float:
    """The share of fraud in the quietest quarter of the payments, found among eighths of them."""
    shares = [float(part.mean()) for part in np.array_split(fraud, _PARTS) if len(part)]
    return mean(sorted(shares)[:_QUIET])


def holds_when_quiet(
    met: np.ndarray[Any, np.dtype[np.bool_]],
    fraud: np.ndarray[Any, np.dtype[np.bool_]],
    quiet: float,
    precision: float,
) -> bool:
    """Whether the payments `met` contain fraud, and with this precision even if only the share
    `quiet` of all payments were fraud: precision in a loud campaign must not hide false positives
    in quiet times."""
    stopped, people = int((met & fraud).sum()), int((met & ~fraud).sum())
    # Both as shares of their kind, over a common denominator, so that nothing is divided by zero.
    stops = quiet * stopped * int((~fraud).sum())
    meets = (1 - quiet) * people * int(fraud.sum())
    return stopped > 0 and stops >= precision * (stops + meets)


class _Search(NamedTuple):
    """The conjunctions that hold and those that fail, and the worth of one by chance."""

    taken: list[list[Atom]]
    dropped: list[list[Atom]]
    floor: float


def _search(
    table: PaymentTable,
    atoms: list[Atom],
    learned: np.ndarray[Any, Any],
    pruning: np.ndarray[Any, Any],
    aims: SearchAims,
    progress: Progress,
) -> _Search:
    fraud = table.fraud[learned]
    if not atoms or not fraud.any() or fraud.all():
        return _Search([], [], 0.0)

    def space_of(labels: np.ndarray[Any, Any]) -> SearchSpace:
        bad = learned[labels]
        return SearchSpace(atoms, learned, labels, _incidents(table, bad))

    def met_in_pruning(conjunction: Conjunction) -> np.ndarray[Any, Any]:
        met: np.ndarray[Any, Any] = np.logical_and.reduce(
            [atoms[index].holds[pruning] for index in conjunction.atoms]
        )
        return met

    quiet = quiet_share(table.fraud[np.concatenate([learned, pruning])])

    def holds(conjunction: Conjunction, before: Sequence[Conjunction]) -> bool:
        met = met_in_pruning(conjunction)
        for each in before:
            met = met & ~met_in_pruning(each)
        return holds_when_quiet(met, table.fraud[pruning], quiet, aims.precision)

    floor = chance(space_of, fraud, aims)
    found = cover(space_of(fraud), aims, floor, holds, progress)
    taken, dropped = (
        [[atoms[index] for index in each.atoms] for each in several] for several in found
    )
    return _Search(taken, dropped, floor)


def _incidents(table: PaymentTable, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return incidents(table.arrived[rows].tolist(), [table.linking[row] for row in rows])
