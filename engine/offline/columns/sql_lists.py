"""Look-ups in past lists and tables in SQL: texts and numbers by a join, others by our own
function."""

# ruff: noqa: S608 - only constants of this module are put into the templates

from __future__ import annotations

from sqlglot import exp

from tollkeeper.engine.lists.spec import ListSpec
from tollkeeper.engine.offline.columns.recorded_lists import RecordedLists
from tollkeeper.engine.offline.columns.sql import (
    own_call,
    sql,
    sql_address,
    sql_call,
    sql_is_there,
    sql_join,
    sql_not,
    sql_where,
)
from tollkeeper.engine.offline.columns.sql_functions import LARGEST_NUMBER
from tollkeeper.engine.offline.columns.sql_numbers import SqlValue, sql_number, sql_product
from tollkeeper.engine.programs.compile.functions import LAST_INSTANT
from tollkeeper.engine.programs.compile.numbers import scale_of
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_ADDRESS_BITS = 128
_ENTRY_VALUES = {
    ListSpec("string"): "entry.value",
    ListSpec("number"): "CAST(CAST(TRY_CAST(entry.value AS DECIMAL(24, 6)) AS DECIMAL(38, 6))"
    f" * {10**t.METADATA_SCALE} AS HUGEINT)",
}
"""An entry's value in SQL, by the list's spec; `TRY_CAST` as the entries may be another list's."""


def sql_in_networks(node: p.InNetworks, value: exp.Expression) -> exp.Expression:
    spans = []
    for first, bits in node.networks:
        last = first | (1 << (_ADDRESS_BITS - bits)) - 1
        low, high = sql_address(first), sql_address(last)
        spans.append(sql(":value >= :low AND :value <= :high", value=value, low=low, high=high))
    found = sql_join(exp.Or, spans)
    return sql_not(found) if node.negated else found


def sql_in_list(
    node: p.InList, lists: RecordedLists, value: SqlValue, *, joins: bool
) -> exp.Expression:
    """Whether the value is on the list; `joins` says whether a join may be used."""
    wanted = _as_entry(node.value, value)
    spec = lists.specs.get(node.list)
    if spec is None:
        found: exp.Expression = exp.false()
    elif joins and spec in _ENTRY_VALUES:
        found = sql(
            "EXISTS (SELECT 1 FROM lists AS entry WHERE entry.list = :name"
            f" AND {_ENTRY_VALUES[spec]} = :wanted AND entry.valid_from <= seen.sequence"
            " AND (entry.valid_to IS NULL OR entry.valid_to > seen.sequence)"
            " AND (entry.expires_at IS NULL OR epoch_us(entry.expires_at) > seen.arrived))",
            name=node.list,
            wanted=wanted,
        )
    else:
        asked = sql_call(lists.contains(node.list), wanted, *_when())
        found = sql("coalesce(:asked, FALSE)", asked=asked)
    return sql_where(sql_is_there(value.value), sql_not(found) if node.negated else found)


def _when() -> tuple[exp.Expression, exp.Expression]:
    return exp.column("sequence", "seen"), exp.column("arrived", "seen")


def _as_entry(node: p.Expression, operand: SqlValue) -> exp.Expression:
    """A value as an entry's; missing if no entry can equal it."""
    if not isinstance(node.type, t.Number):
        return operand.value
    scale = scale_of(node)
    if scale is None:
        return own_call("entry", operand.value)
    if scale <= t.METADATA_SCALE:
        return sql_product(operand, sql_number(10 ** (t.METADATA_SCALE - scale))).value
    return sql(
        "CASE WHEN :value % :unit = 0 THEN :value // :unit END",
        value=operand.value,
        unit=10 ** (scale - t.METADATA_SCALE),
    )


def sql_table_value(node: p.TableValue, lists: RecordedLists, key: exp.Expression) -> SqlValue:
    if node.table not in lists.specs:
        return SqlValue(exp.cast(exp.null(), _column_type(node.type)))
    found = sql_call(lists.column(node.table, node.column), key, *_when())
    match node.type:
        case t.Number():
            return SqlValue(found, LARGEST_NUMBER)
        case t.Instant():
            return SqlValue(found, LAST_INSTANT)
        case _:
            return SqlValue(found)


def _column_type(kind: t.Type) -> str:
    match kind:
        case t.Number() | t.Instant():
            return "BIGINT"
        case t.Boolean():
            return "BOOLEAN"
        case t.Ip():
            return "BLOB"
        case _:
            return "VARCHAR"
