"""The tables of an export, filled from the journal (docs/columns.md)."""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from tollkeeper.engine.columns.columns import (
    UTC_MICROSECONDS,
    FactColumn,
    arrays_of,
    column_form,
    columns_of,
    decimals,
)
from tollkeeper.engine.columns.days import PaymentPart
from tollkeeper.engine.columns.windows import ReadingVersion, ReadValues, WindowColumn
from tollkeeper.engine.columns.write import TableWriter
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.facts import Facts, recall
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.damage import UNREADABLE, Damage
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import Label, decode_label
from tollkeeper.engine.stored_records import decode_decision, decode_recorded

T = TypeVar("T")

_CHANGING = ("status", "method", "transactions")
"""The facts that an update can change."""
_SCORE, _SCORES = decimals(3, 2)
_INTEGER, _TEXT = pa.int64(), pa.string()
# Named by their ids, whose index finds them; none is newer than the export.
_OF_PAYMENTS = (
    f"SELECT {reads.COLUMNS} FROM journal INDEXED BY by_id WHERE account = ? AND kind = ?"
    " AND id IN (SELECT value FROM json_each(?)) AND place <= ? ORDER BY place"
)
_PAYMENTS = (
    f"SELECT {reads.COLUMNS} FROM journal INDEXED BY by_account"
    f" WHERE account = ? AND place >= ? AND place < ? AND kind = {Kind.PAYMENT:d}"
    f" ORDER BY place LIMIT {reads.BATCH}"
)
_DECIDERS = (
    "SELECT DISTINCT CAST(outcome AS TEXT) ->> '$.rule.name',"
    " CAST(outcome AS TEXT) ->> '$.rule.version', CAST(outcome AS TEXT) ->> '$.scorecard'"
    " FROM journal INDEXED BY by_account"
    f" WHERE account = ? AND place >= ? AND place < ? AND kind = {Kind.PAYMENT:d}"
)
_encode = msgspec.json.Encoder().encode


@cache
def fact_columns() -> tuple[FactColumn, ...]:
    """The columns of a payment's facts."""
    vocabulary = full_vocabulary()
    return columns_of(vocabulary.payment, vocabulary.transaction)


@cache
def state_columns() -> tuple[FactColumn, ...]:
    """The columns of the facts that an update can change."""
    return tuple(each for each in fact_columns() if each.name in _CHANGING)


DECISION_STRUCT = pa.struct(
    [
        pa.field("action", _TEXT),
        pa.field("score", _SCORE),
        pa.field("rule", _TEXT),
        pa.field("version", _INTEGER),
        pa.field("condition", _TEXT),
        pa.field("title", _TEXT),
        pa.field("scorecard", _INTEGER),
        pa.field("held_out", pa.bool_()),
        pa.field("lost", pa.list_(_TEXT)),
    ]
)
_PLACE = (pa.field("sequence", _INTEGER, False), pa.field("arrived", UTC_MICROSECONDS, False))


def payments_schema(windows: Sequence[WindowColumn]) -> Any:
    """The columns of `payments`, with those of the windows that decisions read."""
    facts = [each.field for each in fact_columns()]
    read = [pa.field(each.name, column_form(each.type)[0]) for each in windows]
    return pa.schema([*_PLACE, *facts, pa.field("decision", DECISION_STRUCT), *read])


def states_schema() -> Any:
    """The columns of `states`."""
    span = [
        pa.field("payment", _INTEGER, False),
        pa.field("id", _TEXT, False),
        pa.field("arrived", UTC_MICROSECONDS, False),
        pa.field("valid_from", _INTEGER, False),
        pa.field("valid_to", _INTEGER),
    ]
    return pa.schema([*span, *(each.field for each in state_columns())])


LABEL_SCHEMA = pa.schema(
    [
        pa.field("payment", _INTEGER, False),
        pa.field("id", _TEXT, False),
        pa.field("label", _TEXT, False),
        pa.field("source", _TEXT, False),
        pa.field("known_at", UTC_MICROSECONDS, False),
        pa.field("valid_from", _INTEGER, False),
        pa.field("valid_to", _INTEGER),
    ]
)


def part_windows(
    connection: sqlite3.Connection,
    account: int,
    part: PaymentPart,
    versions: Sequence[ReadingVersion],
) -> tuple[WindowColumn, ...]:
    """The windows of the versions that decided in a part."""
    span = (account, part.first, part.beyond)
    deciders = connection.execute(_DECIDERS, span).fetchall()
    rules = {(name, version) for name, version, _ in deciders}
    scorecards = {int(number or 0) for _, _, number in deciders}
    found = {
        column.name: column
        for each in versions
        if (each.kind == "rule" and (each.name, each.number) in rules)
        or (each.kind == "scorecard" and each.number in scorecards)
        for column in each.columns
    }
    return tuple(found[name] for name in sorted(found))


def put_payments(
    connection: sqlite3.Connection,
    account: int,
    part: PaymentPart,
    up_to: int,
    read: ReadValues,
    windows: Sequence[WindowColumn],
    payments: TableWriter,
    states: TableWriter,
) -> None:
    """Write a part's payments, and their states as of sequence number `up_to`. Raises `Damaged`."""
    for batch in _payments_of(connection, account, part):
        updates = _entries_of(connection, account, Kind.UPDATE, batch, up_to)
        facts = [_read(_facts_of, entry, entry.arrived) for entry in batch]
        decisions = [_read(_decision_of, entry) for entry in batch]
        payments.put(
            [
                *_places(batch),
                *arrays_of(fact_columns(), facts),
                _decision_array(batch, decisions, read),
                *_window_arrays(batch, decisions, read, windows),
            ]
        )
        states.put(_state_arrays(batch, facts, updates))


