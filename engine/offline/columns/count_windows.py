"""Windows that the recorded decisions did not read, counted by the code that counts live.

A record counts in the groups of its keys alone, so history is counted in parts: all that has the
same keys is in one part, and parts are counted in processes of their own. What comes of it is a table
of values by the payment's sequence number.
"""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tollkeeper.engine.columns.columns import column_form
from tollkeeper.engine.columns.write import ROW_GROUP, TableWriter
from tollkeeper.engine.facts.fields_read import facts_read
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.reads import TIME_TO_ARRIVAL
from tollkeeper.engine.offline.backtest.candidate import Situation
from tollkeeper.engine.offline.backtest.plan import ReplayPlan, can_change, plan_windows
from tollkeeper.engine.offline.backtest.planned_windows import PlannedWindows
from tollkeeper.engine.offline.backtest.replay import without_cycles
from tollkeeper.engine.offline.backtest.stored import configured_history
from tollkeeper.engine.offline.columns.exported import NUMBER, ExportedHistory, open_export
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.happened import make_happened, read_happened
from tollkeeper.engine.offline.columns.slices import SequenceSlices
from tollkeeper.engine.offline.columns.sql import DIALECT, NotExactError, guarded
from tollkeeper.engine.offline.columns.window_values import raw_window, translation_of
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.progress import Progress
from tollkeeper.grammar.program import Rule, Scorecard

PAYMENTS_A_PROCESS = 50_000
"""So many payments to count are worth a process of their own."""


@dataclass(frozen=True, slots=True)
class WindowsAsked:
    """The windows of `indexes` among those that a program reads, for payments that arrived from `since`
    (µs) on; `late` (µs) is how far behind the latest arrival the service counts a payment.
    """

    target: Path
    account: str
    program: Rule | Scorecard
    indexes: tuple[int, ...]
    since: int
    late: int


def plan_of(asked: WindowsAsked) -> ReplayPlan:
    """What counting the windows needs of history."""
    histories = [asked.program.histories[index] for index in asked.indexes]
    plan = plan_windows(asked.program, histories, full_vocabulary(), asked.late)
    return replace(plan, update=lambda entry: entry.body)


