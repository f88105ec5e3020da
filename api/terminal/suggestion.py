"""A suggestion on a terminal: what each condition stops in the held-back part of history."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tollkeeper.engine.offline.backtest.report import Report
from tollkeeper.engine.offline.suggest.report import StoppedFigures, Suggestion

_SET_ASIDE = {
    "denied": "that were denied, and so have no outcome",
    "old": "older than the newest of the most that are learned from",
    "unsure": "whose label is not sure",
    "young": "that are too young, as not all of them have a label",
}
_TITLES = ("condition", "stopped", "incidents", "adds", "people", "precision", "recall")


def draw_suggestion(found: Suggestion, by_score: float | None) -> RenderableType:
    """Draw the conditions as rows, then what was learned from and what was left out."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in _TITLES:
        is_name = title == "condition"
        table.add_column(
            title,
            justify="left" if is_name else "right",
            overflow="fold" if is_name else "ellipsis",
        )
    for each in found.conditions:
        table.add_row(Text(each.name), *_cells(each.later))
    if found.conditions:
        table.add_row(Text("all together", style="bold"), *_cells(found.together))
    return Group(table, Text("\n".join(["", *_words(found, by_score), ""])))


def _cells(counted: StoppedFigures) -> tuple[str, ...]:
    low, high = 100 * counted.precision_low, 100 * counted.precision_high
    shown = "" if counted.precision is None else f"{100 * counted.precision:.1f} %"
    return (
        f"{counted.stopped:,}",
        f"{counted.incidents:,}",
        f"{counted.adds:,}",
        f"{counted.people:,}",
        f"{shown} ({low:.0f}-{high:.0f})",
        f"{100 * counted.recall:.1f} %",
    )


def _words(found: Suggestion, by_score: float | None) -> Iterator[str]:
    yield (
        f"{found.payments:,} payments, {found.frauds:,} of them fraud in {found.incidents:,}"
        " incidents; the figures are those of the last fifth, which was not learned from"
    )
    together = found.together
    if found.conditions and not together.stopped:
        yield "together they stop nothing in that time: try them in shadow, or learn from more of it"
    elif found.conditions:
        money = [f"{value / 100:,.2f} {name}" for name, value in sorted(together.money.items())]
        yield (
            f"together they stop {' and '.join(money)};"
            f" {together.beyond_today:,} of these payments were not denied when they came"
        )
    if found.backtest is not None:
        yield _backtest_words(found.backtest)
    yield from _proof_words(found)
    if by_score is not None:
        yield f"there are no labels in it: a score of {by_score:g} and more was taken for fraud"
    for why, count in found.set_aside.items():
        yield f"set aside: {count:,} {_SET_ASIDE[why]}"
    for text in found.dropped:
        yield f"dropped, as it did not hold in later time: {text}"
    if not found.conditions:
        yield "nothing to suggest: no condition holds, or none is worth more than chance gives"


def _backtest_words(report: Report) -> str:
    if not report.payments.payments:
        return f"the file in a backtest of that time: {'; '.join(report.notes)}"
    met = sum(each.now.payments for each in report.conditions if each.condition is not None)
    return (
        f"the file in a backtest of that time: {met:,} of {report.payments.payments:,} payments are"
        " met by its conditions, labelled or not"
    )


def _proof_words(found: Suggestion) -> Iterator[str]:
    for each in found.proved:
        if each.reached != "proved":
            yield f"not proved: that a payment is decided by {each.name}"
        elif each.beyond == "refuted":
            yield f"{each.name} adds nothing: what is active takes the same action on all it meets"
        elif each.beyond == "not proved":
            yield f"not proved: that {each.name} meets more than what is active"
    held = [each for each in found.proved if each.reached == each.beyond == "proved"]
    if held and len(held) == len(found.proved):
        yield "proved: each condition decides payments that no condition before it, and nothing that is active, does"