def put_labels(
    connection: sqlite3.Connection, account: int, part: PaymentPart, up_to: int, labels: TableWriter
) -> None:
    """Write the labels of a part's payments as of sequence number `up_to`. Raises `Damaged`."""
    for batch in _payments_of(connection, account, part):
        entries = _entries_of(connection, account, Kind.LABEL, batch, up_to)
        labels.put_rows(
            [row for entry in batch for row in _label_rows(entry, entries.get(entry.id, ()))]
        )


def _payments_of(
    connection: sqlite3.Connection, account: int, part: PaymentPart
) -> Iterator[list[Entry]]:
    first = part.first
    while rows := connection.execute(_PAYMENTS, (account, first, part.beyond)).fetchall():
        yield list(map(Entry._make, rows))
        first = rows[-1][0] + 1


def _entries_of(
    connection: sqlite3.Connection, account: int, kind: Kind, payments: Iterable[Entry], up_to: int
) -> Mapping[str, list[Entry]]:
    """The payments' later entries of a kind, by payment id, in the order of the journal."""
    ids = _encode([each.id for each in payments]).decode()
    found: defaultdict[str, list[Entry]] = defaultdict(list)
    for row in connection.execute(_OF_PAYMENTS, (account, kind, ids, up_to)):
        entry = Entry._make(row)
        found[entry.id].append(entry)
    return found


def _read(decode: Callable[..., T], entry: Entry, *more: Any) -> T:
    try:
        return decode(entry, *more)
    except UNREADABLE as error:
        Damage().meet(entry, error)
        raise


def _facts_of(entry: Entry, arrived: int) -> Facts:
    return recall(decode_recorded(entry.body), arrived)


def _decision_of(entry: Entry) -> Decision | None:
    return None if entry.outcome is None else decode_decision(entry.outcome)


def _label_of(entry: Entry) -> Label:
    return decode_label(entry.body)


def _places(batch: Sequence[Entry]) -> list[Any]:
    return [
        pa.array([each.sequence for each in batch], _INTEGER),
        pa.array([each.arrived for each in batch], UTC_MICROSECONDS),
    ]


def _decision_array(
    batch: Sequence[Entry], decisions: Sequence[Decision | None], read: ReadValues
) -> Any:
    there = [Decision() if each is None else each for each in decisions]
    rules = [each.rule for each in there]
    lost = [read.lost(each, entry.sequence) for each, entry in zip(there, batch, strict=True)]
    arrays = [
        pa.array([each.action for each in there], _TEXT),
        _SCORES([each.score for each in there]),
        pa.array([None if each is None else each.name for each in rules], _TEXT),
        pa.array([None if each is None else each.version for each in rules], _INTEGER),
        pa.array([None if each is None else each.condition for each in rules], _TEXT),
        pa.array([None if each is None else each.title for each in rules], _TEXT),
        pa.array([each.scorecard for each in there], _INTEGER),
        pa.array([each.held_out for each in there], pa.bool_()),
        pa.array(lost, pa.list_(_TEXT)),
    ]
    missing = pa.array([each is None for each in decisions], pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=list(DECISION_STRUCT), mask=missing)


def _window_arrays(
    batch: Sequence[Entry],
    decisions: Sequence[Decision | None],
    read: ReadValues,
    windows: Sequence[WindowColumn],
) -> list[Any]:
    values = [
        {} if decision is None else read.of(decision, entry.sequence)
        for decision, entry in zip(decisions, batch, strict=True)
    ]
    return [column_form(each.type)[1]([row.get(each.name) for row in values]) for each in windows]


def _state_arrays(
    batch: Sequence[Entry], facts: Sequence[Facts], updates: Mapping[str, list[Entry]]
) -> list[Any]:
    rows: list[tuple[int, str, int, int, int | None]] = []
    known: list[Facts] = []
    for entry, created in zip(batch, facts, strict=True):
        states = [entry, *updates.get(entry.id, ())]
        for state, later in pairwise([*states, None]):
            assert state is not None
            beyond = None if later is None else later.sequence
            rows.append((entry.sequence, entry.id, state.arrived, state.sequence, beyond))
            known.append(created if state is entry else _read(_facts_of, state, entry.arrived))
    span = [
        pa.array(values, field.type)
        for values, field in zip(zip(*rows, strict=True), states_schema(), strict=False)
    ]
    return [*span, *arrays_of(state_columns(), known)]


def _label_rows(payment: Entry, entries: Sequence[Entry]) -> Iterator[tuple[Any, ...]]:
    """A row for each label, with the time until its source replaced it."""
    holding: dict[str, tuple[Any, ...]] = {}
    for entry in entries:
        label = _read(_label_of, entry)
        before = holding.pop(label.source, None)
        if before is not None:
            yield (*before, entry.sequence)
        if label.label is not None:
            holding[label.source] = (
                payment.sequence,
                payment.id,
                label.label,
                label.source,
                label.at,
                entry.sequence,
            )
    for held in holding.values():
        yield (*held, None)
