"""Checked programs for property tests, built directly and well typed over the whole vocabulary.

`rules` draws a rule with lets, conditions and aggregates over history. Constants come from the
pools that `payments.py` fills payments from, so that they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any

from hypothesis import strategies as st

from tollkeeper.engine.intake.addresses import address_number
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import literals, ranges
from tollkeeper.grammar.checker.names import METADATA_NUMBER, SCORE
from tollkeeper.grammar.syntax import Span
from tollkeeper.tests.engine.programs.compile.payments import (
    ADDRESSES,
    COLUMNS,
    CURRENCIES,
    LISTS,
    TABLES,
    TEXTS,
    VOCABULARY,
)

NUMBERS = (
    "0", "0.00", "1", "1", "10", "10.00", "9.99", "9.990", "10.01", "10.010", "10.001", "0.1", "0.3",
    "0.5", "0.6", "0.605", "0.01", "2", "50", "2000", "1000000.0000001",
    "99999999999999999999999999999999999999", "99999999999999999999999999999999999999",
    "9999999999999999999999999999999999999", "10000000000000000000", "0.00000000000000000000000000000000000001",
)  # fmt: skip
DURATIONS = (0, 1, 1_000_000, 86_400_000_000, 10**18)
INSTANTS = (0, 1_743_312_600_000_000, -62_135_596_800_000_000, 253_402_300_799_999_999)
PATTERNS = ("a", "^a", "[0-9]+$", "(?i)VISA", "", "😀", "(a|b)*c?")
NETWORKS = ((0xFFFF_0A00_0000, 104), (0xFFFF_0102_0304, 128), (0x2001_0DB8 << 96, 32), (0, 0))
ZONES = ("America/Sao_Paulo", "UTC", "Pacific/Kiritimati")
HISTORIES = ("count", "sum", "avg", "any", "age", "min", "first", "since", "streak", "decay")
SCALARS = ("boolean", "number", "text", "ip", "instant", "duration")
_KINDS: dict[type[t.Type], str] = {
    t.Boolean: "boolean",
    t.Number: "number",
    t.String: "text",
    t.Ip: "ip",
    t.Instant: "instant",
    t.Duration: "duration",
}
_OF_KIND: dict[str, t.Type] = {
    "boolean": t.Boolean(),
    "text": t.String(),
    "ip": t.Ip(),
    "instant": t.Instant(),
    "duration": t.Duration(),
}
_BOOLEAN = t.Boolean()


@dataclass
class Maker:
    """Draws expressions of one program; `lets` and `histories` are those it has so far."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    lets: list[p.Let] = field(default_factory=list)
    histories: list[p.History] = field(default_factory=list)
    ids: Any = field(default_factory=count)

    def place(self) -> tuple[int, Span]:
        number = next(self.ids)
        return number, Span(number, number + 1)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.draw(st.integers(0, len(options) - 1))]

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    # Leaves

    def constant(self, kind: str) -> p.Constant:
        match kind:
            case "boolean":
                return p.Constant(*self.place(), _BOOLEAN, self.pick((True, False)))
            case "number":
                text = self.pick(("", "", "-")) + self.pick(NUMBERS)
                whole, _, decimals = text.partition(".")
                number = t.Number(len(decimals), Decimal(text), Decimal(text))
                return p.Constant(*self.place(), number, int(whole + decimals))
            case "text":
                return p.Constant(*self.place(), t.String(), self.pick(TEXTS))
            case "ip":
                address = address_number(self.pick(ADDRESSES))
                assert address is not None
                return p.Constant(*self.place(), t.Ip(), address)
            case "instant":
                return p.Constant(*self.place(), t.Instant(), self.pick(INSTANTS))
            case _:
                return p.Constant(*self.place(), t.Duration(), self.pick(DURATIONS))

    def name(self, kind: str, where: str = "payment") -> p.Expression:
        """A field, header, metadata entry, let, aggregate or the score."""
        found: list[Callable[[], p.Expression]] = []
        fields = [f for f in VOCABULARY.payment.values() if _KINDS.get(type(f.type)) == kind]
        if fields:
            found.append(lambda: self.fact(self.pick(fields)))
        if where == "element":
            inner = [f for f in VOCABULARY.transaction.values() if _KINDS.get(type(f.type)) == kind]
            if inner:
                found += [lambda: self.element(self.pick(inner))] * 3
        lets = [i for i, let in enumerate(self.lets) if _KINDS[type(let.value.type)] == kind]
        if lets:
            found += [lambda: self.let(self.pick(lets))] * 3
        if kind == "text":
            found.append(self.header)
        if kind in ("text", "boolean", "number"):
            found.append(lambda: self.metadata(kind))
        if kind in ("text", "boolean", "number"):
            found.append(lambda: self.table(kind))
        if kind == "number":
            found.append(lambda: p.Score(*self.place(), SCORE))
        histories = [h for h in self.histories if _KINDS[type(h.type)] == kind]
        if histories:
            found.append(lambda: self.pick(histories))
        if not found:
            return self.constant(kind)
        return self.pick(found)()

    def fact(self, known: Any) -> p.Expression:
        return p.Fact(*self.place(), known.type, known.path)

    def element(self, known: Any) -> p.Expression:
        return p.ElementFact(*self.place(), known.type, known.path)

    def let(self, index: int) -> p.Expression:
        return p.LetValue(*self.place(), self.lets[index].value.type, index)

    def header(self) -> p.Expression:
        name = self.pick(("user-agent", "x-a", "x-c"))
        return p.HeaderFact(*self.place(), t.String(), self.pick(("device", "backend")), name)

    def metadata(self, kind: str) -> p.Expression:
        of = METADATA_NUMBER if kind == "number" else _OF_KIND[kind]
        return p.MetadataFact(*self.place(), of, self.pick("abc"))

    def table(self, kind: str) -> p.Expression:
        name = self.pick(tuple(TABLES))
        column = {"text": "text", "number": "amount", "boolean": "flag"}[kind]
        key = self.name("ip" if name == "places" else "text")
        return p.TableValue(*self.place(), COLUMNS[column], name, key, column)

    # Expressions

    def make(self, kind: str, depth: int, where: str = "payment") -> p.Expression:
        if depth <= 0 or self.chance(10):
            return self.constant(kind) if self.chance(30) else self.name(kind, where)
        match kind:
            case "boolean":
                return self.boolean(depth - 1, where)
            case "number":
                return self.number(depth - 1, where)
            case "text":
                return self.text(depth - 1, where)
            case "instant" | "duration":
                return self.time(kind, depth - 1, where)
            case _:
                return self.coalesce(kind, depth - 1, where)

    def boolean(self, depth: int, where: str) -> p.Expression:
        forms = (
            "and", "or", "and", "or", "not", "compare", "compare", "compare", "between", "one of",
            "networks", "list", "text", "matches", "presence", "coalesce", "fold", "booleans",
        )  # fmt: skip
        form = self.pick(forms)
        match form:
            case "and" | "or":
                size = self.draw(st.integers(2, 3))
                parts = tuple(self.make("boolean", depth, where) for _ in range(size))
                return (p.And if form == "and" else p.Or)(*self.place(), _BOOLEAN, parts)
            case "not":
                return p.Not(*self.place(), _BOOLEAN, self.make("boolean", depth, where))
            case "compare":
                return self.compare(depth, where)
            case "booleans":
                sides = self.name("boolean"), self.pick((self.constant, self.name))("boolean")
                return p.Compare(*self.place(), _BOOLEAN, self.pick(("==", "!=")), *sides)
            case "between":
                kind = self.pick(("number", "instant", "duration"))
                value = self.make(kind, self.pick((0, depth)), where)
                ends = [self.end(kind, depth, where) for _ in range(2)]
                return p.Between(*self.place(), _BOOLEAN, value, *ends)
            case "one of":
                kind = self.pick(SCALARS)
                options = tuple(self.constant(kind) for _ in range(self.pick((1, 2, 4))))
                value = self.make(kind, depth, where)
                return p.OneOf(*self.place(), _BOOLEAN, value, options, self.chance(50))
            case "networks":
                networks = tuple(self.pick(NETWORKS) for _ in range(self.pick((1, 2, 3))))
                value = self.make("ip", depth, where)
                return p.InNetworks(*self.place(), _BOOLEAN, value, networks, self.chance(50))
            case "list":
                name = self.pick((*LISTS, "unknown"))
                kind = {"strings": "text", "numbers": "number"}.get(name, "ip")
                value = self.make(kind, depth, where)
                return p.InList(*self.place(), _BOOLEAN, value, name, self.chance(50))
            case "text":
                operator = self.pick(("contains", "starts with", "ends with"))
                sides = self.make("text", depth, where), self.make("text", depth, where)
                return p.TextTest(*self.place(), _BOOLEAN, operator, *sides)
            case "matches":
                value = self.make("text", depth, where)
                return p.Matches(
                    *self.place(), _BOOLEAN, value, self.pick(PATTERNS), self.chance(50)
                )
            case "presence":
                return p.Presence(
                    *self.place(),
                    _BOOLEAN,
                    self.presented(depth),
                    self.pick(("missing", "present")),
                )
            case "fold" if where == "payment":
                where_ = self.make("boolean", depth, "element")
                return p.Fold(*self.place(), _BOOLEAN, self.pick(("any", "all")), None, where_)
            case _:
                return self.coalesce("boolean", depth, where)

    def end(self, kind: str, depth: int, where: str) -> p.Expression:
        return self.constant(kind) if self.chance(60) else self.make(kind, depth, where)

    def presented(self, depth: int) -> p.Expression:
        if self.chance(40):
            records = (t.Record, t.Collection, t.Headers, t.Metadata)
            known = self.pick(
                [f for f in VOCABULARY.payment.values() if isinstance(f.type, records)]
            )
            return self.fact(known)
        if self.chance(20):
            return p.MetadataFact(*self.place(), t.Metadata(), self.pick("abc"))
        return self.make(self.pick(SCALARS), depth)

    def compare(self, depth: int, where: str) -> p.Expression:
        kind = self.pick(("number", "number", "number", "text", "ip", "instant", "duration"))
        signs = ("==", "!=", "<", "<=", ">", ">=") if kind not in ("text", "ip") else ("==", "!=")
        left = self.make(kind, self.pick((0, depth)), where)
        right = self.constant(kind) if self.chance(50) else self.make(kind, depth, where)
        sides = (left, right) if self.chance(80) else (right, left)
        return p.Compare(*self.place(), _BOOLEAN, self.pick(signs), *sides)

    def number(self, depth: int, where: str) -> p.Expression:
        form = self.pick(
            (
                *("sum", "sum", "product", "quotient", "negate", "call", "call", "fold", "fold"),
                *("spans", "curve", "curve"),
            )
        )
        if form in ("sum", "product", "quotient"):
            sides = self.make("number", depth, where), self.large_or_made(depth, where)
            operator = {"product": "*", "quotient": "/"}.get(form) or self.pick("+-")
            return self.arithmetic(operator, *sides)
        match form:
            case "negate":
                operand = self.make("number", depth, where)
                kind = ranges.opposite(_number(operand))
                return p.Negate(*self.place(), kind, operand)
            case "spans":
                sides = self.make("duration", depth, where), self.make("duration", depth, where)
                return p.Arithmetic(*self.place(), t.Number(None), "/", *sides)
            case "curve":
                return self.curve(depth, where)
            case "fold" if where == "payment":
                return self.fold(depth)
            case _:
                return self.call(depth, where)

    def curve(self, depth: int, where: str) -> p.Curve:
        kind = self.pick(("number", "number", "duration"))
        bounds = {literals.decimal(each): each for each in (self.constant(kind) for _ in range(3))}
        steps = [bounds[at] for at in sorted(bounds)][: self.pick((0, 1, 3))]
        amounts = tuple(self.constant("number") for _ in range(len(steps) + 1))
        absent = self.constant("number") if self.chance(50) else None
        value = self.make(kind, depth, where)
        return p.Curve(*self.place(), t.Number(None), value, None, tuple(steps), amounts, absent)

    def large_or_made(self, depth: int, where: str) -> p.Expression:
        """A number; one in five is a constant that has nearly too many digits."""
        if not self.chance(20):
            return self.make("number", depth, where)
        digits = 10 ** self.pick((24, 36, 38)) - 1
        exact = Decimal(digits)
        return p.Constant(*self.place(), t.Number(0, exact, exact), digits)

    def arithmetic(self, operator: Any, left: p.Expression, right: p.Expression) -> p.Expression:
        a, b = _number(left), _number(right)
        kind: t.Number | None = t.Number(None)
        if operator == "*":
            kind = ranges.product(a, b)
        elif operator != "/":
            kind = ranges.total(a, b if operator == "+" else ranges.opposite(b))
        if kind is None:
            return left
        return p.Arithmetic(*self.place(), kind, operator, left, right)

    def call(self, depth: int, where: str) -> p.Expression:
        whole = t.Number(0, Decimal(0))
        match self.pick(
            (
                "abs",
                "round",
                "min",
                "max",
                "coalesce",
                "length",
                "number",
                "hour",
                "amount",
                "entropy",
            )
        ):
            case "abs":
                value = self.make("number", depth, where)
                return p.Call(*self.place(), ranges.magnitude(_number(value)), "abs", (value,))
            case "round":
                value, decimals = self.make("number", depth, where), self.pick((0, 1, 2, 12))
                places = p.Constant(*self.place(), t.Number(0), decimals)
                kind = ranges.rounded_range(_number(value), decimals)
                given = (value, places) if decimals or self.chance(50) else (value,)
                return p.Call(*self.place(), kind, "round", given)
            case "min" | "max" as name:
                size = self.pick((2, 3))
                others = [self.make("number", depth, where) for _ in range(size - 1)]
                given = (*others, self.large_or_made(depth, where))
                return p.Call(*self.place(), ranges.widest(map(_number, given)), name, given)
            case "coalesce":
                return self.coalesce("number", depth, where)
            case "length":
                return p.Call(*self.place(), whole, "length", (self.make("text", depth, where),))
            case "number":
                text = self.make("text", depth, where)
                return p.Call(*self.place(), METADATA_NUMBER, "number", (text,))
            case "hour":
                kind = t.Number(0, Decimal(0), Decimal(23))
                return p.Call(*self.place(), kind, "hour", self.moment(depth, where))
            case "amount":
                wanted = p.Constant(*self.place(), t.String(), self.pick(CURRENCIES))
                return p.Call(*self.place(), t.Number(12, Decimal(0)), "amount_in", (wanted,))
            case _:
                text = self.make("text", depth, where)
                return p.Call(*self.place(), t.Number(None, Decimal(0)), "entropy", (text,))

    def moment(self, depth: int, where: str) -> tuple[p.Expression, ...]:
        at = self.make("instant", depth, where)
        zone = p.Constant(*self.place(), t.String(), self.pick(ZONES))
        return (at, zone) if self.chance(50) else (at,)

    def text(self, depth: int, where: str) -> p.Expression:
        match self.pick(("function", "function", "weekday", "network", "coalesce")):
            case "function":
                name = self.pick(("lower", "upper", "email_domain", "email_local", "left"))
                given: tuple[p.Expression, ...] = (self.make("text", depth, where),)
                if name == "left":
                    size = self.pick((0, 1, 6, 1000))
                    given += (p.Constant(*self.place(), t.Number(0), size),)
                return p.Call(*self.place(), t.String(), name, given)
            case "weekday":
                return p.Call(*self.place(), t.String(), "weekday", self.moment(depth, where))
            case "network":
                bits = [
                    p.Constant(*self.place(), t.Number(0), self.pick(options))
                    for options in ((0, 8, 24, 32), (0, 48, 64, 128))
                ]
                given = (self.make("ip", depth, where), *bits[: self.pick((1, 2))])
                return p.Call(*self.place(), t.String(), "ip_network", given)
            case _:
                return self.coalesce("text", depth, where)

    def coalesce(self, kind: str, depth: int, where: str) -> p.Expression:
        given = tuple(self.make(kind, depth, where) for _ in range(self.pick((1, 2, 3))))
        of = ranges.widest(map(_number, given)) if kind == "number" else _OF_KIND[kind]
        return p.Call(*self.place(), of, "coalesce", given)

    def time(self, kind: str, depth: int, where: str) -> p.Expression:
        form = self.pick(("arithmetic", "arithmetic", "coalesce", "extreme", "other"))
        of = _OF_KIND[kind]
        if form == "coalesce":
            return self.coalesce(kind, depth, where)
        if form == "extreme":
            given = (self.make(kind, depth, where), self.make(kind, depth, where))
            return p.Call(*self.place(), of, self.pick(("min", "max")), given)
        if kind == "instant":
            at, span = self.make("instant", depth, where), self.make("duration", depth, where)
            operator = self.pick("+-")
            sides = (span, at) if operator == "+" and self.chance(50) else (at, span)
            return p.Arithmetic(*self.place(), of, operator, *sides)
        one = self.make("duration", depth, where)
        match (
            self.pick(("negate", "abs", "sum", "instants", "times")) if form == "other" else "sum"
        ):
            case "negate":
                return p.Negate(*self.place(), of, one)
            case "abs":
                return p.Call(*self.place(), of, "abs", (one,))
            case "instants":
                ends = self.make("instant", depth, where), self.make("instant", depth, where)
                return p.Arithmetic(*self.place(), of, "-", *ends)
            case "times":
                factor = self.make("number", depth, where)
                sides = (one, factor) if self.chance(50) else (factor, one)
                return p.Arithmetic(*self.place(), of, "*", *sides)
            case _:
                other = self.make("duration", depth, where)
                return p.Arithmetic(*self.place(), of, self.pick("+-"), one, other)

    def fold(self, depth: int) -> p.Expression:
        where = self.make("boolean", depth, "element") if self.chance(60) else None
        name = self.pick(
            ("count", "sum", "min", "min", "max", "avg", "avg", "distinct", "distinct")
        )
        if name == "count":
            return p.Fold(*self.place(), t.Number(0, Decimal(0)), name, None, where)
        if name == "distinct":
            value = self.make(self.pick(SCALARS), depth, "element")
            return p.Fold(*self.place(), t.Number(0, Decimal(0)), name, value, where)
        value = self.make("number", self.pick((0, 0, depth)), "element")
        kind = _number(value)
        result = {"sum": t.Number(kind.scale), "avg": t.Number(None)}.get(name, kind)
        return p.Fold(*self.place(), result, name, value, where)

    def history(self, name: Any) -> p.History:
        """An aggregate over history."""
        by = (p.Fact(*self.place(), t.String(), ("user", "id")),)
        amount = None
        kind: t.Type = _BOOLEAN
        if name in ("sum", "avg", "min"):
            known = VOCABULARY.payment["amount"]
            amount = self.fact(known)
            kind = {"sum": t.Number(2, Decimal(0)), "avg": t.Number(None)}.get(name, known.type)
        elif name == "count":
            kind = t.Number(0, Decimal(0))
        elif name in ("age", "since"):
            kind = t.Duration()
        elif name == "streak":
            kind = t.Number(0, Decimal(0), Decimal(100))
        elif name == "decay":
            kind = t.Number(6, Decimal(0))
        series = p.Series("payments", None, by, None, amount)
        over = None if name in ("age", "first", "since", "streak") else 1
        return p.History(*self.place(), kind, name, series, by, over, self.chance(30))


def _number(node: p.Expression) -> t.Number:
    assert isinstance(node.type, t.Number)
    return node.type


@st.composite
def rules(draw: Any, depth: int = 4) -> p.Rule:
    """A rule of a few lets and conditions."""
    maker = Maker(draw)
    maker.histories.extend(maker.history(name) for name in HISTORIES)
    for index in range(draw(st.integers(0, 4))):
        value = maker.make(maker.pick(SCALARS), depth - 1)
        maker.lets.append(p.Let(f"let_{index}", value.span, value))
    conditions = tuple(
        p.Condition(*maker.place(), f"c{index}", None, maker.make("boolean", depth), "deny")
        for index in range(draw(st.integers(1, 3)))
    )
    return rule(conditions, tuple(maker.lets), tuple(maker.histories))


def rule(
    conditions: tuple[p.Condition, ...],
    lets: tuple[p.Let, ...] = (),
    histories: tuple[p.History, ...] = (),
) -> p.Rule:
    """A rule of these parts."""
    return p.Rule("generated", None, (), (), lets, conditions, None, histories, ())
