"""Run a backtest over an export on Spark, in parts, by the code that runs it on one machine.

A day's files are read by one task. What happened goes to the tasks that count its keys; the values
read there go back to the task that decides the day. Rows travel between tasks as Arrow in bytes,
which are opaque to Spark. Each worker needs this package, and the export under the same path.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from tollkeeper.engine.columns.layout import day_number
from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal.reads import TIME_TO_ARRIVAL
from tollkeeper.engine.offline.backtest.compare import (
    SHOWN_EXAMPLES,
    AmountTally,
    Cell,
    ComparedPayment,
    Comparison,
    OutcomePair,
)
from tollkeeper.engine.offline.columns.backtest import windows_asked
from tollkeeper.engine.offline.columns.count_windows import (
    CountedSpan,
    WindowsAsked,
    WindowsPart,
    count_rows,
    group_windows,
    open_history,
    part_rows,
    plan_of,
    split_windows,
    start_of,
    values_schema,
)
from tollkeeper.engine.offline.columns.decide_exported import decide_exported
from tollkeeper.engine.offline.columns.exported import ExportedHistory, open_export
from tollkeeper.engine.offline.columns.happened import make_happened
from tollkeeper.engine.offline.columns.rows_asked import ColumnsAsked, ask_rows
from tollkeeper.engine.offline.columns.seen import lacking_windows, make_concerned
from tollkeeper.engine.progress import Progress, unwatched

PAYMENTS_A_PART = 500_000
"""The payments that a task can hold in memory."""
_MEMORY = "1g"

_Message = tuple[int, bytes]
"""A message between tasks: the number of the task it is for, and rows as Arrow."""
_MESSAGE_COLUMNS = "place long, sent binary"


def compare_on_spark(
    master: str,
    asked: ColumnsAsked,
    exported: ExportedHistory,
    progress: Progress,
    share: int = PAYMENTS_A_PART,
) -> tuple[Comparison, Collection[int]]:
    """As `compare_in_processes`, on the cluster of `master`: `spark://HOST:PORT`, or `local[2]`.

    About `share` payments are counted by each task.
    """
    days = exported_days(exported)
    parts = 1 + sum(each.payments for each in exported.progress.parts.values()) // share
    with _session(master) as spark:

        def tasks(numbers: Sequence[int]) -> Any:
            each = spark.sparkContext.parallelize([(number,) for number in numbers], len(numbers))
            return spark.createDataFrame(each, "place long")

        found = (
            tasks(days)
            .mapInArrow(partial(_each_day, lacking_in_day, asked), _MESSAGE_COLUMNS)
            .collect()
        )
        lacking = sorted({row.place for row in found})
        progress(0.1)
        counted = None
        for windows in group_windows(windows_asked(asked, lacking)):
            with open_history(windows, start_of(windows, plan_of(windows))) as history:
                before = exported_days(history)
                counted_by = list(split_windows(windows, history, Path(), parts))
            read = tasks(before).mapInArrow(
                partial(_each_day, happened_in_day, counted_by), _MESSAGE_COLUMNS
            )
            values = read.groupBy("place").applyInArrow(_counting(counted_by), _MESSAGE_COLUMNS)
            counted = values if counted is None else counted.unionAll(values)
        decided = (
            tasks(days).mapInArrow(partial(_each_day, _decide, asked), _MESSAGE_COLUMNS)
            if counted is None
            else counted.groupBy("place").applyInArrow(_deciding(asked), _MESSAGE_COLUMNS)
        )
        rows = sorted((row.place, bytes(row.sent)) for row in decided.collect())
    return _together(sent for _, sent in rows), lacking


@contextmanager
def _session(master: str) -> Iterator[SparkSession]:
    builder = SparkSession.builder.appName("toll backtest").master(master)
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for name, value in {
        "spark.driver.memory": _MEMORY,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "32",
        **(loopback if master.startswith("local") else {}),
    }.items():
        builder = builder.config(name, value)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _each_day(
    work: Callable[[Any, int], Iterable[_Message]], asked: Any, batches: Iterable[Any]
) -> Iterator[Any]:
    for batch in batches:
        for day in batch.column(0).to_pylist():
            for place, sent in work(asked, day):
                yield _message_table(place, sent).to_batches()[0]


def _message_table(place: int, sent: bytes) -> Any:
    return pa.table({"place": pa.array([place], pa.int64()), "sent": pa.array([sent], pa.binary())})


def _open_day(asked: ColumnsAsked | WindowsAsked, day: int) -> Any:
    return open_export(asked.target, asked.account, day * DAY, day * DAY)


def lacking_in_day(asked: ColumnsAsked, day: int) -> Iterable[_Message]:
    """The indexes of windows that not every payment of the day read, each with empty rows."""
    with _open_day(asked, day) as exported:
        rows = ask_rows(asked, exported)
        make_concerned(rows)
        return [(index, b"") for index in lacking_windows(rows)]


def happened_in_day(parts: Sequence[WindowsPart], day: int) -> Iterator[_Message]:
    """What happened to a day's payments, addressed to the tasks that count them."""
    asked = parts[0].asked
    plan = plan_of(asked)
    with _open_day(asked, day) as exported:
        tables = exported.tables
        make_happened(tables, plan, start_of(asked, plan))
        tables.execute("CREATE TABLE told AS FROM happened")
        for part in parts:
            # A span includes what its windows reach before it.
            make_told = (
                f"CREATE OR REPLACE VIEW happened AS FROM told WHERE {_span_condition(part.span)}"
            )
            tables.execute(make_told)
            rows = tables.sql(part_rows(part, plan, tables)).to_arrow_table()
            if rows.num_rows:
                yield part.number, _pack(rows)


