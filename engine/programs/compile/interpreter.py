"""The interpreter, which defines the meaning of checked expressions in three-valued logic.

Decimals are `Decimal`s that are never rounded, doubles are `float`s, everything else is represented
as `types.py` says. Compiled functions must agree with it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.compile import functions
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.reckoning import (
    EXACT,
    ROUNDING,
    calculate,
    carry,
    compare,
    double,
    lift,
    limit_to_type,
    unify_numbers,
)
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.regexes import compile_regex
from tollkeeper.grammar.vocabulary import Field, Vocabulary

_TEXT_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "contains": operator.contains,
    "starts with": str.startswith,
    "ends with": str.endswith,
}
_NAMES = (
    p.Fact,
    p.ElementFact,
    p.DecisionFact,
    p.LabelFact,
    p.EventFact,
    p.HeaderFact,
    p.MetadataFact,
)


@dataclass(frozen=True, slots=True)
class EvaluationScope:
    """What names mean.

    `facts` is the payment, `element` one of its transactions, `decision` and `label` are the
    payment's, `event` the data of an event by field, `score` in hundredths. `histories` holds the
    values of the aggregates over history by their digests, `lets` the values of the lets so far.
    """

    vocabulary: Vocabulary
    digests: Digests
    facts: Any = None
    score: int | None = None
    histories: Mapping[str, Any] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)
    element: Any = None
    decision: Any = None
    label: str | None = None
    event: Mapping[str, Any] | None = None
    lets: tuple[Any, ...] = ()


def with_lets(scope: EvaluationScope, lets: Sequence[p.Let]) -> EvaluationScope:
    """The scope in which the lets have their values."""
    for let in lets:
        scope = replace(scope, lets=(*scope.lets, evaluate(let.value, scope)))
    return scope


def evaluate(node: p.Expression, scope: EvaluationScope) -> Any:
    """The expression's value, None when it is missing."""
    with localcontext(EXACT):
        return _evaluate(node, scope)


def _evaluate(node: p.Expression, scope: EvaluationScope) -> Any:
    match node:
        case p.Constant():
            return lift(node.value, node.type)
        case p.Score():
            return lift(scope.score, node.type)
        case p.LetValue():
            return scope.lets[node.index]
        case p.History():
            return lift(scope.histories.get(scope.digests.of(node)), node.type)
        case p.TableValue():
            return _table_value(node, scope)
        case p.Call():
            return _call(node, scope)
        case p.Arithmetic():
            left, right = _evaluate(node.left, scope), _evaluate(node.right, scope)
            missing = left is None or right is None
            return None if missing else limit_to_type(calculate(node, left, right), node.type)
        case p.Negate():
            operand = _evaluate(node.operand, scope)
            return None if operand is None else -operand
        case p.Curve():
            return _step(node, scope)
        case p.EntryCount():
            entries = functions.listed_entries(_evaluate(node.entry, scope))
            return None if entries is None else Decimal(len(entries))
        case p.Fold():
            return _fold(node, scope)
        case _ if isinstance(node, _NAMES):
            return lift(_read_name(node, scope), node.type)
        case _:
            return _truth(node, scope)


# Names


def _read_name(node: p.Expression, scope: EvaluationScope) -> Any:
    match node:
        case p.Fact():
            return field_value(scope.facts, scope.vocabulary.payment, node.path)
        case p.ElementFact():
            return field_value(scope.element, scope.vocabulary.transaction, node.path)
        case p.DecisionFact():
            return field_value(scope.decision, scope.vocabulary.decision, (node.name,))
        case p.LabelFact():
            return scope.label
        case p.EventFact():
            return None if scope.event is None else scope.event.get(node.name)
        case p.HeaderFact():
            headers = field_value(scope.facts, scope.vocabulary.payment, (node.side, "headers"))
            return None if headers is None else functions.header(headers, node.name)
        case p.MetadataFact():
            entries = field_value(scope.facts, scope.vocabulary.payment, ("metadata",))
            if entries is None:
                return None
            return _metadata(functions.nested_entry(entries.get(node.key), node.inner), node.type)
        case _:
            raise AssertionError(node)


def _step(node: p.Curve, scope: EvaluationScope) -> float | None:
    adds = step_of(node, _evaluate(node.value, scope))
    return None if adds is None else double(lift(adds.value, adds.type))


