"""Check calls of the functions in `functions.py`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import literals, ranges
from tollkeeper.grammar.checker.aggregates import is_bare
from tollkeeper.grammar.checker.entries import Infer
from tollkeeper.grammar.checker.names import METADATA_NUMBER
from tollkeeper.grammar.checker.scope import Scope, TooManyError, Work
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.functions import (
    AGGREGATES,
    COLLECTIONS,
    FUNCTIONS,
    Function,
    FunctionKind,
    Parameter,
)
from tollkeeper.grammar.words import kind_of

_ALLOWED: dict[FunctionKind, tuple[type, ...]] = {
    "text": (t.String,),
    "number": (t.Number,),
    "ip address": (t.Ip,),
    "instant": (t.Instant,),
    "number or duration": (t.Number, t.Duration),
    "number, instant or duration": (t.Number, t.Instant, t.Duration),
    "scalar": (t.Boolean, t.Number, t.String, t.Ip, t.Instant, t.Duration),
}
_BOUNDS: dict[FunctionKind, int] = {
    "decimals": 12,
    "number of characters": 1000,
    "ipv4 prefix length": 32,
    "ipv6 prefix length": 128,
}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CODE_LENGTH = 3
_AMOUNT_SCALE = 12


def call(work: Work, scope: Scope, node: s.Call, infer: Infer) -> p.Expression | None:
    """Check a function call."""
    name = node.name.text
    function = FUNCTIONS.get(name)
    if function is None:
        known = [*FUNCTIONS, *AGGREGATES]
        meant = say.function_meant(name, _collection_in(node))
        misfit = None if meant is None else _misfit_as(work, scope, node, meant, infer)
        work.report(say.unknown_function(node.name.span, name, known, meant, misfit))
        return None
    if not is_bare(node):
        work.report(say.not_an_aggregate(node.span, name))
        return None
    parameters = _parameters(function, len(node.arguments))
    if parameters is None:
        work.report(say.argument_count(node.span, function, len(node.arguments)))
        return None
    if name == "amount_in" and scope.of_event:
        work.report(say.not_in_history(node.span, "amount_in", "a rate"))
        return None
    arguments = _arguments(work, scope, node, parameters, infer)
    if arguments is None:
        return None
    if name in ("hour", "weekday") and len(arguments) == 1 and scope.history:
        work.report(say.zone_in_history(node.span, name, node.arguments[0].span.end))
        return None
    result = _result(function, arguments)
    return p.Call(node.id, node.span, result, name, arguments)


def _misfit_as(
    work: Work, scope: Scope, node: s.Call, function: str, infer: Infer
) -> Diagnostic | None:
    """Return why a call of another function would not do in its place, if so."""
    found, work.found = work.found, []
    try:
        with suppress(TooManyError):
            infer(work, scope, replace(node, name=replace(node.name, text=function)), None)
        return next((each for each in work.found if each.code in say.MISFITS), None)
    finally:
        work.found = found


def _parameters(function: Function, count: int) -> tuple[Parameter, ...] | None:
    """Return the parameter for each argument; None if there are too few or too many arguments."""
    known = function.parameters
    least = sum(not parameter.optional for parameter in known)
    if count < least or (count > len(known) and not known[-1].repeated):
        return None
    return known[:count] + (known[-1],) * (count - len(known))


def _arguments(
    work: Work, scope: Scope, node: s.Call, parameters: tuple[Parameter, ...], infer: Infer
) -> tuple[p.Expression, ...] | None:
    if parameters[-1].repeated:
        return _same_kind(work, scope, node, parameters, infer)
    found = [
        _argument(work, scope, node.name.text, argument, parameter.takes, infer)
        for argument, parameter in zip(node.arguments, parameters, strict=True)
    ]
    arguments = tuple(argument for argument in found if argument is not None)
    return arguments if len(arguments) == len(found) else None


def _collection_in(node: s.Call) -> str | None:
    """Return the collection that is the call's one argument."""
    match node.arguments:
        case (s.Name(text=name),) if name in COLLECTIONS:
            return name
    return None


def _argument(
    work: Work, scope: Scope, function: str, node: s.Expression, takes: FunctionKind, infer: Infer
) -> p.Expression | None:
    match takes:
        case "currency code":
            return _currency(work, function, node)
        case "time zone name":
            return _time_zone(work, function, node)
        case "decimals" | "number of characters" | "ipv4 prefix length" | "ipv6 prefix length":
            return _whole_number(work, function, node, _BOUNDS[takes])
        case _:
            pass
    allowed = _ALLOWED[takes]
    found = infer(work, scope, node, _preferred_type(allowed))
    if found is None or isinstance(found.type, allowed):
        return found
    work.report(say.argument_kind(found.span, function, takes, kind_of(found.type)))
    return None


def _preferred_type(allowed: tuple[type, ...]) -> t.Type:
    return t.Number(None) if t.Number in allowed else allowed[0]()


