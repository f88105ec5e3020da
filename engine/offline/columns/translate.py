"""Translate checked expressions to SQL of exactly the same meaning, or refuse (`NotExactError`).

Values are represented as `grammar/types.py` says, an address as its 16 bytes; NULL is missing, and
SQL's three-valued logic is the language's. Where SQL and the language may differ, our own functions
are called (`own_functions.py`), but only for rows where SQL is not exact. Whole numbers stay below
10 ** 38; expressions that could exceed it are refused. Assumptions that hold for most data become
guards: tests that must not be false for any row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlglot import exp

from tollkeeper.engine.facts.fields_read import Access
from tollkeeper.engine.offline.columns import sql_functions as functions
from tollkeeper.engine.offline.columns.fact_rows import carried_fact
from tollkeeper.engine.offline.columns.recorded_lists import RecordedLists
from tollkeeper.engine.offline.columns.sql import (
    DIALECT,
    SMALL,
    NotExactError,
    own_call,
    sql,
    sql_address,
    sql_binary,
    sql_call,
    sql_is_there,
    sql_join,
    sql_literal,
    sql_not,
    sql_texts,
    sql_where,
)
from tollkeeper.engine.offline.columns.sql_arithmetic import (
    nearest_double,
    sql_arithmetic,
    sql_at_one_scale,
    sql_at_scale,
    sql_choice,
    sql_curve,
    sql_rounded,
)
from tollkeeper.engine.offline.columns.sql_folds import ELEMENT, of_each, sql_fold
from tollkeeper.engine.offline.columns.sql_lists import (
    sql_in_list,
    sql_in_networks,
    sql_table_value,
)
from tollkeeper.engine.offline.columns.sql_numbers import (
    EXACT_DOUBLE,
    SqlValue,
    require_small,
    sql_number,
)
from tollkeeper.engine.programs.compile.functions import LAST_INSTANT, LIMIT
from tollkeeper.engine.programs.compile.numbers import common_scale, magnitude, scale_of
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.vocabulary import Vocabulary

_TEXT_TESTS = {"contains": "contains", "starts with": "starts_with", "ends with": "ends_with"}
_IPV6_BITS = 64
_NODES = "nodes"
_MOST_NODES = 20_000
"""The most nodes of an expression in SQL: where operands are repeated, nesting doubles them."""
_TOO_LONG = "an expression that is too long in SQL"
_COMPARISONS: Mapping[str, type[exp.Binary]] = {
    "==": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


class LetColumn(NamedTuple):
    """The column of `seen` with a let's values, and what must hold of all rows for them to be exact."""

    value: SqlValue
    guards: tuple[exp.Expression, ...]


