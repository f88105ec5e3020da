"""Checked expressions as formulas over a payment of which only what they read is spoken of.

Every formula is exact or allows more than the interpreter does, so what no assignment meets no
payment meets. Where it allows more (`Opaque`: doubles, `entropy`, `lower`, …), an assignment is
brought back to the engine's own functions by `search.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter
from typing import Any
from zoneinfo import ZoneInfo

import z3

from tollkeeper.engine.offline.prove import clock, texts
from tollkeeper.engine.offline.prove.payment import TRANSACTIONS, PaymentSource
from tollkeeper.engine.offline.prove.terms import (
    FALSE_TERM,
    TRUE_TERM,
    Formula,
    SmtTerm,
    UnsayableError,
    all_of,
    any_of,
    constant_term,
    decimal_places,
    decimals_alike,
    logical_and,
    logical_or,
    real,
    scale_term,
    sort_of,
    text_value,
)
from tollkeeper.engine.programs.compile import functions
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.reckoning import alike, double, lift, limit_to_type
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_EPSILON = z3.Q(1, 2**51)
"""More than the relative error of a double's operation on operands that were rounded once each."""
_TINY = z3.Q(1, 2**1000)
_SURELY_FINITE = z3.Q(2**1000, 1)
_BOOLEAN = t.Boolean()
_FALSE_WITHOUT = {"any": False, "all": True}

Compute = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Opaque:
    """An application of a function that the solver does not know: `compute` is the engine's own.

    It takes the arguments as the interpreter reckons with them, and gives None for missing.
    """

    there: Formula
    value: Formula
    type: t.Type
    arguments: tuple[SmtTerm, ...]
    compute: Compute


class Encoder:
    """Formulas of one or two programs over one payment.

    `assumed` holds for every payment that the interface accepts, as far as `source` was asked for
    fields; `opaque` are the applications whose values are to be compared with the engine's.
    `histories` are the aggregates over history by their digests, `lists` and `rows` what was asked
    of lists and tables: (name, looked-up value, formula of the answer).
    """

    def __init__(self, source: PaymentSource) -> None:
        self.source = source
        self.assumed: list[Formula] = []
        self.hints: list[Formula] = []
        self.opaque: list[Opaque] = []
        self.histories: dict[str, tuple[p.History, SmtTerm, EncodedProgram]] = {}
        self.lists: list[tuple[str, SmtTerm, Formula]] = []
        self.rows: list[tuple[p.TableValue, SmtTerm, SmtTerm]] = []
        self.rates: dict[str, tuple[Formula, Formula]] = {}
        self.score: SmtTerm | None = None
        self._applied: dict[str, SmtTerm] = {}
        self._fresh = 0

    def fresh(self, kind: Formula, name: str) -> Formula:
        self._fresh += 1
        return z3.Const(f"{name}!{self._fresh}", kind)

    def assume(self, formula: Formula) -> None:
        self.assumed.append(formula)

    def hint(self, formula: Formula) -> None:
        """States where the solver had better look first; nothing is concluded from it."""
        self.hints.append(formula)

    def variable(self, name: str, kind: t.Type) -> SmtTerm:
        """A value that nothing is known of but its type's bounds."""
        term = SmtTerm(z3.Bool(f"{name}?"), z3.Const(name, sort_of(kind)), kind)
        self._assume_bounds(term)
        return term

    def asked_score(self, kind: t.Type) -> SmtTerm:
        """The score; a payment that a rule looks at always has one."""
        if self.score is None:
            self.score = SmtTerm(TRUE_TERM, z3.Int("score"), kind)
            self._assume_bounds(self.score)
        return self.score

    def apply(
        self, name: str, arguments: Sequence[SmtTerm], kind: t.Type, compute: Compute
    ) -> SmtTerm:
        """The function's value, equal for equal arguments; missing when an argument is."""
        sorts = [each.value.sort() for each in arguments]
        values = [each.value for each in arguments]
        key = f"{name}({', '.join(each.sexpr() for each in values)})"
        if key not in self._applied:
            gives = z3.Function(name, *sorts, sort_of(kind))(*values)
            exists = z3.Function(f"{name}?", *sorts, z3.BoolSort())(*values)
            self.opaque.append(Opaque(exists, gives, kind, tuple(arguments), compute))
            self._applied[key] = SmtTerm(exists, gives, kind)
            self._assume_bounds(self._applied[key])
        found = self._applied[key]
        there = [each.there for each in arguments]
        return SmtTerm(all_of([*there, found.there]), found.value, kind)

    def _assume_bounds(self, term: SmtTerm) -> None:
        if bounds := bounds_of(term):
            self.assume(all_of(bounds))


