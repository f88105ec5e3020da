"""A backtest's report as data: the output of `--json`, and the source of the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct

from tollkeeper.engine.instants import from_microseconds
from tollkeeper.engine.offline.backtest.compare import (
    AmountTally,
    Cell,
    ComparedPayment,
    Comparison,
    tallies_by,
)
from tollkeeper.engine.offline.backtest.compare import OutcomePair as Changed
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.grammar.program import Rule, Scorecard
from tollkeeper.grammar.types import Instant

FILES = "files"
"""Shown as the account's name when the history comes from files."""
SHOWN_MERCHANTS = 50
"""How many merchants, those with most payments, are listed."""


def count_payments(payments: int) -> str:
    """`1 payment`, `2,000 payments`."""
    return "1 payment" if payments == 1 else f"{payments:,} payments"


class PaymentTotals(Struct, frozen=True):
    """A number of payments; `amounts` are their sums by currency, as decimal text."""

    payments: int
    amounts: dict[str, str]


class ReportedExample(Struct, frozen=True):
    """`at` is RFC 3339, `score` from 0 to 1, `amount` decimal text."""

    id: str
    at: str
    score: float | None
    amount: str | None
    currency: str
    merchant: str


class ReportedOutcome(Struct, frozen=True):
    """An outcome; None is no recommendation, no rule, no condition."""

    action: str | None
    rule: str | None
    condition: str | None


UNRECORDED = "not recorded"
"""Shown as the action of payments without a recorded decision."""


class MovesBetweenActions(Struct, frozen=True):
    """Payments that would go from one action to another, or keep it."""

    was: str | None
    now: str | None
    payments: int
    amounts: dict[str, str]


class OutcomeChange(Struct, frozen=True):
    was: ReportedOutcome
    now: ReportedOutcome
    payments: int
    amounts: dict[str, str]
    examples: tuple[ReportedExample, ...]


class FirstChange(Struct, frozen=True):
    """The first payment of a change, shown before the report is complete."""

    was: ReportedOutcome
    now: ReportedOutcome
    example: ReportedExample


class UnrecordedDecisions(Struct, frozen=True):
    """The outcomes that payments without a recorded decision would get."""

    now: ReportedOutcome
    payments: int
    amounts: dict[str, str]
    examples: tuple[ReportedExample, ...]


class ConditionPart(Struct, frozen=True):
    """How many payments a condition decided, and would decide; None is "no condition"."""

    condition: str | None
    title: str | None
    action: str | None
    was: PaymentTotals
    now: PaymentTotals


class ReportGroup(Struct, frozen=True):
    """`value` is a merchant, a label or a final status; None for payments without one."""

    value: str | None
    payments: int
    moved: tuple[MovesBetweenActions, ...]


class Report(Struct, frozen=True):
    """`since` and `until` are RFC 3339. `compared` are the payments with a recorded decision,
    `changed` those of them with another action or condition; `decided` are the outcomes of the
    others.

    `statuses` covers only the payments in `changes` and `decided`. `notes` are about limits of the
    figures.
    """

    candidate: str
    kind: str
    account: str
    since: str
    until: str
    payments: PaymentTotals
    compared: PaymentTotals
    changed: PaymentTotals
    actions: tuple[MovesBetweenActions, ...]
    changes: tuple[OutcomeChange, ...]
    decided: tuple[UnrecordedDecisions, ...]
    conditions: tuple[ConditionPart, ...]
    merchants: tuple[ReportGroup, ...]
    statuses: tuple[ReportGroup, ...]
    labels: tuple[ReportGroup, ...]
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
    compared = {cell: tally for cell, tally in cells.items() if cell.was is not None}
    changed = {cell: tally for cell, tally in compared.items() if cell.changed}
    unrecorded = {cell: tally for cell, tally in cells.items() if cell.was is None}
    return Report(
        candidate=program.name,
        kind="rule" if isinstance(program, Rule) else "scorecard",
        account=account,
        since=written_value(period[0], Instant()),
        until=written_value(period[1], Instant()),
        payments=_part(cells),
        compared=_part(compared),
        changed=_part(changed),
        actions=_moved_payments(cells),
        changes=tuple(_changes(changed, found.examples)),
        decided=tuple(_unrecorded_decisions(unrecorded, found.examples)),
        conditions=_conditions(program, compared, cells),
        merchants=_groups(cells, lambda cell: cell.merchant, SHOWN_MERCHANTS),
        statuses=_groups({**changed, **unrecorded}, lambda cell: cell.status),
        labels=_groups(cells, lambda cell: cell.label) if any(c.label for c in cells) else (),
        notes=tuple(notes),
    )