@dataclass(slots=True)
class Translation:
    """Translates names to the columns of `seen`, which also has `sequence`, `arrived` and `score`.
    `lists` are the account's, `settings` those of each value of the column `situation`; None and
    empty where these columns do not exist.

    `let_columns` are the lets that `seen` has columns for; the expressions of the others are refused.
    Where it is None, a let is written out at each use. `guards` are those of the expressions
    translated so far. `payment` is set in the translation of expressions about a transaction: that of
    its payment.
    """

    vocabulary: Vocabulary
    facts: Mapping[Access, str]
    lets: Sequence[p.Let]
    window: Callable[[p.History], str]
    lists: RecordedLists | None
    settings: Sequence[AccountSettings] = ()
    let_columns: Mapping[int, LetColumn] | None = None
    guards: list[exp.Expression] = field(default_factory=list)
    payment: Translation | None = None

    def test(self, node: p.Expression) -> exp.Expression:
        """A boolean, NULL where it is missing. Raises `NotExactError`."""
        return self.say(node).value

    def say(self, node: p.Expression) -> SqlValue:
        """Raises `NotExactError`."""
        translated = self._say(node)
        if _count_nodes(translated.value) > _MOST_NODES:
            raise NotExactError(_TOO_LONG)
        return translated

    def _say(self, node: p.Expression) -> SqlValue:
        match node:
            case p.Constant():
                return _constant(node)
            case p.Fact() | p.ElementFact() | p.HeaderFact() | p.MetadataFact() | p.Score():
                return self._name(node)
            case p.LetValue():
                return self._let(node.index)
            case p.History():
                return self._window(node)
            case p.TableValue() if self.lists is not None:
                return sql_table_value(node, self.lists, self.test(node.key))
            case p.Arithmetic():
                return sql_arithmetic(node, self.say(node.left), self.say(node.right))
            case p.Negate():
                operand = self.say(node.operand)
                return SqlValue(exp.Neg(this=exp.paren(operand.value)), operand.largest)
            case p.Call():
                return self._call(node)
            case p.Curve():
                nodes = (node.value, *node.bounds)
                return sql_curve(node, list(map(self.say, nodes)), common_scale(nodes))
            case p.EntryCount():
                return SqlValue(own_call("entry_count", *self._entry(node.entry)), SMALL - 1)
            case p.Fold():
                return self._fold(node)
            case _:
                return SqlValue(self._truth(node))

    def double(self, node: p.Expression) -> exp.Expression:
        """A number as a double. Raises `NotExactError`."""
        return sql_at_scale(self.say(node), scale_of(node), None).value

    # Logic

    def _truth(self, node: p.Expression) -> exp.Expression:
        match node:
            case p.Not():
                return sql_not(self.test(node.operand))
            case p.And():
                return sql_join(exp.And, map(self.test, node.operands))
            case p.Or():
                return sql_join(exp.Or, map(self.test, node.operands))
            case p.Compare():
                left, right = self._at_one_type((node.left, node.right))
                return sql_binary(_COMPARISONS[node.operator], left, right)
            case p.Between():
                # Each end by itself: one may decide alone when the other is missing.
                value, low = self._at_one_type((node.value, node.low))
                again, high = self._at_one_type((node.value, node.high))
                ends = (sql_binary(exp.LTE, low, value), sql_binary(exp.LTE, again, high))
                return sql_join(exp.And, ends)
            case p.OneOf():
                return self._one_of(node)
            case p.InNetworks():
                return sql_in_networks(node, self.test(node.value))
            case p.InList() if self.lists is not None:
                operand = self.say(node.value)
                return sql_in_list(node, self.lists, operand, joins=self.payment is None)
            case p.InEntry():
                found = self._in_entry(node)
                return sql_not(found) if node.negated else found
            case p.TextTest():
                operands = (self.test(node.left), self.test(node.right))
                return sql_call(_TEXT_TESTS[node.operator], *operands)
            case p.Matches():
                return functions.text_matches(self.test(node.value), node.pattern, node.ignore_case)
            case p.Presence():
                return self._presence(node)
            case _:
                raise NotExactError(type(node).__name__)

    def _one_of(self, node: p.OneOf) -> exp.Expression:
        value = self.say(node.value).value
        options = [_option(each, scale_of(node.value)) for each in node.options]
        # `NULL NOT IN ()` would be true.
        there = [each for each in options if each is not None]
        found: exp.Expression = (
            exp.In(this=exp.paren(value), expressions=there)
            if there
            else sql_where(sql_is_there(value), exp.false())
        )
        return sql_not(found) if node.negated else found

    def _entry(self, node: p.Expression) -> tuple[exp.Expression, exp.Expression]:
        """SQL for the metadata and for the keys of an entry."""
        assert isinstance(node, p.MetadataFact)
        return self._column(("metadata",)), sql_texts((node.key, *node.inner))

    def _in_entry(self, node: p.InEntry) -> exp.Expression:
        entry, value = self._entry(node.entry), self.say(node.value).value
        match node.value.type:
            case t.Number(scale=None):
                return own_call("double_among", *entry, value)
            case t.Number(scale=scale):
                return own_call("decimal_among", *entry, value, sql_literal(scale))
            case t.Boolean():
                return own_call("truth_among", *entry, value)
            case _:
                return own_call("text_among", *entry, value)

    def _presence(self, node: p.Presence) -> exp.Expression:
        value = self.test(node.operand)
        match node.operand.type:
            case t.Record():
                there: exp.Expression = exp.paren(value)
            case t.Collection():
                # Sent empty says no more than not sent.
                there = sql("len(:value) > 0", value=value)
            case _:
                there = sql_is_there(value)
        return there if node.state == "present" else sql_not(there)

    # Values

    def _column(self, path: Sequence[str]) -> exp.Expression:
        named = self.vocabulary.payment[".".join(path)]
        return exp.column(self.facts[named.access], "seen")

    def _name(
        self, node: p.Fact | p.ElementFact | p.HeaderFact | p.MetadataFact | p.Score
    ) -> SqlValue:
        match node:
            case p.Fact():
                return _column_value(node, self._column(node.path))
            case p.ElementFact():
                named = carried_fact(self.vocabulary.transaction[".".join(node.path)], ELEMENT)
                return _column_value(node, exp.paren(exp.maybe_parse(named, dialect=DIALECT)))
            case p.HeaderFact():
                headers = self._column((node.side, "headers"))
                return SqlValue(functions.header_of(headers, node.name))
            case p.MetadataFact():
                keys = (node.key, *node.inner)
                return functions.metadata_entry(self._column(("metadata",)), keys, node.type)
            case p.Score():
                return SqlValue(exp.column("score", "seen"), 100)

    def _let(self, index: int) -> SqlValue:
        if self.let_columns is None:
            return self.say(self.lets[index].value)
        if index not in self.let_columns:
            raise NotExactError("a let that SQL can't express")
        value, guards = self.let_columns[index]
        counted = (self.payment or self).guards
        there = {id(each) for each in counted}
        counted += [each for each in guards if id(each) not in there]
        return value

    def _window(self, node: p.History) -> SqlValue:
        column = exp.column(self.window(node), "seen")
        match node.type:
            case t.Number(scale=None) | t.Boolean() | t.String() | t.Ip():
                return SqlValue(column)
            case _:
                self.guards.append(sql("abs(:column) <= :most", column=column, most=EXACT_DOUBLE))
                return SqlValue(column, EXACT_DOUBLE)

    def _at_one_type(self, nodes: Sequence[p.Expression]) -> list[exp.Expression]:
        """The values converted to one type, numbers to a common scale."""
        operands = list(map(self.say, nodes))
        if isinstance(nodes[0].type, t.Number):
            operands = sql_at_one_scale(nodes, operands, common_scale(nodes))
        return [each.value for each in operands]

    def _fold(self, node: p.Fold) -> SqlValue:
        elements, guards = self._column(("transactions",)), list[exp.Expression]()
        inner = replace(self, guards=guards, payment=self)
        where = None if node.where is None else inner.test(node.where)
        value = None if node.value is None else inner.say(node.value)
        for each in guards:
            of_all = of_each(elements.copy(), each)
            self.guards.append(sql("NOT list_contains(:of_all, FALSE)", of_all=of_all))
        return sql_fold(node, elements, where, value)

    def _call(self, node: p.Call) -> SqlValue:
        match node.function:
            case "amount_in":
                return self._amount_in(node)
            case "hour" | "weekday":
                return self._at_place(node)
        operands = list(map(self.say, node.arguments))
        values = [each.value for each in operands]
        match node.function:
            case "coalesce":
                return sql_choice(node, operands, lambda given: sql_call("coalesce", *given))
            case "min" | "max":
                name = "least" if node.function == "min" else "greatest"
                return sql_choice(node, operands, lambda given: _extreme(name, given))
            case "abs":
                return SqlValue(exp.Abs(this=values[0]), operands[0].largest)
            case "round":
                return sql_rounded(node, operands[0])
            case "length":
                return SqlValue(sql_call("length", values[0]), SMALL)
            case "left":
                return SqlValue(sql_call("left", *values))
            case "number":
                return SqlValue(functions.number_of_text(values[0]), functions.LARGEST_NUMBER)
            case "ip_network":
                widest = () if len(values) > 2 else (sql_literal(_IPV6_BITS),)
                return SqlValue(own_call("ip_network", *values, *widest))
            case _:
                return SqlValue(functions.of_text(node.function, values[0]))

    def _amount_in(self, node: p.Call) -> SqlValue:
        (wanted,) = node.arguments
        if not isinstance(wanted, p.Constant) or not self.settings:
            raise NotExactError("rates that aren't known")
        amount, currency = self._column(("amount",)), self._column(("currency",))
        rates = [functions.rates_into(str(wanted.value), each) for each in self.settings]
        largest = max(max(each.values()) for each in rates) * _largest(self.vocabulary, "amount")
        require_small(largest)
        return SqlValue(
            _by_situation(rates, lambda each: functions.converted(amount, currency, each)), largest
        )

    def _at_place(self, node: p.Call) -> SqlValue:
        at, *named = node.arguments
        zones = [each.time_zone for each in self.settings]
        if named:
            zones = [str(each.value) for each in named if isinstance(each, p.Constant)]
        if not zones:
            raise NotExactError("a time zone that isn't known")
        instant = self.test(at)
        shown = partial(functions.clock_at, node.function, instant)
        return SqlValue(_by_situation(zones, lambda zone: shown(ZoneInfo(zone))), 23)


