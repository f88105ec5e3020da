"""How every benchmark prints: GitHub tables in a pipe, drawn ones on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

Cell = str | int | float | None


class Target(NamedTuple):
    """The aim for a figure, and its value; exactly one of the bounds is given."""

    name: str
    found: float
    at_most: float | None = None
    at_least: float | None = None

    def met(self) -> bool:
        if self.at_most is not None:
            return self.found <= self.at_most
        return self.at_least is not None and self.found >= self.at_least

    def bound(self) -> str:
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return f"≥ {self.at_least:g}"


def show(title: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table. The first column names the row; the others are figures."""
    cells = [[text(cell) for cell in row] for row in rows]
    console = Console()
    if console.is_terminal:
        table = Table(title=title, title_justify="left")
        for position, name in enumerate(head):
            table.add_column(name, justify="right" if position else "left")
        for row in cells:
            table.add_row(*row)
        console.print(table)
        return
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *cells]
    print(f"**{title}**\n")
    print("\n".join(f"| {' | '.join(line)} |" for line in lines), flush=True)
    print()


def show_targets(targets: Iterable[Target]) -> None:
    """Print aims, values, and whether they are met."""
    show(
        "Targets",
        ["", "measured", "target", "met"],
        [(each.name, each.found, each.bound(), "yes" if each.met() else "no") for each in targets],
    )


def text(cell: Cell) -> str:
    """Return a figure with a sensible number of digits."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 100:
        return f"{cell:,.0f}"
    return f"{cell:.1f}" if abs(cell) >= 10 else f"{cell:.2f}"
