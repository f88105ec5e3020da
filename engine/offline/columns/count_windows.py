"""Count windows that the recorded decisions did not read, by the code that counts live traffic.

A record counts only in the groups of its keys. So history is divided into parts by keys, which are
counted in processes of their own. Where keys do not divide the payments well, time does: a part
then also counts what its windows reach before its first payment. Few payments are not divided: all
windows are counted in one reading of them. The result is a table of values by the payment's sequence
number.
"""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tollkeeper.engine.columns.columns import column_form
from tollkeeper.engine.columns.write import ROW_GROUP, TableWriter
from tollkeeper.engine.facts.fields_read import facts_read
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.reads import TIME_TO_ARRIVAL
from tollkeeper.engine.offline.backtest.plan import ReplayPlan, can_change, plan_windows
from tollkeeper.engine.offline.backtest.planned_windows import PlannedWindows
from tollkeeper.engine.offline.backtest.replay import without_cycles
from tollkeeper.engine.offline.columns.as_journal import exported_history
from tollkeeper.engine.offline.columns.count_columns import (
    brought_rows,
    read_columns,
    says_window,
)
from tollkeeper.engine.offline.columns.exported import ExportedHistory, open_export
from tollkeeper.engine.offline.columns.fact_rows import FactRows, fields_by_access
from tollkeeper.engine.offline.columns.happened import make_happened, read_happened
from tollkeeper.engine.offline.columns.pool import open_pool
from tollkeeper.engine.offline.columns.sql import NotExactError, guarded, sql_of
from tollkeeper.engine.offline.columns.translate import Translation
from tollkeeper.engine.offline.columns.window_values import raw_window, translation_of
from tollkeeper.engine.offline.own_folder import own_folder
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.progress import Progress
from tollkeeper.grammar.program import History, Rule, Scorecard

PAYMENTS_A_PROCESS = 50_000
COLUMNS_A_PROCESS = 1_000_000
"""How many payments to count are worth a process, from entries and from columns."""
LAST_NUMBER = 2**62
"""Greater than all sequence numbers."""
_HOT = 1.5
"""A part with this many times its share of the payments has a key that most of them share."""


@dataclass(frozen=True, slots=True)
class WindowsAsked:
    """The windows of `indexes` among those that a program reads, for payments that arrived from
    `since` (µs) on; `late` (µs) is how far behind the latest arrival the service counts a payment.
    """

    target: Path
    account: str
    program: Rule | Scorecard
    indexes: tuple[int, ...]
    since: int
    late: int


def histories_of(asked: WindowsAsked) -> list[History]:
    """The histories of the windows, in the program."""
    return [asked.program.histories[index] for index in asked.indexes]


def plan_of(asked: WindowsAsked) -> ReplayPlan:
    """The plan of what counting needs of history."""
    plan = plan_windows(asked.program, histories_of(asked), full_vocabulary(), asked.late)
    return replace(plan, update=lambda entry: entry.body)


def count_windows(asked: WindowsAsked, tables: Any, progress: Progress) -> Mapping[int, str]:
    """Count windows; makes tables in `tables` with the values of each payment.

    Returns the tables' names by the windows' indexes. Raises `JournalError`.
    """
    if not asked.indexes:
        return {}
    plan = plan_of(asked)
    with own_folder("columns") as folder:
        with open_history(asked, start_of(asked, plan)) as exported:
            if _payments(exported) < PAYMENTS_A_PROCESS:
                whole = CountedSpan(0, LAST_NUMBER, start_of(asked, plan))
                part = WindowsPart(asked, None, 0, 1, whole, folder / "whole.parquet")
                count_part(part, plan, exported)
                return join_parts([part], tables)
            parts = [
                part
                for windows in group_windows(asked)
                for part in split_windows(windows, exported, folder, _processes(windows, exported))
            ]
        for done, _ in enumerate(_perform(parts), start=1):
            progress(done / len(parts))
        return join_parts(parts, tables)