def _count_nodes(expression: exp.Expression) -> int:
    """The nodes of an expression, whose parts keep their counts, also those that are copied."""
    if _NODES not in expression.meta:
        walk = expression.walk(prune=lambda each: _NODES in each.meta)
        expression.meta[_NODES] = sum(each.meta.get(_NODES, 1) for each in walk)
    found: int = expression.meta[_NODES]
    return found


def _by_situation(
    known: Sequence[Any], translate: Callable[[Any], exp.Expression]
) -> exp.Expression:
    """A choice by a row's situation; `known` has the value for each."""
    if all(each == known[0] for each in known):
        return translate(known[0])
    arms = [
        exp.If(this=sql("seen.situation = :number", number=number), true=each)
        for number, each in enumerate(map(translate, known))
    ]
    return exp.Case(ifs=arms)


def _extreme(function: str, values: Sequence[exp.Expression]) -> exp.Expression:
    """SQL's `least` or `greatest`, which skip missing values, where none is missing. Raises
    `NotExactError`."""
    if 2 * sum(map(_count_nodes, values)) > _MOST_NODES:
        raise NotExactError(_TOO_LONG)
    are_there = sql_join(exp.And, map(sql_is_there, values))
    return sql_where(are_there, sql_call(function, *(each.copy() for each in values)))


