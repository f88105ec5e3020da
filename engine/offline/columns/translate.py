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
from functools import reduce
from typing import Any

from sqlglot import exp

from tollkeeper.engine.facts.fields_read import Access
from tollkeeper.engine.programs.compile.functions import (
    DURATION_LIMIT,
    FIRST_INSTANT,
    LAST_INSTANT,
    LIMIT,
)
from tollkeeper.engine.programs.compile.numbers import common_scale, magnitude, scale_of
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.vocabulary import Vocabulary

DIALECT = "duckdb"
EXACT_DOUBLE = 2**53
"""Whole numbers up to this size are doubles exactly."""
_SMALL = 2**62
"""What is smaller can be added to and compared in 64 bits."""
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


class NotExactError(Exception):
    """SQL can't say this exactly."""


@dataclass(frozen=True, slots=True)
class SqlValue:
    """A value in SQL; `largest` is the size at most of a number that is carried as a whole one."""

    value: exp.Expression
    largest: int = 0


@dataclass(slots=True)
class Translation:
    """What names mean in SQL: facts and aggregates by the columns of `seen`,
    which also has `sequence`, `arrived` and `score`. `text_lists` are the lists whose entries are texts.

    `guards` are those of the expressions that were said so far.
    """

    vocabulary: Vocabulary
    facts: Mapping[Access, str]
    lets: Sequence[p.Let]
    window: Callable[[p.History], str]
    text_lists: frozenset[str]
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
            case _:
                return SqlValue(self._truth(node))

    # Logic

    def _truth(self, node: p.Expression) -> exp.Expression:
        match node:
            case p.Not():
                return exp.Not(this=exp.paren(self.test(node.operand)))
            case p.And():
                return _join(exp.And, map(self.test, node.operands))
            case p.Or():
                return _join(exp.Or, map(self.test, node.operands))
            case p.Compare():
                left, right = self._alike((node.left, node.right))
                return _binary(_COMPARISONS[node.operator], left, right)
            case p.Between():
                # Each end by itself: one of them decides alone when the other is missing.
                value, low = self._alike((node.value, node.low))
                again, high = self._alike((node.value, node.high))
                ends = (_binary(exp.LTE, low, value), _binary(exp.LTE, again, high))
                return _join(exp.And, ends)
            case p.OneOf():
                return self._one_of(node)
            case p.InNetworks():
                return self._in_networks(node)
            case p.InList():
                return self._in_list(node)
            case p.TextTest():
                operands = (self.test(node.left), self.test(node.right))
                return _call(_TEXT_TESTS[node.operator], *operands)
            case p.Matches():
                return self._matches(node)
            case p.Presence():
                return self._presence(node)
            case _:
                raise NotExactError(type(node).__name__)

    def _one_of(self, node: p.OneOf) -> exp.Expression:
        value = self.say(node.value).value
        options = [_scaled_option(option, scale_of(node.value)) for option in node.options]
        # An option with more decimals than the value has is never equal to it.
        there = [_literal(option) for option in options if option is not None]
        # `NULL NOT IN ()` would be true.
        found: exp.Expression = (
            exp.In(this=exp.paren(value), expressions=there)
            if there
            else exp.Case(ifs=[exp.If(this=_is_there(value), true=exp.false())])
        )
        return exp.Not(this=exp.paren(found)) if node.negated else found

    def _in_networks(self, node: p.InNetworks) -> exp.Expression:
        value = self.test(node.value)
        spans = []
        for first, bits in node.networks:
            last = first | (1 << (_ADDRESS_BITS - bits)) - 1
            low = _binary(exp.GTE, value.copy(), _address(first))
            spans.append(_join(exp.And, (low, _binary(exp.LTE, value.copy(), _address(last)))))
        found = _join(exp.Or, spans)
        return exp.Not(this=exp.paren(found)) if node.negated else found

    def _in_list(self, node: p.InList) -> exp.Expression:
        if node.list not in self.text_lists:
            raise NotExactError("a list of numbers or addresses")
        value = self.test(node.value)
        entry = {name: exp.column(name, "entry") for name in _ENTRY}
        holds = (
            _binary(exp.EQ, entry["list"], exp.Literal.string(node.list)),
            _binary(exp.EQ, entry["value"], value),
            _binary(exp.LTE, entry["valid_from"], exp.column("sequence", "seen")),
            _open_ended(entry["valid_to"], exp.column("sequence", "seen")),
            _open_ended(_call("epoch_us", entry["expires_at"]), exp.column("arrived", "seen")),
        )
        found = exp.Exists(
            this=exp.select("1").from_("lists AS entry").where(_join(exp.And, holds))
        )
        result = exp.Not(this=found) if node.negated else found
        return exp.Case(ifs=[exp.If(this=_is_there(value.copy()), true=result)])

    def _matches(self, node: p.Matches) -> exp.Expression:
        # Classes and cases of letters beyond ASCII depend on the version of Unicode.
        if not node.pattern.isascii() or "\\p" in node.pattern.lower():
            raise NotExactError("a pattern with classes of Unicode")
        options = "i" if node.ignore_case else "c"
        value = self.test(node.value)
        if node.ignore_case:
            self.guards.append(_is_ascii(value))
        pattern, flags = exp.Literal.string(node.pattern), exp.Literal.string(options)
        return _call("regexp_matches", value, pattern, flags)

    def _presence(self, node: p.Presence) -> exp.Expression:
        value = self.test(node.operand)
        match node.operand.type:
            case t.Record():
                there: exp.Expression = exp.paren(value)
            case t.Collection():
                # Sent empty says no more than not sent.
                there = _binary(exp.GT, _call("len", value), exp.Literal.number(0))
            case _:
                there = _is_there(value)
        return there if node.state == "present" else exp.Not(this=exp.paren(there))

    # Values

    def _fact(self, node: p.Fact) -> SqlValue:
        named = self.vocabulary.payment[".".join(node.path)]
        column = exp.column(self.facts[named.access], "seen")
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
                self.guards.append(_binary(exp.LTE, size, _literal(EXACT_DOUBLE)))
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
            return SqlValue(_as_double(said, 10**scale))
        factor = 10 ** (wanted - scale)
        return _product(said, SqlValue(_literal(factor), factor))

    def _arithmetic(self, node: p.Arithmetic) -> SqlValue:
        left, right = self.say(node.left), self.say(node.right)
        if node.operator == "/":
            return self._quotient(node, left, right)
        match node.type:
            case t.Number(scale=None):
                values = self._at_one_scale((node.left, node.right), None)
                return SqlValue(_finite(_binary(_OPERATIONS[node.operator], *values)))
            case t.Number(scale=scale):
                if node.operator == "*":
                    return _product(left, right)
                left = self._at_scale(left, scale_of(node.left), scale)
                right = self._at_scale(right, scale_of(node.right), scale)
                return _sum(node.operator, left, right)
            case t.Instant():
                return _limit_between(_sum(node.operator, left, right), FIRST_INSTANT, LAST_INSTANT)
            case t.Duration() if node.operator != "*":
                whole = _sum(node.operator, left, right)
                if isinstance(node.left.type, t.Instant):
                    return whole
                return _limit_between(whole, -DURATION_LIMIT, DURATION_LIMIT)
            case _:
                raise NotExactError("a duration times a number")

    def _quotient(self, node: p.Arithmetic, left: SqlValue, right: SqlValue) -> SqlValue:
        scales = scale_of(node.left), scale_of(node.right)
        dividend = self._at_scale(left, scales[0], None) if _counts(node.left) else left
        divisor = self._at_scale(right, scales[1], None) if _counts(node.right) else right
        if not _counts(node.left):
            dividend, divisor = SqlValue(_as_double(left, 1)), SqlValue(_as_double(right, 1))
        quotient = _binary(exp.Div, dividend.value, divisor.value)
        is_there = _binary(exp.NEQ, divisor.value.copy(), exp.Literal.number(0))
        found: exp.Expression = exp.Case(ifs=[exp.If(this=is_there, true=quotient)])
        return SqlValue(found if None not in scales else _finite(found))

    def _call(self, node: p.Call) -> SqlValue:
        match node.function:
            case "coalesce":
                return self._choice(node, lambda values: _call("coalesce", *values))
            case "min" | "max":
                name = "least" if node.function == "min" else "greatest"
                # SQL's own pass over what is missing.
                return self._choice(node, lambda values: _if_all_there(values, name))
            case "abs":
                operand = self.say(node.arguments[0])
                return SqlValue(exp.Abs(this=operand.value), operand.largest)
            case "length":
                return SqlValue(_call("length", self.test(node.arguments[0])), _SMALL)
            case "lower" | "upper" | "email_domain" | "email_local":
                text = self.test(node.arguments[0])
                # Beyond ASCII letters change with the version of Unicode.
                self.guards.append(_is_ascii(text))
                return SqlValue(_OF_TEXT[node.function](text))
            case _:
                raise NotExactError(node.function)

    def _choice(
        self, node: p.Call, choose: Callable[[Sequence[exp.Expression]], exp.Expression]
    ) -> SqlValue:
        if not isinstance(node.type, t.Number):
            return SqlValue(choose([self.test(each) for each in node.arguments]), _SMALL)
        scale = scale_of(node)
        said = [self._at_scale(self.say(each), scale_of(each), scale) for each in node.arguments]
        return SqlValue(choose([each.value for each in said]), max(each.largest for each in said))