def step_of(node: p.Curve, value: Any) -> p.Constant | None:
    """What a curve adds at a value of `evaluate`."""
    if value is None:
        return node.absent
    for bound, adds in zip(node.bounds, node.amounts, strict=False):
        if compare("<", value, lift(bound.value, bound.type)):
            return adds
    return node.amounts[-1]


def field_value(root: Any, fields: Mapping[str, Field], path: tuple[str, ...]) -> Any:
    value = root
    for attribute in fields[".".join(path)].access:
        value = None if value is None else getattr(value, attribute)
    return value


def _metadata(entry: Any, kind: t.Type) -> Any:
    match kind:
        case t.Number():
            return functions.metadata_number(entry)
        case t.String():
            return entry if isinstance(entry, str) else None
        case t.Boolean():
            return entry if isinstance(entry, bool) else None
        case _:
            return entry


def _is_present(node: p.Expression, scope: EvaluationScope) -> bool:
    value = _evaluate(node, scope)
    # An empty `transactions` means the same as none sent.
    return bool(value) if isinstance(node.type, t.Collection) else value is not None


def _table_value(node: p.TableValue, scope: EvaluationScope) -> Any:
    key = carry(_evaluate(node.key, scope), node.key.type)
    if key is None:
        return None
    at = scope.facts.arrived
    found = functions.in_table(scope.environment, node.table, key, node.column, at)
    return lift(found, node.type)


# Logic


def _truth(node: p.Expression, scope: EvaluationScope) -> bool | None:
    match node:
        case p.Presence():
            return _is_present(node.operand, scope) == (node.state == "present")
        case p.Not():
            operand = _evaluate(node.operand, scope)
            return None if operand is None else not operand
        case p.And():
            return _all(_evaluate(operand, scope) for operand in node.operands)
        case p.Or():
            return _any(_evaluate(operand, scope) for operand in node.operands)
        case p.Between():
            value = _evaluate(node.value, scope)
            low, high = _evaluate(node.low, scope), _evaluate(node.high, scope)
            return _all((compare("<=", low, value), compare("<=", value, high)))
        case p.Compare():
            left, right = _evaluate(node.left, scope), _evaluate(node.right, scope)
            return compare(node.operator, left, right)
        case p.TextTest() | p.Matches() | p.OneOf() | p.InNetworks() | p.InList():
            return _test(node, scope)
        case p.InEntry():
            return _in_entry(node, scope)
        case _:
            raise AssertionError(node)


def _all(values: Iterable[bool | None]) -> bool | None:
    found = tuple(values)
    if any(value is False for value in found):
        return False
    return None if any(value is None for value in found) else True


def _any(values: Iterable[bool | None]) -> bool | None:
    found = tuple(values)
    if any(value is True for value in found):
        return True
    return None if any(value is None for value in found) else False


def _test(
    node: p.TextTest | p.Matches | p.OneOf | p.InNetworks | p.InList, scope: EvaluationScope
) -> bool | None:
    if isinstance(node, p.TextTest):
        left, right = _evaluate(node.left, scope), _evaluate(node.right, scope)
        missing = left is None or right is None
        return None if missing else _TEXT_TESTS[node.operator](left, right)
    value = _evaluate(node.value, scope)
    if value is None:
        return None
    match node:
        case p.Matches():
            return compile_regex(node.pattern, node.ignore_case).search(value) is not None
        case p.OneOf():
            options = [_evaluate(option, scope) for option in node.options]
            found = any(compare("==", value, option) for option in options)
        case p.InNetworks():
            found = any(value >> 128 - bits == first >> 128 - bits for first, bits in node.networks)
        case p.InList():
            entry, kind = carry(value, node.value.type), node.value.type
            if isinstance(kind, t.Number):
                entry = functions.as_entry(entry, kind.scale)
            at = scope.facts.arrived
            found = functions.on_list(scope.environment, node.list, entry, at)
    return found is not node.negated


def _in_entry(node: p.InEntry, scope: EvaluationScope) -> bool | None:
    entries, value = _evaluate(node.entry, scope), _evaluate(node.value, scope)
    if not isinstance(entries, list) or value is None:
        return None
    elements = _elements(entries, node.value.type)
    is_element = any(compare("==", value, each) is True for each in elements)
    return is_element is not node.negated


