"""Look-ups in past lists and tables in SQL: texts and numbers by a join, others by our own
function."""

from __future__ import annotations

from sqlglot import exp

from tollkeeper.engine.lists.spec import ListSpec
from tollkeeper.engine.offline.columns.recorded_lists import RecordedLists
from tollkeeper.engine.offline.columns.sql import (
    open_ended,
    own_call,
    sql_address,
    sql_binary,
    sql_call,
    sql_is_there,
    sql_join,
    sql_literal,
    sql_not,
    sql_where,
)
from tollkeeper.engine.offline.columns.sql_functions import LARGEST_NUMBER, number_of_entry
from tollkeeper.engine.offline.columns.sql_numbers import SqlValue, sql_product
from tollkeeper.engine.programs.compile.functions import LAST_INSTANT
from tollkeeper.engine.programs.compile.numbers import scale_of
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_ADDRESS_BITS = 128
_ENTRY = ("list", "value", "valid_from", "valid_to", "expires_at")


def sql_in_networks(node: p.InNetworks, value: exp.Expression) -> exp.Expression:
    spans = []
    for first, bits in node.networks:
        last = first | (1 << (_ADDRESS_BITS - bits)) - 1
        low = sql_binary(exp.GTE, value.copy(), sql_address(first))
        spans.append(sql_join(exp.And, (low, sql_binary(exp.LTE, value.copy(), sql_address(last)))))
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
    elif joins and spec in (ListSpec("string"), ListSpec("number")):
        found = _is_joined(node.list, spec, wanted)
    else:
        asked = sql_call(lists.contains(node.list), wanted, *_when())
        found = sql_call("coalesce", asked, exp.false())
    result = exp.Not(this=exp.paren(found)) if node.negated else found
    return sql_where(sql_is_there(value.value.copy()), result)


def _when() -> tuple[exp.Expression, exp.Expression]:
    return exp.column("sequence", "seen"), exp.column("arrived", "seen")


def _is_joined(name: str, spec: ListSpec, value: exp.Expression) -> exp.Expression:
    entry = {name: exp.column(name, "entry") for name in _ENTRY}
    sequence, arrived = _when()
    is_text = spec == ListSpec("string")
    entry_value = entry["value"] if is_text else number_of_entry(entry["value"])
    holds = (
        sql_binary(exp.EQ, entry["list"], exp.Literal.string(name)),
        sql_binary(exp.EQ, entry_value, value),
        sql_binary(exp.LTE, entry["valid_from"], sequence),
        open_ended(entry["valid_to"], sequence.copy()),
        open_ended(sql_call("epoch_us", entry["expires_at"]), arrived),
    )
    return exp.Exists(this=exp.select("1").from_("lists AS entry").where(sql_join(exp.And, holds)))


def _as_entry(node: p.Expression, operand: SqlValue) -> exp.Expression:
    """A value as an entry's; missing if no entry can equal it."""
    if not isinstance(node.type, t.Number):
        return operand.value
    scale = scale_of(node)
    if scale is None:
        return own_call("entry", operand.value)
    if scale <= t.METADATA_SCALE:
        factor = 10 ** (t.METADATA_SCALE - scale)
        return sql_product(operand, SqlValue(sql_literal(factor), factor)).value
    unit = 10 ** (scale - t.METADATA_SCALE)
    is_whole = sql_binary(
        exp.EQ, sql_binary(exp.Mod, operand.value.copy(), sql_literal(unit)), exp.Literal.number(0)
    )
    return sql_where(is_whole, sql_binary(exp.IntDiv, operand.value.copy(), sql_literal(unit)))


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