def _part(cells: Mapping[Cell, AmountTally]) -> PaymentTotals:
    for _, by_currency in tallies_by(cells, lambda _cell: None):
        return PaymentTotals(_payments(by_currency), _amounts(by_currency))
    return PaymentTotals(0, {})


def _payments(by_currency: Mapping[str, AmountTally]) -> int:
    return sum(tally.payments for tally in by_currency.values())


def _amounts(by_currency: Mapping[str, AmountTally]) -> dict[str, str]:
    return {currency: _decimal(tally.hundredths) for currency, tally in sorted(by_currency.items())}


def _decimal(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02}"


def _moved_payments(cells: Mapping[Cell, AmountTally]) -> tuple[MovesBetweenActions, ...]:
    by_actions = tallies_by(
        cells, lambda cell: (cell.was.action if cell.was else UNRECORDED, cell.now.action)
    )
    return tuple(
        MovesBetweenActions(was, now, _payments(each), _amounts(each))
        for (was, now), each in by_actions
    )


def _changes(
    changed: Mapping[Cell, AmountTally], examples: Mapping[Changed, Sequence[ComparedPayment]]
) -> list[OutcomeChange]:
    return [
        OutcomeChange(
            was=ReportedOutcome(*was),
            now=ReportedOutcome(*now),
            payments=_payments(each),
            amounts=_amounts(each),
            examples=tuple(map(_show_example, reversed(examples[was, now]))),
        )
        for (was, now), each in tallies_by(changed, lambda cell: (cell.was, cell.now))
    ]


def _unrecorded_decisions(
    unrecorded: Mapping[Cell, AmountTally], examples: Mapping[Changed, Sequence[ComparedPayment]]
) -> list[UnrecordedDecisions]:
    return [
        UnrecordedDecisions(
            now=ReportedOutcome(*now),
            payments=_payments(each),
            amounts=_amounts(each),
            examples=tuple(map(_show_example, reversed(examples[None, now]))),
        )
        for now, each in tallies_by(unrecorded, lambda cell: cell.now)
    ]


def first_change(change: Changed, payment: ComparedPayment) -> FirstChange:
    """The report of a change's first payment."""
    was, now = change
    assert was is not None
    return FirstChange(ReportedOutcome(*was), ReportedOutcome(*now), _show_example(payment))


def _show_example(example: ComparedPayment) -> ReportedExample:
    return ReportedExample(
        id=example.id,
        at=from_microseconds(example.arrived).isoformat(timespec="seconds"),
        score=None if example.score is None else example.score / 100,
        amount=None if example.hundredths is None else _decimal(example.hundredths),
        currency=example.currency,
        merchant=example.merchant,
    )


def _conditions(
    program: Rule | Scorecard,
    compared: Mapping[Cell, AmountTally],
    cells: Mapping[Cell, AmountTally],
) -> tuple[ConditionPart, ...]:
    """The candidate's conditions in order, then other recorded ones, then "no condition"."""
    before = dict(tallies_by(compared, lambda cell: cell.was.condition))
    after = dict(tallies_by(cells, lambda cell: cell.now.condition))
    own = {each.name: each for each in program.conditions} if isinstance(program, Rule) else {}
    others = sorted(name for name in {*before, *after} - own.keys() if name is not None)
    nothing: dict[str, AmountTally] = {}

    def part(name: str | None) -> ConditionPart:
        was, now = before.get(name, nothing), after.get(name, nothing)
        condition = own.get(name) if name is not None else None
        return ConditionPart(
            condition=name,
            title=None if condition is None else condition.title,
            action=None if condition is None else condition.action,
            was=PaymentTotals(_payments(was), _amounts(was)),
            now=PaymentTotals(_payments(now), _amounts(now)),
        )

    return tuple(part(name) for name in (*own, *others, None))


def _groups(
    cells: Mapping[Cell, AmountTally], key: Callable[[Cell], Any], most: int | None = None
) -> tuple[ReportGroup, ...]:
    """The groups by `key`, the largest first."""
    groups: defaultdict[Any, dict[Cell, AmountTally]] = defaultdict(dict)
    for cell, tally in cells.items():
        groups[key(cell)][cell] = tally
    return tuple(
        ReportGroup(value, _payments(each), _moved_payments(groups[value]))
        for value, each in islice(tallies_by(cells, key), most)
    )
