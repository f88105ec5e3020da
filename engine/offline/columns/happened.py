"""An export's payments, updates and labels in the order in which they happened."""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of numbers

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tollkeeper.engine.decision import AppliedRule
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.reads import TIME_TO_ARRIVAL
from tollkeeper.engine.labels.label import Label, encode_label
from tollkeeper.engine.offline.backtest.candidate import PastDecision
from tollkeeper.engine.offline.backtest.plan import ReplayPlan
from tollkeeper.engine.offline.columns.exported import NUMBER
from tollkeeper.engine.offline.columns.fact_rows import FactRows

_BATCH = 20_000
_PAYMENTS = (
    f"SELECT {Kind.PAYMENT:d} AS kind, sequence AS place, sequence AS payment, arrived AS came, *"
    " FROM payments"
)
# An update changes these of a payment, and nothing else.
_UPDATES = f"""
SELECT {Kind.UPDATE:d} AS kind, state.valid_from AS place, state.payment AS payment,
  state.arrived AS came, payment.* REPLACE (
    state.status AS status, state.method AS method, state.transactions AS transactions
  )
FROM states AS state JOIN payments AS payment ON payment.sequence = state.payment
WHERE state.valid_from > state.payment
"""
# A withdrawn label has no row of its own: it follows from a row that ends without a successor.
_LABELS = f"""
SELECT {Kind.LABEL:d} AS kind, said.place AS place, said.payment AS payment,
  payment.arrived AS came, payment.*, said.source AS source, said.label AS label
FROM (
  SELECT payment, source, valid_from AS place, label FROM labels
  UNION ALL
  SELECT payment, source, valid_to, NULL FROM labels AS said
  WHERE valid_to IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM labels AS next WHERE next.payment = said.payment
      AND next.source = said.source AND next.valid_from = said.valid_to
  )
) AS said
JOIN payments AS payment ON payment.sequence = said.payment
"""
_LABELLED = ("source", "label")
_DECIDED = {
    "is_decided": "decision IS NOT NULL",
    "action": "decision.action",
    "score": "CAST(decision.score * 100 AS BIGINT)",
    "rule": "decision.rule",
    "version": "decision.version",
    "condition": "decision.condition",
    "lost": "len(decision.lost)",
}


def make_happened(tables: Any, plan: ReplayPlan, start: int | None) -> FactRows:
    """Make the view `happened` of what the plan's series count, from event times `start` (µs) on.

    Its column `payment` is the sequence number of the payment that a row is about.
    """
    facts = FactRows(plan.read, "told")
    heard = [
        _PAYMENTS,
        *([_UPDATES] if plan.changing is not None else ()),
        *([_LABELS] if plan.reads_labels else ()),
    ]
    columns = {
        **{name: name for name in ("kind", "place", "payment")},
        "came": "epoch_us(came)",
        "happened_at": "epoch_us(timestamp)",
        **({name: name for name in _LABELLED} if plan.reads_labels else {}),
        **(_DECIDED if plan.reads_decisions else {}),
        **facts.columns,
    }
    selected = ", ".join(f"{said} AS {name}" for name, said in columns.items())
    first = max(0, start or 0)
    tables.execute(
        f"CREATE OR REPLACE VIEW happened AS SELECT {selected}"
        f" FROM ({' UNION ALL BY NAME '.join(heard)}) AS told"
        f" WHERE came >= make_timestamptz({max(0, first - TIME_TO_ARRIVAL)})"
        f" AND timestamp >= make_timestamptz({first})"
    )
    return facts


def read_happened(
    tables: Any, plan: ReplayPlan, facts: FactRows, rows: str
) -> Iterator[list[Entry]]:
    """Rows of `happened` in order, as entries whose bodies are facts or a label and whose outcomes
    are the past decisions; the id is the payment's number.
    """
    reader = tables.cursor().sql(f"{rows} ORDER BY place").to_arrow_reader(_BATCH)
    outcomes_of, bodies_of = _outcomes_reader(plan), _bodies_reader(plan, facts)
    for batch in reader:
        kinds, places, payments, came, times = (
            batch.column(name).to_pylist()
            for name in ("kind", "place", "payment", "came", "happened_at")
        )
        bodies, outcomes = bodies_of(batch, came), outcomes_of(batch)
        yield [
            Entry(place, NUMBER, kind, payment, at, time, body, outcome)
            for place, kind, payment, at, time, body, outcome in zip(
                places, kinds, payments, came, times, bodies, outcomes, strict=True
            )
        ]


def _bodies_reader(
    plan: ReplayPlan, facts: FactRows
) -> Callable[[Any, Sequence[int]], Sequence[Any]]:
    if not plan.reads_labels:
        return facts.facts

    def bodies(batch: Any, came: Sequence[int]) -> Sequence[Any]:
        said = zip(
            facts.facts(batch, came),
            batch.column("kind").to_pylist(),
            *(batch.column(name).to_pylist() for name in _LABELLED),
            strict=True,
        )
        return [
            encode_label(Label(source, label, 0, "")) if kind == Kind.LABEL else body
            for body, kind, source, label in said
        ]

    return bodies


def _outcomes_reader(plan: ReplayPlan) -> Callable[[Any], Sequence[PastDecision | None]]:
    if not plan.reads_decisions:
        return lambda batch: (None,) * batch.num_rows
    return lambda batch: [
        _past(*row)
        for row in zip(*(batch.column(name).to_pylist() for name in _DECIDED), strict=True)
    ]


def _past(
    is_there: bool,
    action: Any,
    score: int | None,
    rule: str | None,
    version: int,
    condition: str | None,
    lost: int,
) -> PastDecision | None:
    if not is_there:
        return None
    applied = None if rule is None else AppliedRule(rule, version, condition)
    return PastDecision(action, score, applied, tuple(range(lost or 0)))
