"""Comparisons of one column with a number that a person would write."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from tollkeeper.engine.offline.suggest.columns import SuggestionColumn, suggestion_columns
from tollkeeper.engine.offline.suggest.table import PaymentTable

_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
_SHARES = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.8, 0.9)
_AMOUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_SCORES = tuple(round(0.05 * step, 2) for step in range(1, 20))
_BOTH_WAYS = frozenset({"amount", "score"})
_MOST_VALUES = 12
"""Texts with more different values than this identify people, not kinds of payments."""


class Atom(NamedTuple):
    """`holds` says for each payment whether the comparison is definitely true."""

    text: str
    column: SuggestionColumn
    holds: np.ndarray[Any, np.dtype[np.bool_]]


def atoms_of(table: PaymentTable, least: int, without: Collection[str]) -> list[Atom]:
    """The comparisons that hold for at least `least` fraudulent payments, and not for all payments.

    Columns of the families `without` are left out. Of several that hold for the same payments the
    first is taken.
    """
    found: dict[bytes, Atom] = {}
    for column in suggestion_columns():
        if column.family in without:
            continue
        for atom in _atoms_of_column(column, table.columns[column.name]):
            if int((atom.holds & table.fraud).sum()) >= least and not atom.holds.all():
                found.setdefault(np.packbits(atom.holds).tobytes(), atom)
    return list(found.values())


def _atoms_of_column(column: SuggestionColumn, values: np.ndarray[Any, Any]) -> Iterator[Atom]:
    if values.dtype == object:
        different = sorted({each for each in values if each is not None})
        if len(different) <= _MOST_VALUES:
            for value in different:
                yield Atom(f'{column.text} == "{value}"', column, values == value)
        return
    if set(np.unique(values[~np.isnan(values)])) <= {0.0, 1.0} and _is_flag(column):
        if column.name.startswith("the_"):
            yield Atom(f"{column.text} == true", column, values == 1.0)
            yield Atom(f"{column.text} == false", column, values == 0.0)
        else:
            yield Atom(column.text, column, values == 1.0)
        return
    for threshold in _thresholds(column):
        written = f"{threshold:g}" if column.family != "amount" else f"{threshold}"
        yield Atom(f"{column.text} >= {written}", column, values >= threshold)
        if column.family in _BOTH_WAYS:
            yield Atom(f"{column.text} < {written}", column, values < threshold)


def _is_flag(column: SuggestionColumn) -> bool:
    return column.family == column.name or column.name.startswith(("no_", "the_client"))


def _thresholds(column: SuggestionColumn) -> tuple[float, ...]:
    if column.name.startswith("declined_share"):
        return _SHARES
    if column.family == "score":
        return _SCORES
    return _AMOUNTS if column.family == "amount" else _COUNTS
