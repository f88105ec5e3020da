"""Count what conditions stop, in the learned period and in a later one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tollkeeper.engine.offline.suggest.incidents import incidents
from tollkeeper.engine.offline.suggest.report import StoppedFigures
from tollkeeper.engine.offline.suggest.search import wilson
from tollkeeper.engine.offline.suggest.table import PaymentTable


def count_stopped(
    table: PaymentTable,
    rows: np.ndarray[Any, Any],
    met: np.ndarray[Any, np.dtype[np.bool_]],
    before: np.ndarray[Any, np.dtype[np.bool_]],
) -> StoppedFigures:
    """The figures of the payments at `rows` that are `met`; those in `before` are met by earlier
    conditions."""
    inside = np.zeros(len(table), np.bool_)
    inside[rows] = True
    met = met & inside
    bad, good = met & table.fraud, met & ~table.fraud
    stopped, people = int(bad.sum()), int(good.sum())
    chosen = np.flatnonzero(bad)
    money: Counter[str] = Counter()
    for row in chosen:
        money[table.currencies[row]] += int(table.hundredths[row])
    linked = incidents(table.arrived[chosen].tolist(), [table.linking[row] for row in chosen])
    return StoppedFigures(
        stopped=stopped,
        people=people,
        incidents=len(set(linked.tolist())),
        recall=stopped / max(1, int((table.fraud & inside).sum())),
        precision=stopped / (stopped + people) if stopped + people else None,
        precision_low=wilson(stopped, stopped + people),
        precision_high=wilson(stopped, stopped + people, 1),
        adds=int((bad & ~before).sum()),
        beyond_today=int((bad & ~table.denied).sum()),
        money=dict(money),
    )