def _elements(entries: list[Any], kind: t.Type) -> Iterator[Any]:
    """The elements of a type; numbers in the form in which they are computed."""
    for entry in entries:
        if isinstance(kind, t.Number):
            number = functions.metadata_number(entry)
            if number is not None:
                yield lift(number, t.Number(t.METADATA_SCALE))
        elif type(entry) is (str if isinstance(kind, t.String) else bool):
            yield entry


# Functions


def _call(node: p.Call, scope: EvaluationScope) -> Any:
    arguments = [_evaluate(argument, scope) for argument in node.arguments]
    if node.function == "coalesce":
        first = next((value for value in arguments if value is not None), None)
        return limit_to_type(_as_kind(first, node.type), node.type)
    if any(value is None for value in arguments):
        return None
    return limit_to_type(_as_kind(_apply(node, arguments, scope), node.type), node.type)


def _as_kind(value: Any, kind: t.Type) -> Any:
    """A decimal among doubles as a double."""
    is_double = isinstance(kind, t.Number) and kind.scale is None
    return double(value) if is_double and value is not None else value


def _apply(node: p.Call, arguments: list[Any], scope: EvaluationScope) -> Any:
    match node.function, arguments:
        case "abs", [value]:
            return abs(value)
        case "min", _:
            return min(unify_numbers(arguments))
        case "max", _:
            return max(unify_numbers(arguments))
        case "round", [value, *_]:
            assert isinstance(node.type, t.Number)
            unit = Decimal(1).scaleb(-(node.type.scale or 0))
            return Decimal(value).quantize(unit, context=ROUNDING)
        case "length", [text]:
            return Decimal(len(text))
        case "number", [text]:
            return lift(functions.number(text), node.type)
        case "amount_in", [wanted]:
            return _amount_in(wanted, node.type, scope)
        case "hour", [instant, *zone]:
            return lift(functions.hour(instant, _zone(zone, scope)), node.type)
        case "weekday", [instant, *zone]:
            return functions.weekday(instant, _zone(zone, scope))
        case "ip_network", [address, bits, *bits6]:
            return functions.ip_network(address, int(bits), int(bits6[0]) if bits6 else 64)
        case "left", [text, characters]:
            return functions.left(text, int(characters))
        case _, [text]:
            return _OF_TEXT[node.function](text)


_OF_TEXT: Mapping[str, Callable[[str], Any]] = {
    "lower": functions.lower,
    "upper": functions.upper,
    "email_domain": functions.email_domain,
    "email_local": functions.email_local,
    "entropy": functions.entropy,
}


def _zone(named: list[str], scope: EvaluationScope) -> ZoneInfo:
    return ZoneInfo(named[0]) if named else scope.environment.time_zone


def _amount_in(wanted: str, kind: t.Type, scope: EvaluationScope) -> Any:
    amount = field_value(scope.facts, scope.vocabulary.payment, ("amount",))
    currency = field_value(scope.facts, scope.vocabulary.payment, ("currency",))
    if amount is None or currency is None:
        return None
    return lift(functions.amount_in(scope.environment, amount, currency, wanted), kind)


# Aggregates over the payment's transactions


def _fold(node: p.Fold, scope: EvaluationScope) -> Any:
    elements = field_value(scope.facts, scope.vocabulary.payment, ("transactions",)) or ()
    scopes = [replace(scope, element=element) for element in elements]
    met = [node.where is None or _evaluate(node.where, each) for each in scopes]
    if node.function == "any":
        return _any(met)
    if node.function == "all":
        return _all(met)
    kept = [each for each, is_met in zip(scopes, met, strict=True) if is_met]
    if node.value is None:
        return Decimal(len(kept))
    values = [_evaluate(node.value, each) for each in kept]
    there = [value for value in values if value is not None]
    return limit_to_type(_fold_values(node, there), node.type)


def _fold_values(node: p.Fold, values: list[Any]) -> Any:
    match node.function:
        case "distinct":
            return Decimal(len(set(values)))
        case "sum" if isinstance(node.type, t.Number) and node.type.scale is None:
            return functions.total(values)
        case "sum":
            return sum(values, Decimal(0) if isinstance(node.type, t.Number) else 0)
        case _ if not values:
            return None
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "avg" if isinstance(values[0], float):
            whole = functions.total(values)
            return None if whole is None else whole / len(values)
        case _:
            mean = sum(map(Fraction, values), Fraction(0)) / len(values)
            return mean.numerator / mean.denominator
