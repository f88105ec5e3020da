"""The records that an aggregate over history counted, listed where they are few.

They are found by evaluating each record of the window again, by the rules of
`velocity/contract.py`. The listed records give the value that was read; where they no longer do,
the explanation says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from tollkeeper.engine.programs.compile.explain import CountedRecord, ExplainedHistory
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.engine.velocity.aggregates import RECOUNTS
from tollkeeper.engine.velocity.contract import Key, Record, SeriesPlan, Window
from tollkeeper.engine.velocity.plan import Plan
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.types import Instant, Type

LISTED = 10
"""The most records that are listed."""


class AggregateRead(NamedTuple):
    """An aggregate that the record `reader` read for the group `key`, as of event time `at` (µs)."""

    window: Window
    series: SeriesPlan
    key: Key | None
    value: Value | None
    at: int
    reader: str


def aggregate_reads(
    plan: Plan, keys: Sequence[Key | None], values: Sequence[Value | None], at: int, reader: str
) -> list[AggregateRead]:
    """The reads of a program, in the order of its histories."""
    series = {each.digest: each for each in plan.series}
    return [
        AggregateRead(window, series[window.series], key, value, at, reader)
        for window, key, value in zip(plan.windows, keys, values, strict=True)
    ]


def list_records(
    explained: ExplainedHistory, read: AggregateRead, records: Iterable[Record]
) -> ExplainedHistory:
    """The explanation, with those of `records` that the aggregate counted.

    `records` are all those with event times in the window, each as of the read; the reading record
    itself as before its decision.
    """
    window = read.window
    recounted: Value | None
    counted = sorted(counted_values(read, records), key=lambda each: each[0].time)
    if window.over is None or window.earlier:
        counted = [
            each for each in counted if each[0].id != read.reader or each[0].event is not None
        ]
    if window.over is None:
        counted = counted[:1] if window.function not in ("interval", "since") else counted[-1:]
        recounted = not counted if window.function == "first" else _elapsed_since(read, counted)
    else:
        recounted = RECOUNTS[window.function]([value for _, value in counted], window.type)
    if recounted != read.value:
        return replace(explained, note="some records were changed, erased or purged since")
    if len(counted) > LISTED:
        return replace(explained, note=f"{len(counted)} records, too many to list")
    return replace(explained, records=tuple(counted_record(window.type, *each) for each in counted))


def list_without_records(
    explained: ExplainedHistory, read: AggregateRead
) -> ExplainedHistory | None:
    """The explanation, when no record need be read to list what was counted; else None."""
    if read.key is None:
        return replace(explained, note="a part of the key is missing")
    if read.window.function == "first" and read.value is False:
        return replace(explained, note="an earlier record, not listed")
    if read.window.function == "streak":
        return replace(explained, note="records in a row, not listed")
    if read.window.function == "decay":
        return replace(explained, note="records by their weight, not listed")
    if read.window.function in ("count", "distinct") and _is_large(read.value):
        return replace(explained, note=f"more than {LISTED} records, too many to list")
    return None


def _is_large(value: Value | None) -> bool:
    return isinstance(value, int) and value > LISTED


def counted_values(read: AggregateRead, records: Iterable[Record]) -> Iterator[tuple[Record, Any]]:
    """The records in the group and the window, with each of their values."""
    series, over = read.series, read.window.over
    for record in records:
        if record.event != series.event or record.time > read.at:
            continue
        if over is not None and record.time <= read.at - over:
            continue
        state = record.state
        arguments = (state.payment, state.decision, state.data, state.environment, state.label)
        if series.compiled.key(*arguments) == read.key:
            for value in series.compiled.values(*arguments):
                if value is not None or series.missing:
                    yield record, value


def _elapsed_since(read: AggregateRead, counted: list[tuple[Record, Any]]) -> int | None:
    """The time (µs) since the one record from which an age or an interval is counted."""
    return read.at - counted[0][0].time if counted else None


def counted_record(type_: Type | None, record: Record, value: Any) -> CountedRecord:
    """A record as it is listed, with its value of that type."""
    return CountedRecord(
        record.id,
        written_value(record.time, Instant()),
        None if type_ is None else written_value(value, type_),
    )