def _span_condition(span: CountedSpan) -> str:
    return f"came >= {span.begin - TIME_TO_ARRIVAL} AND happened_at >= {span.begin}"


# Spark decides by a function's annotations how to call it.
def _counting(parts: Sequence[WindowsPart]) -> Callable[[Any], Any]:
    def count(told: pa.Table) -> pa.Table:
        return count_sent(parts[told.column("place")[0].as_py()], told)

    return count


def _deciding(asked: ColumnsAsked) -> Callable[[Any], Any]:
    def decide(counted: pa.Table) -> pa.Table:
        day = counted.column("place")[0].as_py()
        return _message_table(day, decide_day(asked, day, counted.column("sent").to_pylist()))

    return decide


def count_sent(part: WindowsPart, told: Any) -> Any:
    """The values of a part's payments, addressed to the tasks that decide their days."""
    asked, plan = part.asked, plan_of(part.asked)
    with open_history(asked, part.span.begin) as exported:
        tables = exported.tables
        facts = make_happened(tables, plan, part.span.begin)
        _put_table(tables, "told", _unpack(told.column("sent").to_pylist()))
        tables.execute("SET threads = 1")
        rows = list(count_rows(part, plan, exported, facts, "SELECT * FROM told"))
        found = pa.concat_tables(
            [pa.table(each, schema=values_schema(asked)) for each in rows]
            or [values_schema(asked).empty_table()]
        )
        return pa.concat_tables(
            [
                _message_table(number, _pack(values))
                for number, values in _by_days(exported, found)
                if values.num_rows
            ]
            or [_message_table(0, b"").slice(1)]
        )


def exported_days(exported: ExportedHistory) -> list[int]:
    """The numbers of the days that were opened; each is a task."""
    return sorted({day_number(each) for each in exported.parts})


def _by_days(exported: ExportedHistory, values: Any) -> Iterator[tuple[int, Any]]:
    """Divide payments' values by day; the parts of days are spans of sequence numbers."""
    exported.tables.register("values_read", values)
    for name in exported.parts:
        part = exported.progress.parts[name]
        of_part = f"FROM values_read WHERE sequence >= {part.first} AND sequence < {part.beyond}"
        yield day_number(name), exported.tables.sql(of_part).to_arrow_table()


def _decide(asked: ColumnsAsked, day: int) -> Iterable[_Message]:
    return [(day, decide_day(asked, day, ()))]


def decide_day(asked: ColumnsAsked, day: int, counted: Sequence[bytes]) -> bytes:
    """The comparison of a day, given the `counted` values of its payments."""
    read: defaultdict[tuple[str, ...], list[Any]] = defaultdict(list)
    for values in _unpack(counted):
        read[tuple(values.column_names)].append(values)
    with _open_day(asked, day) as exported:
        rows = ask_rows(asked, exported)
        facts = make_concerned(rows)
        tables: dict[int, str] = {}
        for number, (columns, parts) in enumerate(read.items()):
            _put_table(exported.tables, f"windows_{number}", parts)
            tables |= {_index(column): f"windows_{number}" for column in columns[1:]}
        return pickle.dumps(decide_exported(asked, rows, facts, tables, unwatched))


def _index(column: str) -> int:
    return int(column.rpartition("_")[2])


def _together(sent: Iterable[bytes]) -> Comparison:
    """The comparison of all days, from those of each day in order."""
    cells: defaultdict[Cell, AmountTally] = defaultdict(AmountTally)
    examples: defaultdict[OutcomePair, list[ComparedPayment]] = defaultdict(list)
    found = Comparison()
    for each in sent:
        of_day: Comparison = pickle.loads(each)  # noqa: S301 - from the job's own tasks
        for cell, tally in of_day.cells.items():
            cells[cell].add(tally)
        for pair, shown in of_day.examples.items():
            examples[pair] = [*examples[pair], *shown][-SHOWN_EXAMPLES:]
        found.lost += of_day.lost
        found.scoreless += of_day.scoreless
        found.first = of_day.first if found.first is None else found.first
        found.last = found.last if of_day.last is None else of_day.last
    found.cells, found.examples = dict(cells), dict(examples)
    return found


def _put_table(tables: Any, name: str, parts: Sequence[Any]) -> None:
    """Make a table that cursors see as well."""
    tables.register("sent", pa.concat_tables(parts))
    tables.execute(f"CREATE TABLE {name} AS FROM sent")
    tables.unregister("sent")


def _pack(table: Any) -> bytes:
    into = pa.BufferOutputStream()
    with pa.ipc.new_stream(into, table.schema) as stream:
        stream.write_table(table)
    return bytes(into.getvalue())


def _unpack(sent: Iterable[bytes]) -> list[Any]:
    return [pa.ipc.open_stream(each).read_all() for each in sent]