_ENTRY = ("list", "value", "valid_from", "valid_to", "expires_at")
_OPERATIONS: Mapping[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_OF_TEXT: Mapping[str, Callable[[exp.Expression], exp.Expression]] = {
    "lower": lambda text: _call("lower", text),
    "upper": lambda text: _call("upper", text),
    "email_domain": lambda text: _or_missing(
        _call("lower", _call("regexp_extract", text, exp.Literal.string("[^@]*$")))
    ),
    "email_local": lambda text: _or_missing(
        _call(
            "regexp_extract",
            text,
            exp.Literal.string("(?s)^(.*)@[^@]*$"),
            exp.Literal.number(1),
        )
    ),
}


def _counts(node: p.Expression) -> bool:
    return isinstance(node.type, t.Number)


def _call(function: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=function, expressions=list(arguments))


def _binary(kind: type[exp.Binary], left: exp.Expression, right: exp.Expression) -> exp.Expression:
    made: Any = kind(this=exp.paren(left), expression=exp.paren(right))
    joined: exp.Expression = made
    return joined


def _join(kind: type[exp.Binary], values: Any) -> exp.Expression:
    joined: exp.Expression = reduce(lambda left, right: _binary(kind, left, right), values)
    return joined


def _is_there(value: exp.Expression) -> exp.Expression:
    return exp.Not(this=exp.paren(exp.Is(this=exp.paren(value), expression=exp.null())))


def _open_ended(end: exp.Expression, at: exp.Expression) -> exp.Expression:
    is_open = exp.Is(this=end.copy(), expression=exp.null())
    return _join(exp.Or, (is_open, _binary(exp.GT, end, at)))


def _if_all_there(values: Sequence[exp.Expression], function: str) -> exp.Expression:
    there = _join(exp.And, [_is_there(value.copy()) for value in values])
    return exp.Case(ifs=[exp.If(this=there, true=_call(function, *values))])


def _or_missing(text: exp.Expression) -> exp.Expression:
    return _call("nullif", text, exp.Literal.string(""))


def _is_ascii(text: exp.Expression) -> exp.Expression:
    return _binary(exp.EQ, _call("strlen", text.copy()), _call("length", text.copy()))


def _literal(value: Any) -> exp.Expression:
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, str):
        # A text may end in SQL's own marks, and hold any character.
        return _call("decode", _call("unhex", exp.Literal.string(value.encode().hex())))
    if isinstance(value, float):
        return exp.cast(exp.Literal.string(repr(value)), "DOUBLE")
    kind = "BIGINT" if abs(value) < _SMALL else "HUGEINT"
    return exp.cast(exp.Literal.string(str(value)), kind)


