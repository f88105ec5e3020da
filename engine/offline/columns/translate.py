"""Checked expressions as SQL that means exactly the same, or not at all.

A value is carried as `grammar/types.py` says, an address as its 16 bytes; NULL is missing, and SQL's
own three-valued logic is the language's. Whole numbers stay below 2 ** 53 where a double may be made
of them, and below 10 ** 38 everywhere: what could leave that is refused (`NotExactError`), as is each
construct on which SQL and the language might differ. What holds of most data and not of all is a
guard: a test that must not be false for any row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from sqlglot import exp

from tollkeeper.engine.facts.fields_read import Access
from tollkeeper.engine.offline.columns import sql_functions as functions
from tollkeeper.engine.offline.columns.sql import (
    SMALL,
    NotExactError,
    if_all_there,
    is_ascii,
    open_ended,
    sql_address,
    sql_binary,
    sql_call,
    sql_is_there,
    sql_join,
    sql_literal,
    sql_not,
    sql_steps,
    sql_where,
)
from tollkeeper.engine.offline.columns.sql_numbers import (
    EXACT_DOUBLE,
    OPERATIONS,
    SqlValue,
    require_small,
    sql_between,
    sql_divided,
    sql_double,
    sql_finite,
    sql_number,
    sql_product,
    sql_sum,
)
from tollkeeper.engine.programs.compile.functions import (
    DURATION_LIMIT,
    FIRST_INSTANT,
    LAST_INSTANT,
    LIMIT,
)
from tollkeeper.engine.programs.compile.numbers import common_scale, magnitude, scale_of
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.vocabulary import Vocabulary

_ADDRESS_BITS = 128
_TEXT_TESTS = {"contains": "contains", "starts with": "starts_with", "ends with": "ends_with"}
_COMPARISONS: Mapping[str, type[exp.Binary]] = {
    "==": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


@dataclass(slots=True)
class Translation:
    """What names mean in SQL: facts and aggregates by the columns of `seen`,
    which also has `sequence`, `arrived` and `score`. `lists` are those whose entries SQL finds, by what
    these are, `settings` the account's by the column `situation`, none where that isn't known.

    `guards` are those of the expressions that were said so far.
    """

    vocabulary: Vocabulary
    facts: Mapping[Access, str]
    lets: Sequence[p.Let]
    window: Callable[[p.History], str]
    lists: Mapping[str, str]
    settings: Sequence[AccountSettings] = ()
    guards: list[exp.Expression] = field(default_factory=list)

    def test(self, node: p.Expression) -> exp.Expression:
        """A boolean, NULL where it is missing. Raises `NotExactError`."""
        return self.say(node).value

    def say(self, node: p.Expression) -> SqlValue:
        """Raises `NotExactError`."""
        match node:
            case p.Constant():
                return _constant(node)
            case p.Fact():
                return self._fact(node)
            case p.Score():
                return SqlValue(exp.column("score", "seen"), 100)
            case p.LetValue():
                return self.say(self.lets[node.index].value)
            case p.History():
                return self._window(node)
            case p.Arithmetic():
                return self._arithmetic(node)
            case p.Negate():
                operand = self.say(node.operand)
                return SqlValue(exp.Neg(this=exp.paren(operand.value)), operand.largest)
            case p.Call():
                return self._call(node)
            case p.Curve():
                return self._curve(node)
            case p.MetadataFact():
                return SqlValue(self._metadata(node))
            case p.HeaderFact():
                return SqlValue(self._header(node))
            case _:
                return SqlValue(self._truth(node))

    def double(self, node: p.Expression) -> exp.Expression:
        """A number as a double. Raises `NotExactError`."""
        return self._at_scale(self.say(node), scale_of(node), None).value

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
                left, right = self._alike((node.left, node.right))
                return sql_binary(_COMPARISONS[node.operator], left, right)
            case p.Between():
                # Each end by itself: one of them decides alone when the other is missing.
                value, low = self._alike((node.value, node.low))
                again, high = self._alike((node.value, node.high))
                ends = (sql_binary(exp.LTE, low, value), sql_binary(exp.LTE, again, high))
                return sql_join(exp.And, ends)
            case p.OneOf():
                return self._one_of(node)
            case p.InNetworks():
                return self._in_networks(node)
            case p.InList():
                return self._in_list(node)
            case p.TextTest():
                operands = (self.test(node.left), self.test(node.right))
                return sql_call(_TEXT_TESTS[node.operator], *operands)
            case p.Matches():
                return self._matches(node)
            case p.Presence():
                return self._presence(node)
            case _:
                raise NotExactError(type(node).__name__)

    def _one_of(self, node: p.OneOf) -> exp.Expression:
        value = self.say(node.value).value
        options = [_scaled_option(option, scale_of(node.value)) for option in node.options]
        # An option with more decimals or digits than the value has is never equal to it.
        there = [sql_literal(option) for option in options if _can_be_met(option)]
        # `NULL NOT IN ()` would be true.
        found: exp.Expression = (
            exp.In(this=exp.paren(value), expressions=there)
            if there
            else sql_where(sql_is_there(value), exp.false())
        )
        return sql_not(found) if node.negated else found

    def _in_networks(self, node: p.InNetworks) -> exp.Expression:
        value = self.test(node.value)
        spans = []
        for first, bits in node.networks:
            last = first | (1 << (_ADDRESS_BITS - bits)) - 1
            low = sql_binary(exp.GTE, value.copy(), sql_address(first))
            spans.append(
                sql_join(exp.And, (low, sql_binary(exp.LTE, value.copy(), sql_address(last))))
            )
        found = sql_join(exp.Or, spans)
        return sql_not(found) if node.negated else found

    def _in_list(self, node: p.InList) -> exp.Expression:
        entry = {name: exp.column(name, "entry") for name in _ENTRY}
        match self.lists.get(node.list):
            case "string":
                value = self.test(node.value)
                entry_value: exp.Expression = entry["value"]
            case "number":
                value = self._at_scale(
                    self.say(node.value), _counted_scale(node.value), t.METADATA_SCALE
                ).value
                entry_value = functions.number_of_entry(entry["value"])
            case _:
                raise NotExactError("a list of addresses")
        holds = (
            sql_binary(exp.EQ, entry["list"], exp.Literal.string(node.list)),
            sql_binary(exp.EQ, entry_value, value),
            sql_binary(exp.LTE, entry["valid_from"], exp.column("sequence", "seen")),
            open_ended(entry["valid_to"], exp.column("sequence", "seen")),
            open_ended(sql_call("epoch_us", entry["expires_at"]), exp.column("arrived", "seen")),
        )
        found = exp.Exists(
            this=exp.select("1").from_("lists AS entry").where(sql_join(exp.And, holds))
        )
        result = exp.Not(this=found) if node.negated else found
        return sql_where(sql_is_there(value.copy()), result)

    def _matches(self, node: p.Matches) -> exp.Expression:
        # Classes and cases of letters beyond ASCII depend on the version of Unicode.
        if not node.pattern.isascii() or "\\p" in node.pattern.lower():
            raise NotExactError("a pattern with classes of Unicode")
        options = "i" if node.ignore_case else "c"
        value = self.test(node.value)
        if node.ignore_case:
            self.guards.append(is_ascii(value))
        pattern, flags = exp.Literal.string(node.pattern), exp.Literal.string(options)
        return sql_call("regexp_matches", value, pattern, flags)

    def _presence(self, node: p.Presence) -> exp.Expression:
        value = self.test(node.operand)
        match node.operand.type:
            case t.Record():
                there: exp.Expression = exp.paren(value)
            case t.Collection():
                # Sent empty says no more than not sent.
                there = sql_binary(exp.GT, sql_call("len", value), exp.Literal.number(0))
            case _:
                there = sql_is_there(value)
        return there if node.state == "present" else sql_not(there)

    # Values

    def _column(self, path: Sequence[str]) -> exp.Expression:
        named = self.vocabulary.payment[".".join(path)]
        return exp.column(self.facts[named.access], "seen")

    def _fact(self, node: p.Fact) -> SqlValue:
        column = self._column(node.path)
        match node.type:
            case t.Number(scale=int()):
                return SqlValue(column, magnitude(node))
            case t.Instant():
                return SqlValue(column, LAST_INSTANT)
            case t.Headers() | t.Metadata():
                raise NotExactError("headers and metadata")
            case _:
                return SqlValue(column)

    def _window(self, node: p.History) -> SqlValue:
        column = exp.column(self.window(node), "seen")
        match node.type:
            case t.Number(scale=None) | t.Boolean() | t.String() | t.Ip():
                return SqlValue(column)
            case _:
                size = exp.Abs(this=column.copy())
                self.guards.append(sql_binary(exp.LTE, size, sql_literal(EXACT_DOUBLE)))
                return SqlValue(column, EXACT_DOUBLE)

    def _alike(self, nodes: Sequence[p.Expression]) -> list[exp.Expression]:
        """The values of one kind, numbers at the scale that all have in common."""
        if not isinstance(nodes[0].type, t.Number):
            return [self.test(node) for node in nodes]
        return self._at_one_scale(nodes, common_scale(nodes))

    def _at_one_scale(
        self, nodes: Sequence[p.Expression], scale: int | None
    ) -> list[exp.Expression]:
        return [self._at_scale(self.say(node), scale_of(node), scale).value for node in nodes]

    def _at_scale(self, said: SqlValue, scale: int | None, wanted: int | None) -> SqlValue:
        if scale == wanted or scale is None:
            return said
        if wanted is None:
            return SqlValue(sql_double(said, 10**scale))
        factor = 10 ** (wanted - scale)
        return sql_product(said, SqlValue(sql_literal(factor), factor))

    def _arithmetic(self, node: p.Arithmetic) -> SqlValue:
        left, right = self.say(node.left), self.say(node.right)
        if node.operator == "/":
            return self._quotient(node, left, right)
        match node.type:
            case t.Number(scale=None):
                values = self._at_one_scale((node.left, node.right), None)
                return SqlValue(sql_finite(sql_binary(OPERATIONS[node.operator], *values)))
            case t.Number(scale=scale):
                if node.operator == "*":
                    return sql_product(left, right)
                left = self._at_scale(left, scale_of(node.left), scale)
                right = self._at_scale(right, scale_of(node.right), scale)
                return sql_sum(node.operator, left, right)
            case t.Instant():
                return sql_between(sql_sum(node.operator, left, right), FIRST_INSTANT, LAST_INSTANT)
            case t.Duration() if node.operator != "*":
                whole = sql_sum(node.operator, left, right)
                if isinstance(node.left.type, t.Instant):
                    return whole
                return sql_between(whole, -DURATION_LIMIT, DURATION_LIMIT)
            case _:
                return self._duration_times(node, left, right)

    def _quotient(self, node: p.Arithmetic, left: SqlValue, right: SqlValue) -> SqlValue:
        scales = scale_of(node.left), scale_of(node.right)
        dividend = self._at_scale(left, scales[0], None) if _counts(node.left) else left
        divisor = self._at_scale(right, scales[1], None) if _counts(node.right) else right
        if not _counts(node.left):
            dividend, divisor = SqlValue(sql_double(left, 1)), SqlValue(sql_double(right, 1))
        quotient = sql_binary(exp.Div, dividend.value, divisor.value)
        is_number = sql_binary(exp.NEQ, divisor.value.copy(), exp.Literal.number(0))
        found = sql_where(is_number, quotient)
        return SqlValue(found if None not in scales else sql_finite(found))

    def _duration_times(self, node: p.Arithmetic, left: SqlValue, right: SqlValue) -> SqlValue:
        scale = scale_of(node.left if _counts(node.left) else node.right)
        if scale is None:
            raise NotExactError("a duration times a double")
        product = sql_product(left, right)
        whole = sql_divided(product, 10**scale) if scale else product
        return sql_between(whole, -DURATION_LIMIT, DURATION_LIMIT)

    def _curve(self, node: p.Curve) -> SqlValue:
        value, *bounds = self._alike((node.value, *node.bounds))
        amounts = [self._at_scale(_constant(each), scale_of(each), None) for each in node.amounts]
        found = sql_where(
            sql_is_there(value.copy()), sql_steps(value, bounds, [each.value for each in amounts])
        )
        if node.absent is None:
            return SqlValue(found)
        absent = self._at_scale(_constant(node.absent), scale_of(node.absent), None)
        return SqlValue(sql_call("coalesce", found, absent.value))

    def _metadata(self, node: p.MetadataFact) -> exp.Expression:
        entries = self._column(("metadata",))
        found, guard = functions.metadata_entry(entries, (node.key, *node.inner), node.type)
        self.guards.extend([guard] if guard is not None else [])
        return found

    def _header(self, node: p.HeaderFact) -> exp.Expression:
        found, guard = functions.header_of(self._column((node.side, "headers")), node.name)
        self.guards.append(guard)
        return found

    def _call(self, node: p.Call) -> SqlValue:
        match node.function:
            case "coalesce":
                return self._choice(node, lambda values: sql_call("coalesce", *values))
            case "min" | "max":
                name = "least" if node.function == "min" else "greatest"
                # SQL's own pass over what is missing.
                return self._choice(node, lambda values: if_all_there(values, name))
            case "abs":
                operand = self.say(node.arguments[0])
                return SqlValue(exp.Abs(this=operand.value), operand.largest)
            case "round":
                return self._rounded(node)
            case "length":
                return SqlValue(sql_call("length", self.test(node.arguments[0])), SMALL)
            case "left":
                text, characters = map(self.test, node.arguments)
                return SqlValue(sql_call("left", text, characters))
            case "number":
                found, guard = functions.number_of_text(self.test(node.arguments[0]))
                self.guards.append(guard)
                return SqlValue(found, functions.LARGEST_NUMBER)
            case "hour" | "weekday":
                return self._at_place(node)
            case "amount_in":
                return self._amount_in(node)
            case "lower" | "upper" | "email_domain" | "email_local":
                text = self.test(node.arguments[0])
                # Beyond ASCII letters change with the version of Unicode.
                self.guards.append(is_ascii(text))
                return SqlValue(functions.OF_TEXT[node.function](text))
            case _:
                raise NotExactError(node.function)

    def _rounded(self, node: p.Call) -> SqlValue:
        given = node.arguments[0]
        source, wanted = scale_of(given), scale_of(node)
        if source is None or wanted is None:
            raise NotExactError("a double rounded")
        said = self.say(given)
        if source <= wanted:
            return self._at_scale(said, source, wanted)
        return sql_divided(said, 10 ** (source - wanted))

    def _amount_in(self, node: p.Call) -> SqlValue:
        (wanted,) = node.arguments
        if not isinstance(wanted, p.Constant) or not self.settings:
            raise NotExactError("rates that aren't known")
        amount, currency = self._column(("amount",)), self._column(("currency",))
        rates = [functions.rates_into(str(wanted.value), each) for each in self.settings]
        largest = max(max(each.values()) for each in rates) * _largest(self.vocabulary, "amount")
        require_small(largest)
        by_situation = [functions.converted(amount, currency, each) for each in rates]
        if all(each == rates[0] for each in rates):
            return SqlValue(by_situation[0], largest)
        arms = [
            exp.If(
                this=sql_binary(exp.EQ, exp.column("situation", "seen"), sql_literal(at)), true=each
            )
            for at, each in enumerate(by_situation)
        ]
        return SqlValue(exp.Case(ifs=arms), largest)

    def _at_place(self, node: p.Call) -> SqlValue:
        instant, *named = node.arguments
        zones = {each.time_zone for each in self.settings}
        if named:
            zones = {str(each.value) for each in named if isinstance(each, p.Constant)}
        if len(zones) != 1:
            raise NotExactError("time zones that change")
        (zone,) = map(ZoneInfo, zones)
        local, guard = functions.local_time(self.test(instant), zone)
        self.guards.append(guard)
        if node.function == "hour":
            return SqlValue(functions.hour_of(local), 23)
        return SqlValue(functions.weekday_of(local))

    def _choice(
        self, node: p.Call, choose: Callable[[Sequence[exp.Expression]], exp.Expression]
    ) -> SqlValue:
        if not isinstance(node.type, t.Number):
            return SqlValue(choose([self.test(each) for each in node.arguments]), SMALL)
        scale = scale_of(node)
        said = [self._at_scale(self.say(each), scale_of(each), scale) for each in node.arguments]
        return SqlValue(choose([each.value for each in said]), max(each.largest for each in said))


_ENTRY = ("list", "value", "valid_from", "valid_to", "expires_at")


def _counts(node: p.Expression) -> bool:
    return isinstance(node.type, t.Number)


def _largest(vocabulary: Vocabulary, name: str) -> int:
    """The size at most of a field that is a decimal, as it is carried."""
    kind = vocabulary.payment[name].type
    assert isinstance(kind, t.Number)
    assert kind.scale is not None
    return LIMIT if kind.high is None else int(kind.high.scaleb(kind.scale))


def _counted_scale(node: p.Expression) -> int:
    """The scale of a number that an entry of a list may equal whatever its digits are."""
    scale = scale_of(node)
    if scale is None or scale > t.METADATA_SCALE:
        raise NotExactError("a number that entries of lists have too few decimals for")
    return scale


def _constant(node: p.Constant) -> SqlValue:
    if isinstance(node.type, t.Ip):
        return SqlValue(sql_address(int(node.value)))
    value = node.value
    if isinstance(value, str | float | bool):
        return SqlValue(sql_literal(value))
    return sql_number(value)


def _can_be_met(option: Any) -> bool:
    return option is not None and (not isinstance(option, int) or abs(option) < LIMIT)


def _scaled_option(option: p.Constant, scale: int | None) -> Any:
    """The option's value as one of `scale`; None when it has more decimals."""
    own, value = scale_of(option), option.value
    if not isinstance(option.type, t.Number) or own is None:
        if isinstance(option.type, t.Ip):
            raise NotExactError("addresses one by one")
        return value
    if scale is None:
        raise NotExactError("a double among decimals")
    scaled, rest = divmod(int(value) * 10**scale, 10**own)
    return None if rest else scaled
