"""Count what would change: from which outcome to which, for how many payments and how much money."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec import Struct

from tollkeeper.engine.offline.backtest.candidate import CandidateOutcome, outcome_of
from tollkeeper.engine.offline.backtest.replay import ReplayedPayment, StatusUpdate

SHOWN_EXAMPLES = 5
"""How many payments, the latest, are shown of each change."""

Labels: TypeAlias = Mapping[str, str]
"""The present labels of payments by id: "fraud", "chargeback", "genuine"."""


class AmountTally(Struct, gc=False):
    """How many payments, and how much money (in hundredths)."""

    payments: int = 0
    hundredths: int = 0

    def add(self, other: AmountTally) -> None:
        self.payments += other.payments
        self.hundredths += other.hundredths


class Cell(Struct, frozen=True):
    """A group of payments that are equal in all of these.

    `was` is None when no decision is recorded. The final `status` is set for these, and for
    payments whose outcome changes.
    """

    was: CandidateOutcome | None
    now: CandidateOutcome
    currency: str
    merchant: str
    label: str | None
    status: str | None = None

    @property
    def changed(self) -> bool:
        """Whether the action or the condition would be different."""
        was = self.was
        return was is not None and (was.action, was.condition) != (
            self.now.action,
            self.now.condition,
        )


class ComparedPayment(Struct, frozen=True):
    """`arrived` in µs, `score` and `hundredths` in hundredths."""

    id: str
    arrived: int
    score: int | None
    hundredths: int | None
    currency: str
    merchant: str


OutcomePair: TypeAlias = tuple[CandidateOutcome | None, CandidateOutcome]
ShowFirst: TypeAlias = Callable[[OutcomePair, ComparedPayment], None]
"""Called with the first payment of an outcome that changes, as soon as it is decided."""


def unshown(_pair: OutcomePair, _payment: ComparedPayment) -> None:
    """For callers that don't show first payments."""


@dataclass(slots=True)
class Comparison:
    """`lost` counts payments decided without an exact window, `scoreless` those without a recorded
    score.

    `first` and `last` (µs) are when the first and the last of the payments arrived.
    """

    cells: dict[Cell, AmountTally] = field(default_factory=dict)
    examples: dict[OutcomePair, list[ComparedPayment]] = field(default_factory=dict)
    lost: int = 0
    scoreless: int = 0
    first: int | None = None
    last: int | None = None


def compare_outcomes(
    replayed: Iterable[ReplayedPayment | StatusUpdate],
    labels: Labels,
    show_first: ShowFirst = unshown,
) -> Comparison:
    """Count every payment once; under its final status, where that is needed."""
    found = Comparison()
    tallies: dict[tuple[Any, ...], AmountTally] = {}
    followed: dict[str, tuple[Cell, int]] = {}
    examples: defaultdict[OutcomePair, list[ComparedPayment]] = defaultdict(list)
    for each in replayed:
        if isinstance(each, StatusUpdate):
            if each.id in followed:
                cell, hundredths = followed[each.id]
                followed[each.id] = (_with_status(cell, each.status), hundredths)
            continue
        if found.first is None:
            found.first = each.arrived
        found.last = each.arrived
        if each.score is None:
            found.scoreless += 1
        facts, decided, now = each.facts, each.was, each.now
        was = None
        if decided is not None:
            was = outcome_of(decided)
            if decided.lost:
                found.lost += 1
        payment = facts.payment
        currency, merchant = payment.currency, payment.merchant.id
        label = labels.get(each.id) if labels else None
        amount = facts.amount or 0
        if was is None or was.action != now.action or was.condition != now.condition:
            cell = Cell(was, now, currency, merchant, label, payment.status)
            followed[each.id] = (cell, amount)
            shown = examples[was, now]
            shown.append(_comparable(each))
            if was is not None and len(shown) == 1:
                show_first((was, now), shown[0])
            del shown[:-SHOWN_EXAMPLES]
            continue
        key = (was, now, currency, merchant, label)
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = AmountTally()
        tally.payments += 1
        tally.hundredths += amount
    for alike, tally in tallies.items():
        found.cells[Cell(*alike)] = tally
    for cell, hundredths in followed.values():
        found.cells.setdefault(cell, AmountTally()).add(AmountTally(1, hundredths))
    found.examples = dict(examples)
    return found


def _with_status(cell: Cell, status: str) -> Cell:
    return Cell(cell.was, cell.now, cell.currency, cell.merchant, cell.label, status)


def _comparable(replayed: ReplayedPayment) -> ComparedPayment:
    facts = replayed.facts
    return ComparedPayment(
        id=replayed.id,
        arrived=replayed.arrived,
        score=replayed.score,
        hundredths=facts.amount,
        currency=facts.payment.currency,
        merchant=facts.payment.merchant.id,
    )


def tallies_by(
    cells: Mapping[Cell, AmountTally], key: Any
) -> Iterator[tuple[Any, dict[str, AmountTally]]]:
    """The tallies by `key` of a cell and then by currency, the largest groups first."""
    groups: defaultdict[Any, dict[str, AmountTally]] = defaultdict(dict)
    for cell, tally in cells.items():
        groups[key(cell)].setdefault(cell.currency, AmountTally()).add(tally)
    yield from sorted(
        groups.items(),
        key=lambda group: (-sum(each.payments for each in group[1].values()), str(group[0])),
    )
