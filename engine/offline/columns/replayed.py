"""What an export tells of payments and updates, as the history that a replay takes."""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of numbers

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tollkeeper.engine.decision import AppliedRule
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.reads import TIME_TO_ARRIVAL
from tollkeeper.engine.offline.backtest.candidate import Candidate, PastDecision
from tollkeeper.engine.offline.backtest.replay import RecordedHistory
from tollkeeper.engine.offline.backtest.stored import configured_history
from tollkeeper.engine.offline.columns.exported import NUMBER, ExportedHistory
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.slices import SequenceSlices
from tollkeeper.grammar.program import Rule

_BATCH = 20_000
# An update changes these of a payment, and nothing else.
_HAPPENED = f"""
CREATE VIEW happened AS
SELECT {Kind.PAYMENT:d} AS kind, sequence AS place, arrived AS came, * FROM payments
UNION ALL BY NAME
SELECT {Kind.UPDATE:d} AS kind, state.valid_from AS place, state.arrived AS came,
  payment.* REPLACE (
    state.status AS status, state.method AS method, state.transactions AS transactions
  )
FROM states AS state JOIN payments AS payment ON payment.sequence = state.payment
WHERE state.valid_from > state.payment
"""
_DECIDED = (
    "happened.decision IS NOT NULL, happened.decision.action,"
    " CAST(happened.decision.score * 100 AS BIGINT), happened.decision.rule,"
    " happened.decision.version, happened.decision.condition, len(happened.decision.lost)"
)


def exported_candidate(candidate: Candidate) -> Candidate:
    """The candidate over entries whose bodies are facts, and whose outcomes are what was decided."""
    plan = replace(
        candidate.plan,
        facts=_body_of,
        update=_body_of,
        status=lambda entry: _body_of(entry).payment.status,
    )
    return replace(candidate, plan=plan, decode_past=_outcome_itself)


def _outcome_itself(outcome: Any) -> PastDecision:
    """What stands in an entry's place for what is stored of it."""
    found: PastDecision = outcome
    return found


def _body_of(entry: Entry) -> Any:
    return entry.body


def exported_history(
    exported: ExportedHistory, candidate: Candidate, rule: Rule, start: int | None
) -> RecordedHistory:
    """The payments of event times from `start` (µs) on, None for all that were exported."""
    tables, first = exported.tables, max(0, start or 0)
    tables.execute(_HAPPENED)
    since = f"epoch_us(came) >= {first - TIME_TO_ARRIVAL} AND epoch_us(timestamp) >= {first}"
    ((begin, total),) = tables.execute(
        f"SELECT min(place), count(*) FROM happened WHERE {since}"
    ).fetchall()
    facts = FactRows(candidate.plan.read, "happened")
    slices = SequenceSlices(_batches(exported, facts, since))
    span = (0 if begin is None else begin - 1, exported.progress.sequence)
    return RecordedHistory(
        *configured_history(exported.changes, NUMBER, rule, span, slices.between),
        total=total,
        begins=exported.begins,
    )


def _batches(exported: ExportedHistory, facts: FactRows, since: str) -> Iterator[list[Entry]]:
    named = (f"{said} AS {name}" for name, said in facts.columns.items())
    selected = ", ".join(named)
    reader = (
        exported.tables.cursor()
        .sql(
            f"SELECT place, kind, id, epoch_us(came), epoch_us(timestamp), {_DECIDED}, {selected}"
            f" FROM happened WHERE {since} ORDER BY place"
        )
        .to_arrow_reader(_BATCH)
    )
    for batch in reader:
        places, kinds, ids, came, times, *decided = (
            batch.column(number).to_pylist() for number in range(12)
        )
        outcomes = [_past(*row) for row in zip(*decided, strict=True)]
        rows = zip(places, kinds, ids, came, times, facts.facts(batch, came), outcomes, strict=True)
        yield [
            Entry(place, NUMBER, kind, id_, at, time, body, outcome)
            for place, kind, id_, at, time, body, outcome in rows
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
