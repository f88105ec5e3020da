"""A suggestion as a rule file: its conditions with what they stop, and tests made of real payments.

The values of a test are those that the conditions read, never an id, an address or a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tollkeeper.engine.offline.suggest.atoms import Atom
from tollkeeper.engine.offline.suggest.columns import (
    SuggestionColumn,
    lets_of,
    reads_velocity,
    suggestion_columns,
)
from tollkeeper.engine.offline.suggest.report import StoppedFigures
from tollkeeper.engine.offline.suggest.table import PaymentTable
from tollkeeper.grammar.formatter import format_file

SOMETHING = {"device": "device.fingerprint.id"}
"""What stands in a test for a group that is there."""


class WrittenCondition:
    """A condition's name and atoms, and what it stops later."""

    def __init__(self, name: str, atoms: Sequence[Atom]) -> None:
        self.name = name
        self.atoms = tuple(atoms)

    @property
    def text(self) -> str:
        return " and ".join(atom.text for atom in self.atoms)

    @property
    def met(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which payments meet it."""
        met = self.atoms[0].holds
        for atom in self.atoms[1:]:
            met = met & atom.holds
        return met


def name_conditions(conjunctions: Iterable[Sequence[Atom]]) -> list[WrittenCondition]:
    """Conditions with names that say what they are about."""
    found: list[WrittenCondition] = []
    for atoms in conjunctions:
        words = [atom.column.family.replace(" is missing", "") for atom in atoms]
        name = "_and_".join(word.replace(" ", "_").replace(".", "_") for word in words)
        same = sum(each.name.rstrip("_0123456789") == name for each in found)
        found.append(WrittenCondition(f"{name}_{same + 1}" if same else name, atoms))
    return found


def write_rule(
    name: str,
    action: str,
    table: PaymentTable,
    conditions: Sequence[WrittenCondition],
    figures: Sequence[StoppedFigures],
) -> str:
    """The formatted text; `figures` are what each condition stops later."""
    columns = list(dict.fromkeys(atom.column for each in conditions for atom in each.atoms))
    lets = lets_of(columns)
    lines = [f"rule {name}", ""]
    if lets or any(reads_velocity(column) for column in columns):
        lines += ["  use velocity", ""]
    lines += [f"  let {let} = {text}" for let, text in lets.items()]
    for condition, counted in zip(conditions, figures, strict=True):
        lines += ["", f"  # {describe(counted)}", f"  condition {condition.name}"]
        lines += [f"    when {condition.text}", f"    then {action}"]
    lines += ["", *_tests(action, table, conditions, columns)]
    return format_file("\n".join(lines) + "\n")


def describe(counted: StoppedFigures) -> str:
    """One line on what a condition stopped in time that was not learned from."""
    if counted.precision is None:
        return "In later time it met no payment."
    low, high = 100 * counted.precision_low, 100 * counted.precision_high
    incidents = "1 incident" if counted.incidents == 1 else f"{counted.incidents:,} incidents"
    return (
        f"In later time: {counted.stopped:,} stopped in {incidents}"
        f" ({100 * counted.recall:.1f} % of the fraud), {counted.people:,} honest payments met,"
        f" precision {100 * counted.precision:.1f} % ({low:.1f} to {high:.1f})."
    )


def _tests(
    action: str,
    table: PaymentTable,
    conditions: Sequence[WrittenCondition],
    columns: Sequence[SuggestionColumn],
) -> Iterator[str]:
    before = np.zeros(len(table), np.bool_)
    nearness = np.zeros(len(table), np.int64)
    for condition in conditions:
        first = np.flatnonzero(condition.met & ~before & table.fraud)
        before |= condition.met
        nearness += sum(atom.holds.astype(np.int64) for atom in condition.atoms)
        if len(first):
            yield from _test(f"caught: {condition.name}", table, int(first[-1]), columns)
            yield f"    expect {action} by {condition.name}"
    spared = np.flatnonzero(~before & ~table.fraud)
    for row in spared[np.argsort(-nearness[spared], kind="stable")][:1]:
        yield from _test("spared: the nearest honest payment", table, int(row), columns)
        yield "    expect default"


def _test(
    title: str, table: PaymentTable, row: int, columns: Sequence[SuggestionColumn]
) -> Iterator[str]:
    given = list(_given_lines(table, row, columns))
    yield ""
    yield f'  test "{title}"'
    if given:
        yield f"    given {', '.join(given)}"


def _given_lines(
    table: PaymentTable, row: int, columns: Sequence[SuggestionColumn]
) -> Iterator[str]:
    known = {each.name: each for each in suggestion_columns()}
    for name in dict.fromkeys(part for column in columns for part in _parts(column, known)):
        column, value = known[name], table.columns[name][row]
        if column.text.endswith(" is missing"):
            if value == 0.0:
                path = column.family
                yield f'{SOMETHING.get(path, path)} = "{_SHOWN.get(path, "x")}"'
        elif isinstance(value, str):
            yield f'{column.text} = "{value}"'
        elif value is not None and not np.isnan(value):
            yield f"{column.text} = {_literal(column, float(value))}"


_SHOWN = {"user.email": "someone@mail.example"}


def _parts(column: SuggestionColumn, known: dict[str, SuggestionColumn]) -> Iterator[str]:
    """The columns that a test gives for this one: the counts of a share, else itself."""
    counts = [word for word in (column.let or "").split() if word in known]
    yield from counts if column.name.startswith("declined_share") else [column.name]


def _literal(column: SuggestionColumn, value: float) -> str:
    if column.family in ("amount", "score"):
        return f"{value:.2f}"
    if column.family == column.name or column.name.startswith("the_client"):
        return "true" if value else "false"
    return f"{value:.0f}"