def _same_kind(
    work: Work, scope: Scope, node: s.Call, parameters: tuple[Parameter, ...], infer: Infer
) -> tuple[p.Expression, ...] | None:
    """Check arguments that must be of one type; literals and metadata take it from the others."""
    written = [argument for argument in node.arguments if not literals.is_literal(argument)]
    typed: dict[int, p.Expression | None] = {}
    for argument in written or node.arguments:
        typed[argument.id] = infer(work, scope, argument, None)
    kinds: list[t.Type] = [
        a.type for a in typed.values() if a is not None and not isinstance(a.type, t.Metadata)
    ]
    if len(kinds) == 0:
        if None not in typed.values():
            kinds = [_kind_of_literals(work, node, parameters[0].takes)]
        else:
            return None
    kind = kinds[0]
    allowed = _ALLOWED[parameters[0].takes]
    found: list[p.Expression | None] = []
    for argument in node.arguments:
        known = typed.get(argument.id)
        if argument.id in typed and (known is None or not isinstance(known.type, t.Metadata)):
            found.append(known)
        else:
            found.append(infer(work, scope, argument, _loose(kind)))
    for each in found:
        if each is None:
            continue
        if not isinstance(each.type, allowed):
            work.report(
                say.argument_kind(
                    each.span, node.name.text, parameters[0].takes, kind_of(each.type)
                )
            )
            return None
        if type(each.type) is not type(kind):
            work.report(
                say.unlike_arguments(each.span, node.name.text, kind_of(kind), kind_of(each.type))
            )
            return None
    arguments = tuple(each for each in found if each is not None)
    return arguments if len(arguments) == len(found) else None


def _kind_of_literals(work: Work, node: s.Call, takes: FunctionKind) -> t.Type:
    other = t.String() if takes == "scalar" else _preferred_type(_ALLOWED[takes])
    plain = [literals.read(work, a) for a in node.arguments if literals.is_literal(a)]
    return next((constant.type for constant in plain if constant is not None), other)


def _loose(kind: t.Type) -> t.Type:
    """Return the type without its choices: `coalesce(method.card.network, "none")` may add one."""
    return t.String() if isinstance(kind, t.String) else kind


def _currency(work: Work, function: str, node: s.Expression) -> p.Expression | None:
    if not isinstance(node, s.Text):
        code = node.text if isinstance(node, s.Name) and len(node.text) == _CODE_LENGTH else None
        meant = f'"{code.upper()}"' if code else None
        wanted = 'a currency code such as `"USD"`'
        work.report(say.literal_argument(node.span, function, wanted, meant))
        return None
    field = work.vocabulary.payment.get("currency")
    choices = field.type.choices if field and isinstance(field.type, t.String) else None
    if choices is not None and node.value not in choices:
        work.report(say.unknown_currency(node.span, node.value, choices))
        return None
    return p.Constant(node.id, node.span, t.String(), node.value)


def _time_zone(work: Work, function: str, node: s.Expression) -> p.Expression | None:
    if not isinstance(node, s.Text):
        work.report(
            say.literal_argument(node.span, function, 'a time zone such as `"Europe/Paris"`', None)
        )
        return None
    if not _is_time_zone(node.value):
        work.report(say.unknown_time_zone(node.span, node.value))
        return None
    return p.Constant(node.id, node.span, t.String(), node.value)


@lru_cache(maxsize=1024)
def _is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _whole_number(work: Work, function: str, node: s.Expression, most: int) -> p.Expression | None:
    if not isinstance(node, s.Number) or not node.text.isdecimal():
        work.report(
            say.literal_argument(node.span, function, f"a whole number from 0 to {most}", None)
        )
        return None
    constant = literals.read(work, node)
    if constant is None:
        return None
    if int(constant.value) > most:
        work.report(say.argument_range(node.span, function, most))
        return None
    return constant


def _result(function: Function, arguments: tuple[p.Expression, ...]) -> t.Type:
    match function.gives:
        case "text":
            return t.String()
        case "whole number":
            return t.Number(0, Decimal(0))
        case "number":
            return t.Number(None, Decimal(0))
        case "weekday name":
            return t.String(_DAYS)
        case "hour of the day":
            return t.Number(0, Decimal(0), Decimal(23))
        case "number of six decimals":
            return METADATA_NUMBER
        case "amount":
            return t.Number(_AMOUNT_SCALE, Decimal(0))
        case "same as the argument":
            kind = arguments[0].type
            return ranges.magnitude(kind) if isinstance(kind, t.Number) else kind
        case "number of that many decimals":
            return _rounded_type(arguments)
        case _:
            return _widest(arguments)


def _rounded_type(arguments: tuple[p.Expression, ...]) -> t.Type:
    value = arguments[0].type
    assert isinstance(value, t.Number)
    decimals = (
        arguments[1].value if len(arguments) > 1 and isinstance(arguments[1], p.Constant) else 0
    )
    return ranges.rounded_range(value, int(decimals))


def _widest(arguments: tuple[p.Expression, ...]) -> t.Type:
    numbers = [a.type for a in arguments if isinstance(a.type, t.Number)]
    if numbers:
        return ranges.widest(numbers)
    texts = [a for a in arguments if isinstance(a.type, t.String)]
    return _choices(texts) if texts else arguments[0].type


def _choices(texts: list[p.Expression]) -> t.String:
    """Return the string type with all arguments' choices, if each has some."""
    found: dict[str, None] = {}
    for text in texts:
        if isinstance(text, p.Constant):
            found[str(text.value)] = None
        elif isinstance(text.type, t.String) and text.type.choices is not None:
            found.update(dict.fromkeys(text.type.choices))
        else:
            return t.String()
    return t.String(tuple(found))
