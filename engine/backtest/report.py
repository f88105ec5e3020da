"""A backtest's outcome as data: the form of `--json`, and what the page is drawn from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct

from tollkeeper.engine.backtest.candidate import Outcome
from tollkeeper.engine.backtest.compare import Cell, Comparison, Example, Tally, grouped
from tollkeeper.engine.compile.shown import shown
from tollkeeper.engine.instants import from_microseconds
from tollkeeper.grammar.program import Rule, Scorecard
from tollkeeper.grammar.types import Instant

MERCHANTS = 50
"""How many merchants are listed, those with most payments."""


class Part(Struct, frozen=True):
    """So many payments; `amounts` are their sums by currency, as decimal text."""

    payments: int
    amounts: dict[str, str]


class Shown(Struct, frozen=True):
    """`at` is RFC 3339, `score` from 0 to 1, `amount` decimal text."""

    id: str
    at: str
    score: float | None
    amount: str | None
    currency: str
    merchant: str


class Result(Struct, frozen=True):
    """An outcome: None stands for no recommendation, no rule, no condition."""

    action: str | None
    rule: str | None
    condition: str | None


class Moved(Struct, frozen=True):
    """Payments that went from one action to another, or stayed with it."""

    was: str | None
    now: str | None
    payments: int
    amounts: dict[str, str]


class Change(Struct, frozen=True):
    was: Result
    now: Result
    payments: int
    amounts: dict[str, str]
    examples: tuple[Shown, ...]


class ConditionPart(Struct, frozen=True):
    """What a condition met, and would meet; `condition` None is none of them."""

    condition: str | None
    title: str | None
    action: str | None
    was: Part
    now: Part


class Group(Struct, frozen=True):
    """`value` is a merchant, a label or a final status; None is a payment without one."""

    value: str | None
    payments: int
    moved: tuple[Moved, ...]


class Report(Struct, frozen=True):
    """`since` and `until` are RFC 3339. `changed` counts other actions or conditions.

    `statuses` are those of changed payments alone. `notes` say what a reader should know before
    trusting the figures.
    """

    candidate: str
    kind: str
    account: str
    since: str
    until: str
    payments: Part
    changed: Part
    actions: tuple[Moved, ...]
    changes: tuple[Change, ...]
    conditions: tuple[ConditionPart, ...]
    merchants: tuple[Group, ...]
    statuses: tuple[Group, ...]
    labels: tuple[Group, ...]
    notes: tuple[str, ...]


def report_of(
    program: Rule | Scorecard,
    account: str,
    period: tuple[int, int],
    found: Comparison,
    notes: Sequence[str],
) -> Report:
    """`period` in µs."""
    cells = found.cells
    changed = {cell: tally for cell, tally in cells.items() if cell.changed}
    return Report(
        candidate=program.name,
        kind="rule" if isinstance(program, Rule) else "scorecard",
        account=account,
        since=shown(period[0], Instant()),
        until=shown(period[1], Instant()),
        payments=_part(cells),
        changed=_part(changed),
        actions=_moved(cells),
        changes=tuple(_changes(changed, found.examples)),
        conditions=_conditions(program, cells),
        merchants=_groups(cells, lambda cell: cell.merchant, MERCHANTS),
        statuses=_groups(changed, lambda cell: cell.status),
        labels=_groups(cells, lambda cell: cell.label) if any(c.label for c in cells) else (),
        notes=tuple(notes),
    )


def summary(report: Report) -> list[str]:
    """The report in a few lines of Markdown, for a pull request."""
    total, changed = report.payments.payments, report.changed.payments
    share = f" ({changed / total:.2%})" if total else ""
    period = f"from {report.since[:10]} to {report.until[:10]}"
    would = f"**{changed:,}{share} would change**"
    lines = [f"**{report.candidate}** over {total:,} payments {period}: {would}"]
    if report.changes:
        lines += ["", "| was | would be | payments | amount |", "|---|---|--:|--:|"]
        lines += [
            f"| {result_text(each.was)} | {result_text(each.now)} | {each.payments:,}"
            f" | {amounts_text(each.amounts)} |"
            for each in report.changes
        ]
    return [*lines, *(f"\n> {note}" for note in report.notes)]


def result_text(result: Result) -> str:
    """`deny by card_testing`."""
    action = result.action or "no recommendation"
    return action if result.condition is None else f"{action} by {result.condition}"


def amounts_text(amounts: Mapping[str, str]) -> str:
    """`12,400.00 BRL, 310.50 USD`."""
    return ", ".join(f"{_thousands(text)} {currency}" for currency, text in amounts.items())


def _thousands(text: str) -> str:
    units, _, hundredths = text.partition(".")
    return f"{int(units):,}.{hundredths}"


def _part(cells: Mapping[Cell, Tally]) -> Part:
    for _, by_currency in grouped(cells, lambda _cell: None):
        return Part(_payments(by_currency), _amounts(by_currency))
    return Part(0, {})


def _payments(by_currency: Mapping[str, Tally]) -> int:
    return sum(tally.payments for tally in by_currency.values())


def _amounts(by_currency: Mapping[str, Tally]) -> dict[str, str]:
    return {currency: _decimal(tally.hundredths) for currency, tally in sorted(by_currency.items())}


def _decimal(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02}"


def _moved(cells: Mapping[Cell, Tally]) -> tuple[Moved, ...]:
    by_actions = grouped(cells, lambda cell: (cell.was and cell.was.action, cell.now.action))
    return tuple(
        Moved(was, now, _payments(each), _amounts(each)) for (was, now), each in by_actions
    )


def _changes(
    changed: Mapping[Cell, Tally], examples: Mapping[tuple[Outcome, Outcome], Sequence[Example]]
) -> list[Change]:
    return [
        Change(
            was=Result(*was),
            now=Result(*now),
            payments=_payments(each),
            amounts=_amounts(each),
            examples=tuple(map(_shown, reversed(examples[was, now]))),
        )
        for (was, now), each in grouped(changed, lambda cell: (cell.was, cell.now))
    ]


def _shown(example: Example) -> Shown:
    return Shown(
        id=example.id,
        at=from_microseconds(example.arrived).isoformat(timespec="seconds"),
        score=None if example.score is None else example.score / 100,
        amount=None if example.hundredths is None else _decimal(example.hundredths),
        currency=example.currency,
        merchant=example.merchant,
    )


def _conditions(
    program: Rule | Scorecard, cells: Mapping[Cell, Tally]
) -> tuple[ConditionPart, ...]:
    """The candidate's conditions in order, then others that were met, then none."""
    before = dict(grouped(cells, lambda cell: cell.was and cell.was.condition))
    after = dict(grouped(cells, lambda cell: cell.now.condition))
    own = {each.name: each for each in program.conditions} if isinstance(program, Rule) else {}
    others = sorted(name for name in {*before, *after} - own.keys() if name is not None)
    nothing: dict[str, Tally] = {}

    def part(name: str | None) -> ConditionPart:
        was, now = before.get(name, nothing), after.get(name, nothing)
        condition = own.get(name) if name is not None else None
        return ConditionPart(
            condition=name,
            title=None if condition is None else condition.title,
            action=None if condition is None else condition.action,
            was=Part(_payments(was), _amounts(was)),
            now=Part(_payments(now), _amounts(now)),
        )

    return tuple(part(name) for name in (*own, *others, None))


def _groups(
    cells: Mapping[Cell, Tally], key: Callable[[Cell], Any], most: int | None = None
) -> tuple[Group, ...]:
    """The groups by `key`, those with most payments first."""
    groups: defaultdict[Any, dict[Cell, Tally]] = defaultdict(dict)
    for cell, tally in cells.items():
        groups[key(cell)][cell] = tally
    return tuple(
        Group(value, _payments(each), _moved(groups[value]))
        for value, each in islice(grouped(cells, key), most)
    )
