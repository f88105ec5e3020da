"""Decide rows of an export by compiled programs, in batches of Arrow."""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tollkeeper.engine.columns.carried import carried_values
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.offline.backtest.candidate import PastDecision
from tollkeeper.engine.offline.columns.as_journal import exported_history
from tollkeeper.engine.offline.columns.exported import NUMBER
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.rows_asked import RowsAsked, RowsOfProgram
from tollkeeper.engine.offline.columns.window_values import raw_window

_BATCH = 20_000


def compiled_decisions(
    asked: RowsAsked, facts: FactRows, rows: RowsOfProgram, holds: str
) -> Iterator[list[tuple[int, Decision]]]:
    """The program's decisions, by sequence number, on the rows of `seen` for which the SQL `holds`
    is true.
    """
    decide = rows.candidate.decide
    batches = _batches(asked, facts, rows, holds)
    with exported_history(asked.exported, rows.program, 0, batches) as happened:
        for situation, batch in happened:
            found = []
            for entry in batch:
                row: Any = entry.body
                read, was, values = row
                found.append((entry.sequence, decide(read, was, values, situation)))
            yield found


def _batches(
    asked: RowsAsked, facts: FactRows, rows: RowsOfProgram, holds: str
) -> Iterator[list[Entry]]:
    """Payments as entries whose bodies are their facts, past decisions and aggregates."""
    windows = rows.windows
    columns = [*facts.columns, *(raw_window(index, rows.number) for index in range(len(windows)))]
    reader = (
        asked.exported.tables.cursor()
        .sql(
            f"SELECT sequence, id, arrived, score, {', '.join(columns)} FROM seen"
            f" WHERE {holds} ORDER BY sequence"
        )
        .to_arrow_reader(_BATCH)
    )
    for batch in reader:
        sequences, ids, arrived, scores = (batch.column(n).to_pylist() for n in range(4))
        read = [
            carried_values(window.type, batch.column(raw_window(index, rows.number)).to_pylist())
            for index, window in enumerate(windows)
        ]
        values = zip(*read, strict=True) if read else ((),) * len(ids)
        bodies = zip(facts.facts(batch, arrived), map(_past, scores), values, strict=True)
        yield [
            Entry(sequence, NUMBER, Kind.PAYMENT, id_, at, 0, body)  # type: ignore[arg-type]
            for sequence, id_, at, body in zip(sequences, ids, arrived, bodies, strict=True)
        ]


def _past(score: int | None) -> PastDecision:
    return PastDecision(score=score)
