"""What a rule sees of an export: the payments that get it, with their facts and what it reads of history."""

# ruff: noqa: S608 - what is put into the queries is made of columns' names and of checked programs

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from sqlglot import exp

from tollkeeper.engine.columns.windows import WindowColumn, window_columns
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal import reads
from tollkeeper.engine.offline.backtest.candidate import Candidate
from tollkeeper.engine.offline.columns.exported import ExportedHistory
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.translate import DIALECT, NotExactError, Translation
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.decider import action_at
from tollkeeper.engine.registry.changes import AccountSettings, SettingsChanged
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import History, Rule

_DIGITS, _WIDE, _MONEY = 18, 38, 15
_SCORES = range(101)


@dataclass(frozen=True, slots=True)
class RowsAsked:
    """A rule over payments that arrived from `since` (µs) on; `everyone` says that every payment
    that asked for a recommendation gets it, else those that name it or have it by default.
    """

    exported: ExportedHistory
    candidate: Candidate
    rule: Rule
    since: int
    everyone: bool


def make_concerned(asked: RowsAsked) -> FactRows:
    """Makes the view `concerned`: the payments that get the rule, with what it reads of them."""
    tables = asked.exported.tables
    in_force = _make_situations(asked)
    facts = FactRows(asked.candidate.plan.read, "payment")
    columns = {
        "sequence": "payment.sequence",
        "id": "payment.id",
        "arrived": "epoch_us(payment.arrived)",
        "currency": "payment.currency",
        "merchant": "payment.merchant.id",
        "hundredths": "CAST(payment.amount * 100 AS BIGINT)",
        "recommends": "coalesce(payment.analyze.bot_behaviour, FALSE)",
        "situation": "situation.number",
        "created_status": "payment.status",
        "unrecorded": "payment.decision IS NULL",
        "was_action": "payment.decision.action",
        "was_rule": "payment.decision.rule",
        "was_version": "payment.decision.version",
        "was_condition": "payment.decision.condition",
        "scorecard": "payment.decision.scorecard",
        "score": "CAST(payment.decision.score * 100 AS BIGINT)",
        "lost": "payment.decision.lost",
        **facts.columns,
    }
    there = {name for name, *_ in tables.execute("DESCRIBE payments").fetchall()}
    for index, window in enumerate(windows_of(asked.rule)):
        columns[_recorded(index)] = f"payment.{window.name}" if window.name in there else "NULL"
    selected = ", ".join(f"{said} AS {name}" for name, said in columns.items())
    tables.execute(
        f"CREATE VIEW concerned AS SELECT {selected} FROM payments AS payment"
        f" JOIN situations AS situation ON situation.number = {in_force}"
        f" WHERE epoch_us(payment.arrived) >= {asked.since} AND {_concerns(asked)}"
    )
    return facts


def lacking_windows(asked: RowsAsked) -> tuple[int, ...]:
    """The aggregates of the rule that not every concerned payment's decision read exactly."""
    columns = [each.name for each in windows_of(asked.rule)]
    if not columns:
        return ()
    tables = asked.exported.tables
    readers: defaultdict[tuple[str, str, int, int], set[str]] = defaultdict(set)
    rows = "SELECT kind, name, version, valid_from, column_name FROM windows"
    for kind, name, version, begins, column in tables.execute(rows).fetchall():
        readers[kind, name, version, begins].add(column)
    shipped = sorted(
        begins for kind, _, version, begins in readers if (kind, version) == ("scorecard", 0)
    )
    era = " + ".join(["0", *(f"(sequence > {begins})::INT" for begins in shipped)])
    deciders = tables.execute(
        "SELECT DISTINCT was_rule, was_version, CASE WHEN score IS NOT NULL THEN scorecard END,"
        f" {era}, CASE WHEN len(lost) > 0 THEN lost END FROM concerned"
    ).fetchall()
    recorded = {*columns}
    for rule, version, scorecard, begun, lost in deciders:
        begins = shipped[begun - 1] if begun else None
        recorded &= {
            column
            for (kind, name, number, since), found in readers.items()
            if (kind, name, number) == ("rule", rule, version)
            or (kind == "scorecard" and number == scorecard and (number or since == begins))
            for column in found
        }
        recorded -= {*(lost or ())}
    return tuple(index for index, each in enumerate(columns) if each not in recorded)