def _column_value(node: p.Fact | p.ElementFact, column: exp.Expression) -> SqlValue:
    match node.type:
        case t.Number(scale=int()):
            return SqlValue(column, magnitude(node))
        case t.Instant():
            return SqlValue(column, LAST_INSTANT)
        case _:
            return SqlValue(column)


def _largest(vocabulary: Vocabulary, name: str) -> int:
    """The largest absolute value of a decimal field, as represented."""
    kind = vocabulary.payment[name].type
    assert isinstance(kind, t.Number)
    assert kind.scale is not None
    return LIMIT if kind.high is None else int(kind.high.scaleb(kind.scale))


def _constant(node: p.Constant) -> SqlValue:
    if isinstance(node.type, t.Ip):
        return SqlValue(sql_address(int(node.value)))
    value = node.value
    if isinstance(value, str | float | bool):
        return SqlValue(sql_literal(value))
    return sql_number(value)


def _option(option: p.Constant, scale: int | None) -> exp.Expression | None:
    """The option as a value of `scale`; None when it has more decimals or digits, and so is never
    met."""
    own = scale_of(option)
    if not isinstance(option.type, t.Number) or own is None:
        return _constant(option).value
    if scale is None:
        return sql_literal(nearest_double(option))
    scaled, rest = divmod(int(option.value) * 10**scale, 10**own)
    return None if rest or abs(scaled) >= LIMIT else sql_literal(scaled)