def _processes(asked: WindowsAsked, exported: ExportedHistory) -> int:
    """How many processes to use for the windows of the same keys."""
    each = COLUMNS_A_PROCESS if _can_count(asked) else PAYMENTS_A_PROCESS
    return max(1, min(len(os.sched_getaffinity(0)), _payments(exported) // each))


def _payments(exported: ExportedHistory) -> int:
    return sum(exported.progress.parts[part].payments for part in exported.parts)


@dataclass(frozen=True, slots=True)
class CountedSpan:
    """The payments with sequence numbers from `first` to before `beyond`; their windows are counted
    from event times `begin` (µs) on.
    """

    first: int
    beyond: int
    begin: int


@dataclass(frozen=True, slots=True)
class WindowsPart:
    """The payments of the span whose `key`, in SQL, falls into part `number` of `parts`; without a
    key, all of the span, which is then number `number`.

    Their values are written to `file`.
    """

    asked: WindowsAsked
    key: str | None
    number: int
    parts: int
    span: CountedSpan
    file: Path


def split_windows(
    asked: WindowsAsked, exported: ExportedHistory, folder: Path, most: int
) -> Iterator[WindowsPart]:
    """Divide windows of the same keys, as `group_windows` groups them, into at most `most` parts."""
    plan, tables = plan_of(asked), exported.tables
    facts = make_happened(tables, plan, start_of(asked, plan))
    key = _key_of(asked, facts, tables) if most > 1 else None
    spans = [CountedSpan(0, LAST_NUMBER, start_of(asked, plan))]
    if most > 1 and (key is None or _has_hot_key(key, most, tables)):
        found = spans_at(asked, plan, tables, _cuts(asked, plan, tables, most))
        key, spans = (None, found) if len(found) > 1 else (key, spans)
    for number in range(most if key else len(spans)):
        file = folder / f"{asked.indexes[0]}-{number}.parquet"
        yield WindowsPart(asked, key, number, most, spans[0 if key else number], file)


def spans_at(
    asked: WindowsAsked, plan: ReplayPlan, tables: Any, cuts: Sequence[int]
) -> list[CountedSpan]:
    """The spans of `happened` between ascending sequence numbers, from the beginning to the end.

    A single span if a window has no end, as it reaches everything before it.
    """
    if plan.reach is None:
        cuts = ()
    begins = [start_of(asked, plan)]
    for cut in cuts:
        came = f"SELECT min(came) FROM happened WHERE {_READS.format(since=asked.since)} AND place >= {cut}"
        ((first,),) = tables.execute(came).fetchall()
        begins.append(begins[0] if first is None else max(0, first - (plan.reach or 0)))
    return [
        CountedSpan(*each) for each in zip((0, *cuts), (*cuts, LAST_NUMBER), begins, strict=True)
    ]


_IS_PAYMENT = f"kind = {Kind.PAYMENT:d}"
_READS = f"{_IS_PAYMENT} AND came >= {{since}}"


def _has_hot_key(key: str, most: int, tables: Any) -> bool:
    shares = (
        f"SELECT count(*) AS share FROM happened AS seen WHERE {_IS_PAYMENT}"
        f" GROUP BY {key} % {most}"
    )
    query = f"SELECT coalesce(max(share) * {most} > sum(share) * {_HOT}, FALSE) FROM ({shares})"
    ((is_hot,),) = tables.execute(query).fetchall()
    return bool(is_hot)


def _cuts(asked: WindowsAsked, plan: ReplayPlan, tables: Any, most: int) -> Sequence[int]:
    """Sequence numbers that divide the payments into at most `most` spans. A span should last twice
    as long as windows reach, so that about a third of what it counts is also counted for another
    span.
    """
    reach = plan.reach
    query = f"SELECT max(came) - min(came) FROM happened WHERE {_READS.format(since=asked.since)}"
    ((lasted,),) = tables.execute(query).fetchall()
    spans = 1 if not lasted or reach is None else min(most, lasted // max(2 * reach, 1))
    if spans < 2:
        return ()
    shares = [number / spans for number in range(1, spans)]
    found = tables.execute(
        f"SELECT quantile_disc(place, {shares}) FROM happened WHERE {_READS.format(since=asked.since)}"
    )
    ((cuts,),) = found.fetchall()
    return sorted({*cuts})


def group_windows(asked: WindowsAsked) -> Iterator[WindowsAsked]:
    """Group the windows by their keys, and by whether they can be counted from columns."""
    digests, translation = Digests(asked.program.lets), _translation_of(asked)
    groups: defaultdict[tuple[str | bool, ...], list[int]] = defaultdict(list)
    for index in asked.indexes:
        history = asked.program.histories[index]
        is_countable = says_window(history, translation)
        groups[is_countable, *map(digests.of, history.keys)].append(index)
    for indexes in groups.values():
        yield replace(asked, indexes=tuple(indexes))


def _can_count(asked: WindowsAsked) -> bool:
    """Whether the windows can be counted from columns: those of the same keys that SQL expresses."""
    digests = Digests(asked.program.lets)
    keys = {tuple(map(digests.of, history.keys)) for history in histories_of(asked)}
    if len(keys) > 1:
        return False
    translation = _translation_of(asked)
    return all(says_window(each, translation) for each in histories_of(asked))


def _translation_of(asked: WindowsAsked) -> Translation:
    return translation_of(asked.program, FactRows(fields_by_access(), "told"))


def join_parts(parts: Iterable[WindowsPart], tables: Any) -> Mapping[int, str]:
    """Make the tables from counted parts; see `count_windows`."""
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


def open_history(asked: WindowsAsked, begin: int) -> AbstractContextManager[ExportedHistory]:
    """Open the days of an export from event time `begin` (µs) on. Raises `JournalError`."""
    return open_export(asked.target, asked.account, begin - TIME_TO_ARRIVAL)


def _key_of(asked: WindowsAsked, facts: FactRows, tables: Any) -> str | None:
    """SQL for a number computed from those of the windows' keys that SQL can compute for rows of
    `happened`, which has the `facts`; None without any.

    Payments with equal keys have the same number.
    """
    translation = translation_of(asked.program, facts)
    said = []
    for key in asked.program.histories[asked.indexes[0]].keys:
        translation.guards.clear()
        try:
            text = sql_of(translation.test(key))
        except (NotExactError, RecursionError):
            continue
        query = f"SELECT {guarded(translation.guards)} FROM happened AS seen"
        if tables.execute(query).fetchall() == [(True,)]:
            said.append(text)
    return f"hash({', '.join(said)})" if said else None


def _perform(parts: Sequence[WindowsPart]) -> Iterator[None]:
    """Count one share of the parts in this process, and the others in processes of their own."""
    shares: defaultdict[int, list[WindowsPart]] = defaultdict(list)
    for part in parts:
        shares[part.number].append(part)
    own, *others = shares.values()
    if not others:
        yield from _count_parts(own)
        return
    with open_pool(len(others)) as pool:
        counting = pool.map(_count_share, others)
        yield from _count_parts(own)
        yield from counting


def _count_share(parts: Sequence[WindowsPart]) -> None:
    for _ in _count_parts(parts):
        pass


def _count_parts(parts: Sequence[WindowsPart]) -> Iterator[None]:
    begin = min(part.span.begin for part in parts)
    with open_history(parts[0].asked, begin) as exported:
        if parts[0].parts > 1:
            # The other processors are for the other parts.
            exported.tables.execute("SET threads = 1")
        for part in parts:
            count_part(part, plan_of(part.asked), exported)
            yield


def count_part(part: WindowsPart, plan: ReplayPlan, exported: ExportedHistory) -> None:
    """Count the windows of a part, by their plan, and write its file."""
    facts = make_happened(exported.tables, plan, part.span.begin)
    rows = part_rows(part, plan, exported.tables)
    with closing(TableWriter(part.file, values_schema(part.asked))) as file:
        for arrays in count_rows(part, plan, exported, facts, rows):
            file.put(arrays)


def values_schema(asked: WindowsAsked) -> Any:
    """The columns of the payments' values in the windows."""
    read = [
        pa.field(raw_window(index), column_form(asked.program.histories[index].type)[0])
        for index in asked.indexes
    ]
    return pa.schema([pa.field("sequence", pa.int64()), *read])


def part_rows(part: WindowsPart, plan: ReplayPlan, tables: Any) -> str:
    """SQL for what happened to the part's payments; its column `reads` says which of the rows read."""
    if part.key is None:
        # Divided by time alone: `count_rows` lets them read from the span's first payment on.
        return f"SELECT *, TRUE AS reads FROM happened WHERE place < {part.span.beyond}"
    own = f"{part.key} % {part.parts} = {part.number}"
    if not _can_move(part.asked, plan):
        return f"SELECT *, TRUE AS reads FROM happened AS seen WHERE {own}"
    # When an update changes a group, both groups must see it: the creation's key selects the part.
    tables.execute(
        f"CREATE OR REPLACE TABLE own AS SELECT DISTINCT payment FROM happened AS seen WHERE {own}"
    )
    return (
        f"SELECT *, coalesce({own}, FALSE) AS reads FROM happened AS seen"
        " WHERE payment IN (SELECT payment FROM own)"
    )


def count_rows(
    part: WindowsPart, plan: ReplayPlan, exported: ExportedHistory, facts: FactRows, rows: str
) -> Iterator[list[Any]]:
    """The values of the payments among the rows (SQL), as columns of `values_schema`."""
    asked, tables = part.asked, exported.tables
    forms = [column_form(each.type)[1] for each in histories_of(asked)]
    found: Iterator[tuple[list[int], Iterable[Sequence[Any]]]] | None = None
    if _can_count(asked):
        brought = brought_rows(asked.program, histories_of(asked), plan, facts)
        is_exact = f"SELECT {brought.guards} FROM ({rows}) AS seen"
        if tables.execute(is_exact).fetchall() == [(True,)]:
            reads = f"reads AND came >= {asked.since} AND place >= {part.span.first}"
            found = read_columns(brought, plan, tables, rows, f"({_IS_PAYMENT} AND {reads})")
    for sequences, values in found or _read_entries(part, plan, exported, facts, rows):
        columns = zip(forms, values, strict=True)
        yield [pa.array(sequences), *(array(held) for array, held in columns)]


def _read_entries(
    part: WindowsPart, plan: ReplayPlan, exported: ExportedHistory, facts: FactRows, rows: str
) -> Iterator[tuple[list[int], Iterable[Sequence[Any]]]]:
    """The sequence numbers of the reading rows, and their values in each window."""
    asked, first = part.asked, part.span.first
    tables, elsewhere = exported.tables, frozenset[int]()
    if _can_move(asked, plan):
        others = f"SELECT place FROM ({rows}) WHERE {_IS_PAYMENT} AND NOT reads"
        elsewhere = frozenset(place for (place,) in tables.execute(others).fetchall())
    batches = read_happened(tables, plan, facts, rows)
    begin = exported.progress.parts[exported.parts[0]].first - 1
    windows = PlannedWindows(plan)
    sequences: list[int] = []
    values: list[Sequence[Any]] = []
    with exported_history(exported, asked.program, begin, batches) as happened, without_cycles():
        for situation, batch in happened:
            environment = situation.environment
            for entry in batch:
                place, _, kind, payment, arrived, _, body, decision = entry
                if kind == Kind.UPDATE:
                    windows.update(entry)
                elif kind == Kind.LABEL:
                    windows.tell(entry)
                elif place < first or arrived < asked.since or place in elsewhere:
                    windows.count(payment, body, decision, environment)
                else:
                    sequences.append(place)
                    values.append(windows.read(payment, body, decision, environment))
            if len(sequences) >= ROW_GROUP:
                yield sequences, zip(*values, strict=True)
                sequences, values = [], []
        if sequences:
            yield sequences, zip(*values, strict=True)


def _can_move(asked: WindowsAsked, plan: ReplayPlan) -> bool:
    """Whether an update can give a payment another key."""
    keys = asked.program.histories[asked.indexes[0]].keys
    read = facts_read(keys, asked.program.lets, full_vocabulary())
    return plan.changing is not None and any(map(can_change, read))