def _address(value: int) -> exp.Expression:
    return _call("unhex", exp.Literal.string(value.to_bytes(_ADDRESS_BITS // 8).hex()))


def _constant(node: p.Constant) -> SqlValue:
    if isinstance(node.type, t.Ip):
        return SqlValue(_address(int(node.value)))
    value: Any = node.value
    largest = 0 if isinstance(value, str | float | bool) else abs(value)
    _require_small(largest)
    return SqlValue(_literal(value), largest)


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


def _require_small(largest: int) -> None:
    if largest >= LIMIT:
        raise NotExactError("more digits than SQL carries")


def _wide(said: SqlValue, largest: int) -> exp.Expression:
    return said.value if largest < _SMALL else exp.cast(exp.paren(said.value), "HUGEINT")


def _product(left: SqlValue, right: SqlValue) -> SqlValue:
    largest = left.largest * right.largest
    _require_small(largest)
    most = max(largest, left.largest, right.largest)
    return SqlValue(_binary(exp.Mul, _wide(left, most), _wide(right, most)), largest)


def _sum(operator: str, left: SqlValue, right: SqlValue) -> SqlValue:
    largest = left.largest + right.largest
    _require_small(largest)
    return SqlValue(
        _binary(_OPERATIONS[operator], _wide(left, largest), _wide(right, largest)), largest
    )


def _limit_between(said: SqlValue, low: int, high: int) -> SqlValue:
    """The value, missing beyond the ends."""
    within = exp.Between(this=exp.paren(said.value), low=_literal(low), high=_literal(high))
    found = exp.Case(ifs=[exp.If(this=within, true=said.value.copy())])
    return SqlValue(found, min(said.largest, max(abs(low), abs(high))))


def _as_double(said: SqlValue, unit: int) -> exp.Expression:
    if said.largest > EXACT_DOUBLE:
        raise NotExactError("a double of more digits than it has")
    value = exp.cast(exp.paren(said.value), "DOUBLE")
    return value if unit == 1 else _binary(exp.Div, value, _literal(float(unit)))


def _finite(value: exp.Expression) -> exp.Expression:
    is_finite = _call("isfinite", value.copy())
    return exp.Case(ifs=[exp.If(this=is_finite, true=value)])