def count_windows(asked: WindowsAsked, tables: Any, progress: Progress) -> Mapping[int, str]:
    """Makes a table in `tables` for windows of the same keys: what each payment reads in them.

    Gives the tables' names by the windows' indexes. Raises `JournalError`.
    """
    with open_export(asked.target, asked.account, asked.since) as exported:
        payments = sum(exported.progress.parts[part].payments for part in exported.parts)
    processes = min(len(os.sched_getaffinity(0)), payments // PAYMENTS_A_PROCESS)
    with TemporaryDirectory(prefix="toll-columns-") as folder:
        parts = list(split_windows(asked, Path(folder), max(1, processes)))
        for done, _ in enumerate(_performed(parts), start=1):
            progress(done / len(parts))
        return join_parts(parts, tables)


@dataclass(frozen=True, slots=True)
class WindowsPart:
    """The payments whose `key`, in SQL, falls into the `number`th of `parts`; all without a key.

    What they read is put into `file`.
    """

    asked: WindowsAsked
    key: str | None
    number: int
    parts: int
    file: Path


def split_windows(asked: WindowsAsked, folder: Path, most: int) -> Iterator[WindowsPart]:
    """The windows of equal keys together, and each of these in up to so many parts."""
    for windows in alike_windows(asked):
        key = key_of(windows) if most > 1 else None
        for number in range(most if key else 1):
            file = folder / f"{windows.indexes[0]}-{number}.parquet"
            yield WindowsPart(windows, key, number, most, file)


def alike_windows(asked: WindowsAsked) -> Iterator[WindowsAsked]:
    """The windows by their keys."""
    digests = Digests(asked.program.lets)
    alike: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for index in asked.indexes:
        alike[tuple(map(digests.of, asked.program.histories[index].keys))].append(index)
    for indexes in alike.values():
        yield replace(asked, indexes=tuple(indexes))


def join_parts(parts: Iterable[WindowsPart], tables: Any) -> Mapping[int, str]:
    """Makes the tables of parts that were counted; see `count_windows`."""
    files: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for part in parts:
        files[part.asked.indexes].append(str(part.file))
    found: dict[int, str] = {}
    for number, (indexes, written) in enumerate(files.items()):
        table = f"windows_{number}"
        tables.read_parquet(written).create(table)
        found |= dict.fromkeys(indexes, table)
    return found


def start_of(asked: WindowsAsked, plan: ReplayPlan) -> int:
    """The event time (µs) at which counting begins."""
    return 0 if plan.reach is None else max(0, asked.since - plan.reach)


def _opened(asked: WindowsAsked, plan: ReplayPlan) -> AbstractContextManager[ExportedHistory]:
    return open_export(asked.target, asked.account, start_of(asked, plan) - TIME_TO_ARRIVAL)


def key_of(asked: WindowsAsked) -> str | None:
    """Those of the windows' keys by which SQL tells payments apart, as one number; None without any.

    Payments of equal keys are alike in each of them.
    """
    keys, plan = asked.program.histories[asked.indexes[0]].keys, plan_of(asked)
    with _opened(asked, plan) as exported:
        facts = make_happened(exported.tables, plan, start_of(asked, plan))
        said = []
        for key in keys:
            translation = translation_of(asked.program, facts)
            try:
                text = translation.test(key).sql(DIALECT)
            except (NotExactError, RecursionError):
                continue
            query = f"SELECT {guarded(translation.guards)} FROM happened AS seen"
            if exported.tables.execute(query).fetchall() == [(True,)]:
                said.append(text)
        return f"hash({', '.join(said)})" if said else None


def _performed(parts: Sequence[WindowsPart]) -> Iterator[None]:
    """Counts the first part of each here, and the others in processes that take long to start."""
    here, elsewhere = (
        [part for part in parts if bool(part.number) is is_further] for is_further in (False, True)
    )
    if not elsewhere:
        yield from map(count_part, here)
        return
    further = max(part.number for part in elsewhere)
    with ProcessPoolExecutor(further, get_context("spawn")) as pool:
        counting = pool.map(count_part, elsewhere)
        yield from map(count_part, here)
        yield from counting


def count_part(part: WindowsPart) -> None:
    """Counts the windows of a part. Raises `JournalError`."""
    asked, plan = part.asked, plan_of(part.asked)
    with _opened(asked, plan) as exported:
        if part.key is not None:
            # The other parts have the other processors.
            exported.tables.execute("SET threads = 1")
        facts = make_happened(exported.tables, plan, start_of(asked, plan))
        rows = part_rows(part, plan, exported.tables)
        with closing(TableWriter(part.file, values_schema(asked))) as file:
            for arrays in count_rows(asked, plan, exported, facts, rows):
                file.put(arrays)


def values_schema(asked: WindowsAsked) -> Any:
    """The columns of what payments read in the windows."""
    read = [
        pa.field(raw_window(index), column_form(asked.program.histories[index].type)[0])
        for index in asked.indexes
    ]
    return pa.schema([pa.field("sequence", pa.int64()), *read])


def part_rows(part: WindowsPart, plan: ReplayPlan, tables: Any) -> str:
    """In SQL, what happened to the part's payments; `reads` says which of these read in it."""
    if part.key is None:
        return "SELECT *, TRUE AS reads FROM happened"
    own = f"{part.key} % {part.parts} = {part.number}"
    if not _can_move(part.asked, plan):
        return f"SELECT *, TRUE AS reads FROM happened AS seen WHERE {own}"
    # What leaves a group, or comes to it, is told to both: by the payment as it was created.
    tables.execute(
        f"CREATE OR REPLACE TABLE own AS SELECT DISTINCT payment FROM happened AS seen WHERE {own}"
    )
    return (
        f"SELECT *, coalesce({own}, FALSE) AS reads FROM happened AS seen"
        " WHERE payment IN (SELECT payment FROM own)"
    )


def count_rows(
    asked: WindowsAsked, plan: ReplayPlan, exported: ExportedHistory, facts: FactRows, rows: str
) -> Iterator[list[Any]]:
    """What the payments among the rows, in SQL, read in the windows: columns of `values_schema`."""
    tables, elsewhere = exported.tables, frozenset[int]()
    if _can_move(asked, plan):
        others = f"SELECT place FROM ({rows}) WHERE kind = {Kind.PAYMENT:d} AND NOT reads"
        elsewhere = frozenset(place for (place,) in tables.execute(others).fetchall())
    slices = SequenceSlices(read_happened(tables, plan, facts, rows))
    span = (exported.progress.parts[exported.parts[0]].first - 1, exported.progress.sequence)
    history = configured_history(exported.changes, NUMBER, asked.program, span, slices.between)
    windows, environment = PlannedWindows(plan), history.situation.environment
    forms = [column_form(asked.program.histories[index].type)[1] for index in asked.indexes]
    sequences: list[int] = []
    values: list[Sequence[Any]] = []

    def arrays() -> list[Any]:
        columns = zip(forms, zip(*values, strict=True), strict=True)
        return [pa.array(sequences), *(array(held) for array, held in columns)]

    with without_cycles():
        for batch in history.happened:
            if isinstance(batch, Situation):
                environment = batch.environment
                continue
            for entry in batch:
                place, _, kind, payment, arrived, _, body, decision = entry
                if kind == Kind.UPDATE:
                    windows.update(entry)
                elif kind == Kind.LABEL:
                    windows.tell(entry)
                elif arrived < asked.since or place in elsewhere:
                    windows.count(payment, body, decision, environment)
                else:
                    sequences.append(place)
                    values.append(windows.read(payment, body, decision, environment))
            if len(sequences) >= ROW_GROUP:
                yield arrays()
                sequences, values = [], []
        if sequences:
            yield arrays()


def _can_move(asked: WindowsAsked, plan: ReplayPlan) -> bool:
    """Whether an update can give a payment another key."""
    keys = asked.program.histories[asked.indexes[0]].keys
    read = facts_read(keys, asked.program.lets, full_vocabulary())
    return plan.changing is not None and any(map(can_change, read))
