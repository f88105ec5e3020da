"""From a labelled history to a rule file: learn, prune, judge once, each on time of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tollkeeper.engine.offline.suggest.atoms import Atom, atoms_of
from tollkeeper.engine.offline.suggest.incidents import incidents
from tollkeeper.engine.offline.suggest.judge import count_stopped
from tollkeeper.engine.offline.suggest.report import SuggestedCondition, Suggestion
from tollkeeper.engine.offline.suggest.search import SearchAims, SearchSpace, chance, cover
from tollkeeper.engine.offline.suggest.table import PaymentTable
from tollkeeper.engine.offline.suggest.write import WrittenCondition, name_conditions, write_rule
from tollkeeper.engine.progress import Progress

_SPARE = 2
"""So many times the conditions that are wanted are learned, as some are pruned."""
_LEARNED, _PRUNED = 0.6, 0.8
"""What comes before these shares of the payments, in the order of their arrival."""


def suggest(
    table: PaymentTable, aims: SearchAims, name: str, action: str, progress: Progress
) -> Suggestion:
    """Conditions for a rule `name` that would take `action`, from payments in order of arrival."""
    rows = np.arange(len(table))
    learned = rows[: int(_LEARNED * len(rows))]
    pruning = rows[len(learned) : int(_PRUNED * len(rows))]
    later = rows[int(_PRUNED * len(rows)) :]
    atoms = atoms_of(table, aims.incidents, aims.without)
    found, floor = _search(table, atoms, learned, aims, progress)
    kept, dropped = _prune(table, name_conditions(found), pruning, aims)
    kept = kept[: aims.conditions]
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
        floor=floor,
        dropped=tuple(each.text for each in dropped),
        set_aside=table.set_aside,
        judged_since=int(table.arrived[later[0]]),
    )


def _search(
    table: PaymentTable,
    atoms: list[Atom],
    learned: np.ndarray[Any, Any],
    aims: SearchAims,
    progress: Progress,
) -> tuple[list[list[Atom]], float]:
    """The conjunctions that are worth more than chance gives, and what that is."""
    fraud = table.fraud[learned]
    if not atoms or not fraud.any() or fraud.all():
        return [], 0.0

    def space_of(labels: np.ndarray[Any, Any]) -> SearchSpace:
        bad = learned[labels]
        return SearchSpace(atoms, learned, labels, _incidents(table, bad))

    floor = chance(space_of, fraud, aims)
    found = cover(
        space_of(fraud), replace(aims, conditions=_SPARE * aims.conditions), floor, progress
    )
    return [[atoms[index] for index in each.atoms] for each in found], floor


def _prune(
    table: PaymentTable,
    conditions: list[WrittenCondition],
    pruning: np.ndarray[Any, Any],
    aims: SearchAims,
) -> tuple[list[WrittenCondition], list[WrittenCondition]]:
    """Those that still stop fraud and spare people, and the others."""
    kept: list[WrittenCondition] = []
    dropped: list[WrittenCondition] = []
    before = np.zeros(len(table), np.bool_)
    for each in conditions:
        counted = count_stopped(table, pruning, each.met & ~before, before)
        if counted.precision is None or counted.precision < aims.precision:
            dropped.append(each)
        else:
            kept.append(each)
            before |= each.met
    return kept, dropped


def _incidents(table: PaymentTable, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return incidents(table.arrived[rows].tolist(), [table.linking[row] for row in rows])