def make_seen(asked: RowsAsked, counted: Mapping[int, str]) -> None:
    """Makes the view `seen`: the concerned payments with the rule's aggregates.

    `counted` are the tables that have those of its indexes in place of the recorded ones.
    """
    windows = windows_of(asked.rule)
    raw = [
        f"{counted[index]}.{raw_window(index)}" if index in counted else _recorded(index)
        for index in range(len(windows))
    ]
    read = [f"{said} AS {raw_window(index)}" for index, said in enumerate(raw)]
    read += [
        f"{carried_window(each.type, said)} AS {read_window(index)}"
        for index, (each, said) in enumerate(zip(windows, raw, strict=True))
    ]
    joined = " ".join(f"LEFT JOIN {table} USING (sequence)" for table in {*counted.values()})
    selected = ", ".join(["concerned.*", *read])
    asked.exported.tables.execute(f"CREATE VIEW seen AS SELECT {selected} FROM concerned {joined}")


def _make_situations(asked: RowsAsked) -> str:
    """The tables of settings by their numbers, and of what a score leads to in each.

    In SQL, the number of those in force for a payment: a join in order of time would sort it all.
    """
    changes = recorded_changes(reads.changes(asked.exported.changes, 0))
    settings = [(0, AccountSettings())]
    settings += [
        (each.sequence, each.change.settings)
        for each in changes
        if isinstance(each.change, SettingsChanged)
    ]
    register(
        asked.exported.tables,
        "situations",
        ("number", "default_rule"),
        [(number, each.default_rule) for number, (_, each) in enumerate(settings)],
    )
    register(
        asked.exported.tables,
        "threshold_actions",
        ("situation", "score", "action"),
        [
            (number, score, action_at(score, each.thresholds))
            for number, (_, each) in enumerate(settings)
            for score in _SCORES
        ],
    )
    later = [begins for begins, _ in settings[1:]]
    ends = " ".join(
        f"WHEN payment.sequence < {end} THEN {number}" for number, end in enumerate(later)
    )
    return f"CASE {ends} ELSE {len(later)} END" if later else "0"


def _concerns(asked: RowsAsked) -> str:
    if asked.everyone:
        return "payment.analyze.bot_behaviour"
    wanted = (
        "coalesce(payment.analyze.rule.name,"
        " CASE WHEN payment.analyze.bot_behaviour THEN situation.default_rule END)"
    )
    return f"{wanted} = {exp.Literal.string(asked.rule.name).sql(DIALECT)}"


def register(
    tables: Any, name: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Makes a table of rows: of numbers where its column says one, else of texts."""
    values = dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else {}
    numbers = {"met", "sequence", "number", "situation", "score"}
    types = [(each, pa.int64() if each in numbers else pa.string()) for each in columns]
    arrays = [pa.array(values.get(each, ()), kind) for each, kind in types]
    tables.register("made", pa.table(arrays, schema=pa.schema(types)))
    tables.execute(f"CREATE OR REPLACE TABLE {name} AS FROM made")
    tables.unregister("made")


def windows_of(rule: Rule) -> tuple[WindowColumn, ...]:
    """The columns that an export has for the rule's aggregates, in their order."""
    return window_columns(rule, {})


def _recorded(index: int) -> str:
    return f"recorded_{index}"


def read_window(index: int) -> str:
    """The column with the values of a rule's aggregate, carried."""
    return f"window_{index}"


def raw_window(index: int) -> str:
    """The column with the values of a rule's aggregate, in the form that an export has."""
    return f"raw_{index}"


def carried_window(kind: t.Type, column: str) -> str:
    """A window's values in SQL, carried as `grammar/types.py` says; NULL where that would be too large."""
    match kind:
        case t.Instant():
            return f"epoch_us({column})"
        case t.Number(scale=int(scale)) if 0 < scale < _DIGITS:
            # DuckDB gives a product of two narrow decimals no more digits than they have. Money leaves
            # room for those of the factor, and so is reckoned in 64 bits, which takes a tenth.
            fits, holds = (_MONEY, _DIGITS) if scale <= 2 else (_DIGITS, _WIDE)
            fitting = (
                f"CAST(TRY_CAST({column} AS DECIMAL({fits}, {scale})) AS DECIMAL({holds}, {scale}))"
            )
            return f"CAST({fitting} * {10**scale} AS BIGINT)"
        case _:
            return column


def translation_of(rule: Rule, facts: FactRows) -> Translation:
    """What the rule's names mean among the columns of `seen`."""
    digests = Digests(rule.lets)
    places = {digests.of(history): index for index, history in enumerate(rule.histories)}

    def window(node: History) -> str:
        index = places[digests.of(node)]
        kind = node.type
        if isinstance(kind, t.Number) and kind.scale:
            if kind.scale >= _DIGITS:
                raise NotExactError("decimals of many places")
            both = f"({raw_window(index)} IS NULL) = ({read_window(index)} IS NULL)"
            translation.guards.append(exp.maybe_parse(both, dialect=DIALECT))
        return read_window(index)

    translation = Translation(
        vocabulary=full_vocabulary(),
        facts=facts.names,
        lets=rule.lets,
        window=window,
        text_lists=frozenset(each.name for each in rule.lists if each.type == "string"),
    )
    return translation