def bounds_of(term: SmtTerm) -> list[Formula]:
    """What holds for every value of the term's type."""
    value = term.value
    match term.type:
        case t.String(choices=tuple(choices)):
            return [value >= 0, value < len(choices)]
        case t.Number(scale=int(scale), low=low, high=high):
            limit = functions.LIMIT
            least = -limit + 1 if low is None else int(low.scaleb(scale))
            most = limit - 1 if high is None else int(high.scaleb(scale))
            return [value >= least, value <= most]
        case t.Number(low=low, high=high):
            least_ = [] if low is None else [value >= real(float(low))]
            return least_ + ([] if high is None else [value <= real(float(high))])
        case t.Duration():
            return [value >= -functions.DURATION_LIMIT, value <= functions.DURATION_LIMIT]
        case t.Instant():
            return [value >= functions.FIRST_INSTANT, value <= functions.LAST_INSTANT]
        case t.Ip():
            return [value >= 0, value < 2**128]
        case _:
            return []


class EncodedProgram:
    """A program's expressions as formulas; `element` is the transaction that names mean within
    a fold, `recorded` whether names mean the record of a history."""

    def __init__(self, encoder: Encoder, lets: Sequence[p.Let]) -> None:
        self.encoder = encoder
        self.lets = lets
        self.digests = Digests(lets)
        self._known: dict[tuple[str, int | None], SmtTerm] = {}

    def term(self, node: p.Expression, element: int | None = None) -> SmtTerm:
        """Raises `UnsayableError`."""
        key = (self.digests.of(node), element)
        if key not in self._known:
            self._known[key] = self._make_term(node, element)
        return self._known[key]

    def _make_term(self, node: p.Expression, element: int | None) -> SmtTerm:
        source = self.encoder.source
        match node:
            case p.Constant():
                return SmtTerm(TRUE_TERM, constant_term(node.value, node.type), node.type)
            case p.LetValue():
                return self.term(self.lets[node.index].value, element)
            case p.Score():
                return self.encoder.asked_score(node.type)
            case p.Fact():
                return source.fact(self.encoder, node)
            case p.HeaderFact():
                return source.header(self.encoder, node.side, node.name)
            case p.MetadataFact(inner=()):
                return source.metadata(self.encoder, node)
            case p.InEntry() | p.EntryCount():
                raise UnsayableError("a list in metadata")
            case p.MetadataFact():
                raise UnsayableError("an entry within an entry of metadata")
            case p.ElementFact():
                if element is None:
                    raise UnsayableError("a transaction's field outside of an aggregate")
                return source.element(self.encoder, node.path, element)
            case p.DecisionFact() | p.LabelFact():
                # On the payment that is being decided, nothing is decided or known yet.
                return SmtTerm(FALSE_TERM, z3.Const("undecided", sort_of(node.type)), node.type)
            case p.History():
                return self._history(node)
            case p.TableValue():
                return self._table(node, element)
            case _:
                return self._compose(node, element)

    def _compose(self, node: p.Expression, element: int | None) -> SmtTerm:
        match node:
            case p.Not():
                operand = self.term(node.operand, element)
                return SmtTerm(operand.there, z3.Not(operand.value), _BOOLEAN)
            case p.And():
                return logical_and([self.term(each, element) for each in node.operands])
            case p.Or():
                return logical_or([self.term(each, element) for each in node.operands])
            case p.Compare():
                return self._share(node, element) or self.compare(
                    node.operator, self.term(node.left, element), self.term(node.right, element)
                )
            case p.Between():
                value = self.term(node.value, element)
                low, high = self.term(node.low, element), self.term(node.high, element)
                ends = self.compare("<=", low, value), self.compare("<=", value, high)
                return logical_and(ends)
            case p.Presence():
                there = self._present(node.operand, element)
                return SmtTerm(
                    TRUE_TERM, there if node.state == "present" else z3.Not(there), _BOOLEAN
                )
            case p.OneOf() | p.InNetworks() | p.InList() | p.TextTest() | p.Matches():
                return self._test(node, element)
            case p.Arithmetic():
                return self._arithmetic(node, element)
            case p.Negate():
                operand = self.term(node.operand, element)
                return SmtTerm(operand.there, -operand.value, node.type)
            case p.Call():
                return self._call(node, element)
            case p.Fold():
                return self._fold(node)
            case _:
                raise UnsayableError(f"{type(node).__name__}")

    # Tests

    def _present(self, node: p.Expression, element: int | None) -> Formula:
        if isinstance(node.type, t.Collection):
            return self.encoder.source.transactions(self.encoder) > 0
        return self.term(node, element).there

    def compare(self, sign: str, left: SmtTerm, right: SmtTerm) -> SmtTerm:
        there = z3.And(left.there, right.there)
        kinds = left.type, right.type
        if any(isinstance(each, t.Number) and each.scale is None for each in kinds):
            a, b = self._double(left).value, self._double(right).value
        elif all(isinstance(each, t.String) for each in kinds):
            a, b = self._texts_alike(left, right)
        elif isinstance(left.type, t.Boolean):
            a, b = left.value, right.value
        else:
            a, b = decimals_alike(left, right)
        return SmtTerm(there, _ORDER[sign](a, b), _BOOLEAN)

    def _share(self, node: p.Compare, element: int | None) -> SmtTerm | None:
        """A quotient of two counts beside a constant, without a quotient; None for all else.

        The quotient of whole numbers below 2 ** 53 never lies in the middle of two doubles, so it
        rounds to `c` or more exactly where it is above the middle of `c` and the double before it.
        """
        quotient, bound = self._without_lets(node.left), self._without_lets(node.right)
        if not (isinstance(quotient, p.Arithmetic) and quotient.operator == "/"):
            return None
        if not isinstance(bound, p.Constant):
            return None
        parts = [self._without_lets(each) for each in (quotient.left, quotient.right)]
        if not all(map(_is_count, parts)):
            return None
        dividend, divisor = (self.term(each, element) for each in parts)

        def at_least(least: float) -> Formula:
            middle = (Fraction(least) + Fraction(nextafter(least, -inf))) / 2
            return dividend.value * middle.denominator >= divisor.value * middle.numerator

        there = z3.And(dividend.there, divisor.there, divisor.value != 0)
        constant = _as_double(bound)
        reaches, exceeds = at_least(constant), at_least(nextafter(constant, inf))
        met = {
            ">=": reaches,
            "<": z3.Not(reaches),
            ">": exceeds,
            "<=": z3.Not(exceeds),
            "==": z3.And(reaches, z3.Not(exceeds)),
            "!=": z3.Or(z3.Not(reaches), exceeds),
        }
        return SmtTerm(there, met[node.operator], _BOOLEAN)

    def _without_lets(self, node: p.Expression) -> p.Expression:
        while isinstance(node, p.LetValue):
            node = self.lets[node.index].value
        return node

    def _texts_alike(self, left: SmtTerm, right: SmtTerm) -> tuple[Formula, Formula]:
        """Two texts, one of which or both may be an index of choices."""
        if _choices(left) == _choices(right):
            return left.value, right.value
        for one, other in ((left, right), (right, left)):
            choices = _choices(one)
            if choices and z3.is_string_value(other.value):
                text = text_value(other.value)
                index = z3.IntVal(choices.index(text) if text in choices else -1)
                return (one.value, index) if one is left else (index, one.value)
        return self.text(left).value, self.text(right).value

    def text(self, term: SmtTerm) -> SmtTerm:
        """A text with choices as any text."""
        choices = _choices(term)
        if choices is None:
            return term
        *others, last = choices
        value = constant_term(last, t.String())
        for index, choice in enumerate(others):
            value = z3.If(term.value == index, constant_term(choice, t.String()), value)
        return SmtTerm(term.there, value, t.String())

    def _test(
        self,
        node: p.OneOf | p.InNetworks | p.InList | p.TextTest | p.Matches,
        element: int | None,
    ) -> SmtTerm:
        if isinstance(node, p.TextTest):
            left = self.text(self.term(node.left, element))
            right = self.text(self.term(node.right, element))
            found = _TEXT_TESTS[node.operator](left.value, right.value)
            return SmtTerm(z3.And(left.there, right.there), found, _BOOLEAN)
        value = self.term(node.value, element)
        match node:
            case p.Matches():
                pattern = texts.found_in(node.pattern, node.ignore_case)
                return SmtTerm(value.there, z3.InRe(self.text(value).value, pattern), _BOOLEAN)
            case p.OneOf():
                options = [self.compare("==", value, self.term(each)) for each in node.options]
                found = any_of([each.value for each in options])
            case p.InNetworks():
                found = any_of([_in_network(value.value, *each) for each in node.networks])
            case p.InList():
                found = self._on_list(node.list, value)
        return SmtTerm(value.there, z3.Not(found) if node.negated else found, _BOOLEAN)

    def _on_list(self, name: str, value: SmtTerm) -> Formula:
        kind = value.type
        if isinstance(kind, t.Number):
            if kind.scale is None or kind.scale > 6:
                raise UnsayableError("a number that a list cannot hold on a list")
            value = SmtTerm(value.there, scale_term(value.value, 6 - kind.scale), t.Number(6))
        else:
            value = self.text(value)
        found = self.encoder.fresh(z3.BoolSort(), f"@{name}")
        for other, looked_up, answer in self.encoder.lists:
            if other == name:
                self.encoder.assume(z3.Implies(looked_up.value == value.value, answer == found))
        self.encoder.lists.append((name, value, found))
        return found

    def _table(self, node: p.TableValue, element: int | None) -> SmtTerm:
        key = self.text(self.term(node.key, element))
        row = self.encoder.variable(
            f"@{node.table}.{node.column}[{self.digests.of(node.key)}:{element}]", node.type
        )
        for other, looked_up, answer in self.encoder.rows:
            if (other.table, other.column) == (node.table, node.column):
                same = z3.And(answer.there == row.there, answer.value == row.value)
                self.encoder.assume(z3.Implies(looked_up.value == key.value, same))
        self.encoder.rows.append((node, key, row))
        return SmtTerm(z3.And(key.there, row.there), row.value, node.type)

    # Numbers, instants, durations

    def _double(self, term: SmtTerm) -> SmtTerm:
        """A number as a double: exact for small whole numbers, else within its rounding."""
        if not isinstance(term.type, t.Number | t.Duration) or (
            isinstance(term.type, t.Number) and term.type.scale is None
        ):
            return term
        kind = term.type
        scale = decimal_places(kind)
        if z3.is_int_value(term.value):
            exact = double(Decimal(term.value.as_long()).scaleb(-scale))
            return SmtTerm(term.there, real(exact), t.Number(None))
        exact = z3.ToReal(term.value) / 10**scale
        return self._near(f"double{scale}", [term], exact, double)

    def _near(
        self, name: str, arguments: Sequence[SmtTerm], exact: Formula, compute: Compute
    ) -> SmtTerm:
        """A double that lies within its rounding of the exact value."""
        found = self.encoder.apply(name, arguments, t.Number(None), compute)
        size = z3.If(exact >= 0, exact, -exact)
        error = _EPSILON * size + _TINY
        near = z3.And(found.value >= exact - error, found.value <= exact + error)
        there = z3.Implies(all_of([each.there for each in arguments]), found.there)
        self.encoder.assume(z3.Implies(size < _SURELY_FINITE, z3.And(near, there)))
        self.encoder.hint(found.value == exact)
        return found

    def _arithmetic(self, node: p.Arithmetic, element: int | None) -> SmtTerm:
        left, right = self.term(node.left, element), self.term(node.right, element)
        there = z3.And(left.there, right.there)
        kind = node.type
        if isinstance(kind, t.Number) and kind.scale is None:
            return self._of_doubles(node, left, right)
        if node.operator == "*" and isinstance(kind, t.Duration):
            return self._duration_times(node, left, right)
        if node.operator == "*":
            value = left.value * right.value
        else:
            a, b = decimals_alike(left, right)
            value = a + b if node.operator == "+" else a - b
        return self._limit_to_type(SmtTerm(there, value, kind))

    def _of_doubles(self, node: p.Arithmetic, left: SmtTerm, right: SmtTerm) -> SmtTerm:
        a, b = self._double(left), self._double(right)
        there = z3.And(a.there, b.there)
        match node.operator:
            case "+":
                exact = a.value + b.value
            case "-":
                exact = a.value - b.value
            case "*":
                exact = a.value * b.value
            case _:
                exact = a.value / b.value
                a = SmtTerm(z3.And(there, b.value != 0), a.value, a.type)
        return self._near(f"double{node.operator}", [a, b], exact, _reckon(node.operator))

    def _duration_times(self, node: p.Arithmetic, left: SmtTerm, right: SmtTerm) -> SmtTerm:
        span, factor = (left, right) if isinstance(left.type, t.Duration) else (right, left)
        if not isinstance(factor.type, t.Number) or factor.type.scale is None:
            raise UnsayableError("a duration times a double")
        there = z3.And(left.there, right.there)
        value = _divide(span.value * factor.value, 10**factor.type.scale)
        return self._limit_to_type(SmtTerm(there, value, node.type))

    def _limit_to_type(self, term: SmtTerm) -> SmtTerm:
        """Missing where the type cannot carry the value."""
        kind = term.type
        if isinstance(kind, t.Number) and kind.scale is not None:
            low, high = kind.low, kind.high
            limit = Decimal(functions.LIMIT).scaleb(-kind.scale)
            if low is not None and high is not None and -limit < low <= high < limit:
                return term
            wide = z3.And(term.value > -functions.LIMIT, term.value < functions.LIMIT)
            return SmtTerm(z3.And(term.there, wide), term.value, kind)
        inside = bounds_of(term)
        return SmtTerm(all_of([term.there, *inside]), term.value, kind)

    # Functions

    def _call(self, node: p.Call, element: int | None) -> SmtTerm:
        given = [self.term(each, element) for each in node.arguments]
        there = all_of([each.there for each in given])
        kind = node.type
        match node.function:
            case "coalesce":
                return self._coalesce(given, kind)
            case "abs":
                value = given[0].value
                return SmtTerm(there, z3.If(value >= 0, value, -value), kind)
            case "min" | "max" as name:
                return self._extreme(name, given, kind)
            case "round":
                return self._round(given[0], kind)
            case "length":
                return SmtTerm(there, z3.Length(self.text(given[0]).value), kind)
            case "hour" | "weekday" as name:
                return self._clock(name, node, given, kind)
            case "left":
                characters = given[1].value
                cut = z3.SubString(self.text(given[0]).value, 0, characters)
                return SmtTerm(there, cut, kind)
            case "amount_in":
                return self._amount_in(node, kind)
            case _:
                return self._opaque_call(node, given)

    def _coalesce(self, given: Sequence[SmtTerm], kind: t.Type) -> SmtTerm:
        parts = [self._as_kind(each, kind) for each in given]
        value = parts[-1].value
        for part in reversed(parts[:-1]):
            value = z3.If(part.there, part.value, value)
        found = SmtTerm(any_of([each.there for each in parts]), value, kind)
        return self._limit_to_type(found) if isinstance(kind, t.Number) else found

    def _as_kind(self, term: SmtTerm, kind: t.Type) -> SmtTerm:
        if isinstance(kind, t.Number):
            if kind.scale is None:
                return self._double(term)
            by = kind.scale - decimal_places(term.type)
            return SmtTerm(term.there, scale_term(term.value, by), kind)
        if isinstance(kind, t.String) and isinstance(term.type, t.String):
            if kind.choices == term.type.choices:
                return term
            if kind.choices is None:
                return self.text(term)
            raise UnsayableError("a text among choices")
        return term

    def _extreme(self, name: str, given: Sequence[SmtTerm], kind: t.Type) -> SmtTerm:
        parts = [self._as_kind(each, kind) for each in given]
        value = parts[0].value
        for part in parts[1:]:
            first = value <= part.value if name == "min" else value >= part.value
            value = z3.If(first, value, part.value)
        return self._limit_to_type(SmtTerm(all_of([each.there for each in parts]), value, kind))

    def _round(self, given: SmtTerm, kind: t.Type) -> SmtTerm:
        assert isinstance(kind, t.Number)
        scale = kind.scale or 0
        own = given.type
        assert isinstance(own, t.Number)
        if own.scale is None:
            found = self.encoder.apply(f"round{scale}", [given], kind, _round_double(kind))
            exact = given.value * 10**scale
            near = z3.And(
                2 * z3.ToReal(found.value) >= 2 * exact - 1,
                2 * z3.ToReal(found.value) <= 2 * exact + 1,
            )
            self.encoder.assume(z3.Implies(found.there, near))
            return found
        if own.scale <= scale:
            return self._limit_to_type(
                SmtTerm(given.there, scale_term(given.value, scale - own.scale), kind)
            )
        value = _divide(given.value, 10 ** (own.scale - scale))
        return self._limit_to_type(SmtTerm(given.there, value, kind))

    def _clock(self, name: str, node: p.Call, given: Sequence[SmtTerm], kind: t.Type) -> SmtTerm:
        """By the zone's offsets within the years of a proof, by the engine's own beyond them."""
        zone = ZoneInfo(_zone(node))
        instant = given[0]
        local = clock.local(instant.value, zone)
        function = functions.hour if name == "hour" else functions.weekday
        found = self.encoder.apply(
            f"{name}/{zone.key}",
            [instant],
            kind if name == "hour" else clock.WEEKDAY,
            lambda at: lift(function(at, zone), kind),
        )
        exact = clock.hour_term(local) if name == "hour" else clock.weekday_term(local)
        inside = z3.And(found.value == exact, z3.Implies(instant.there, found.there))
        self.encoder.assume(z3.Implies(clock.within_span(instant.value), inside))
        self.encoder.hint(z3.Implies(instant.there, clock.within_span(instant.value)))
        return found

    def _amount_in(self, node: p.Call, kind: t.Type) -> SmtTerm:
        source = self.encoder.source
        amount, currency = (
            source.field(self.encoder, "amount"),
            source.field(self.encoder, "currency"),
        )
        wanted = node.arguments[0]
        assert isinstance(wanted, p.Constant)
        same = currency.value == (_choices(currency) or ()).index(str(wanted.value))
        if str(wanted.value) not in self.encoder.rates:
            exists, rate = z3.Bool(f"rate {wanted.value}?"), z3.Int(f"rate {wanted.value}")
            self.encoder.assume(z3.And(rate >= 1, rate <= 10**20))
            self.encoder.rates[str(wanted.value)] = exists, rate
        exists, rate = self.encoder.rates[str(wanted.value)]
        there = z3.And(amount.there, currency.there, z3.Or(same, exists))
        value = z3.If(same, amount.value * 10**10, amount.value * rate)
        return SmtTerm(there, value, kind)

    def _opaque_call(self, node: p.Call, given: Sequence[SmtTerm]) -> SmtTerm:
        parts = [self.text(each) for each in given]
        name = f"{node.function}/{_constants(node)}"
        compute = _COMPUTED.get(node.function)
        if compute is None:
            raise UnsayableError(f"the function `{node.function}`")
        found = self.encoder.apply(name, parts, _plain(node.type), compute(node))
        for law in _LAWS.get(node.function, _no_laws)(parts[0], found):
            self.encoder.assume(law)
        return found

    # Aggregates

    def _fold(self, node: p.Fold) -> SmtTerm:
        count = self.encoder.source.transactions(self.encoder)
        met, values = [], []
        for index in range(TRANSACTIONS):
            exists = count > index
            where = (
                SmtTerm(TRUE_TERM, TRUE_TERM, _BOOLEAN)
                if node.where is None
                else self.term(node.where, index)
            )
            met.append((exists, where))
            values.append(None if node.value is None else self.term(node.value, index))
        if node.function in ("any", "all"):
            neutral = SmtTerm(TRUE_TERM, z3.BoolVal(_FALSE_WITHOUT[node.function]), _BOOLEAN)
            parts = [
                SmtTerm(z3.Or(z3.Not(e), w.there), z3.If(e, w.value, neutral.value), _BOOLEAN)
                for e, w in met
            ]
            return (logical_or if node.function == "any" else logical_and)(parts)
        kept = [z3.And(exists, where.is_true) for exists, where in met]
        if node.function == "count":
            return SmtTerm(TRUE_TERM, z3.Sum([z3.If(each, 1, 0) for each in kept]), node.type)
        terms = [each for each in values if each is not None]
        there = [z3.And(k, v.there) for k, v in zip(kept, terms, strict=True)]
        return self._fold_terms(node, there, terms)

    def _fold_terms(self, node: p.Fold, there: list[Formula], terms: list[SmtTerm]) -> SmtTerm:
        kind = node.type
        if node.function == "distinct":
            parts = []
            for index, (exists, term) in enumerate(zip(there, terms, strict=True)):
                seen = [
                    z3.And(there[other], terms[other].value == term.value) for other in range(index)
                ]
                parts.append(z3.If(z3.And(exists, z3.Not(any_of(seen))), 1, 0))
            return SmtTerm(TRUE_TERM, z3.Sum(parts), kind)
        is_double = isinstance(kind, t.Number) and kind.scale is None
        if is_double or node.function == "avg":
            raise UnsayableError("a mean, or a total of doubles, over transactions")
        if node.function == "sum":
            total = z3.Sum([z3.If(e, v.value, 0) for e, v in zip(there, terms, strict=True)])
            return self._limit_to_type(SmtTerm(TRUE_TERM, total, kind))
        value, exists = terms[0].value, there[0]
        for also, term in zip(there[1:], terms[1:], strict=True):
            better = term.value < value if node.function == "min" else term.value > value
            value = z3.If(z3.And(also, z3.Or(z3.Not(exists), better)), term.value, value)
            exists = z3.Or(exists, also)
        return SmtTerm(exists, value, kind)

    def _history(self, node: p.History) -> SmtTerm:
        digest = self.digests.of(node)
        if digest not in self.encoder.histories:
            keys = all_of([self.term(each).there for each in node.keys])
            value = self.encoder.variable(f"history {digest}", node.type)
            if _is_count(node):
                self.encoder.assume(z3.And(value.value >= 0, value.value < 2**53))
            term = SmtTerm(z3.And(keys, value.there), value.value, node.type)
            self.encoder.histories[digest] = (node, term, self)
        return self.encoder.histories[digest][1]


_ORDER: dict[str, Callable[[Any, Any], Formula]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_TEXT_TESTS: dict[str, Callable[[Any, Any], Formula]] = {
    "contains": lambda a, b: z3.Contains(a, b),
    "starts with": lambda a, b: z3.PrefixOf(b, a),
    "ends with": lambda a, b: z3.SuffixOf(b, a),
}


def _zone(node: p.Call) -> str:
    named = [each.value for each in node.arguments[1:] if isinstance(each, p.Constant)]
    return str(named[0]) if named else "UTC"


def _is_count(node: p.Expression) -> bool:
    return isinstance(node, p.History) and node.function in ("count", "distinct")


def _as_double(bound: p.Constant) -> float:
    assert isinstance(bound.type, t.Number)
    return float(double(lift(bound.value, bound.type)))


def _choices(term: SmtTerm) -> tuple[str, ...] | None:
    return term.type.choices if isinstance(term.type, t.String) else None


def _in_network(value: Formula, first: int, bits: int) -> Formula:
    size = 2 ** (128 - bits)
    start = first // size * size
    return z3.And(value >= start, value < start + size)


def _divide(dividend: Formula, divisor: int) -> Formula:
    """Rounded half away from zero."""
    size = z3.If(dividend >= 0, dividend, -dividend)
    rounded = (2 * size + divisor) / (2 * divisor)
    return z3.If(dividend >= 0, rounded, -rounded)


def _plain(kind: t.Type) -> t.Type:
    return t.String() if isinstance(kind, t.String) else kind


def _constants(node: p.Call) -> str:
    return ",".join(str(each.value) for each in node.arguments if isinstance(each, p.Constant))


def _reckon(operator: str) -> Compute:
    def compute(a: Any, b: Any) -> Any:
        a, b = alike((float(a), float(b)))
        try:
            match operator:
                case "+":
                    found = a + b
                case "-":
                    found = a - b
                case "*":
                    found = a * b
                case _:
                    found = None if b == 0 else a / b
        except OverflowError:
            return None
        return limit_to_type(found, t.Number(None))

    return compute


def _round_double(kind: t.Number) -> Compute:
    def compute(value: float) -> Any:
        scale = kind.scale or 0
        return limit_to_type(lift(functions.rounded(value, scale), kind), kind)

    return compute


def _of_text(function: Callable[[str], Any]) -> Callable[[p.Call], Compute]:
    return lambda _node: function


def _same_length(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    same = z3.Length(found.value) == z3.Length(text.value)
    return [same, z3.Implies(text.there, found.there)]


def _lower(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    return [*_same_length(text, found), z3.Implies(_plain_but("A", "Z", text), _same(text, found))]


def _upper(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    return [*_same_length(text, found), z3.Implies(_plain_but("a", "z", text), _same(text, found))]


def _plain_but(first: str, last: str, text: SmtTerm) -> Formula:
    """ASCII without the letters from `first` to `last`."""
    below, above = chr(ord(first) - 1), chr(ord(last) + 1)
    kept = z3.Union(z3.Range(" ", below), z3.Range(above, "~"))
    return z3.InRe(text.value, z3.Star(kept))


def _same(text: SmtTerm, found: SmtTerm) -> Formula:
    return found.value == text.value


def _split(text: SmtTerm) -> tuple[Formula, Formula, Formula, Formula]:
    """Whether there is an `@`; what stands before and after the last one; that this is so."""
    sign = z3.StringVal("@")
    before, after = z3.FreshConst(z3.StringSort()), z3.FreshConst(z3.StringSort())
    has = z3.Contains(text.value, sign)
    parts = text.value == z3.Concat(before, sign, after)
    split = z3.And(
        z3.Implies(has, parts),
        z3.Implies(z3.Not(has), z3.And(before == z3.StringVal(""), after == text.value)),
        z3.Not(z3.Contains(after, sign)),
    )
    return has, before, after, split


def _local_part(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    _, before, _, split = _split(text)
    there = found.there == (z3.Length(before) > 0)
    return [split, found.value == before, z3.Implies(text.there, there)]


def _domain_part(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    _, _, after, split = _split(text)
    plain = _plain_but("A", "Z", SmtTerm(TRUE_TERM, after, text.type))
    there = found.there == (z3.Length(after) > 0)
    same = z3.Length(found.value) == z3.Length(after)
    return [split, same, z3.Implies(plain, found.value == after), z3.Implies(text.there, there)]


def _not_negative(text: SmtTerm, found: SmtTerm) -> list[Formula]:
    return [found.value >= 0, z3.Implies(text.there, found.there)]


def _no_laws(_text: SmtTerm, _found: SmtTerm) -> list[Formula]:
    return []


_LAWS: dict[str, Callable[[SmtTerm, SmtTerm], list[Formula]]] = {
    "lower": _lower,
    "upper": _upper,
    "email_local": _local_part,
    "email_domain": _domain_part,
    "entropy": _not_negative,
}


def _number(node: p.Call) -> Compute:
    return lambda text: lift(functions.number(text), node.type)


def _network(_node: p.Call) -> Compute:
    def compute(address: int, bits: Any, bits6: Any = 64) -> str:
        return functions.ip_network(address, int(bits), int(bits6))

    return compute


_COMPUTED: dict[str, Callable[[p.Call], Compute]] = {
    "lower": _of_text(functions.lower),
    "upper": _of_text(functions.upper),
    "email_domain": _of_text(functions.email_domain),
    "email_local": _of_text(functions.email_local),
    "entropy": _of_text(functions.entropy),
    "number": _number,
    "ip_network": _network,
}
