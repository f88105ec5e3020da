"""The values that a test gives, as facts, score and lets; everything else is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace as with_fields
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.facts.clients import read_client
from tollkeeper.engine.facts.facts import Facts, derive
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.instants import from_microseconds
from tollkeeper.engine.intake.payment import Method, Payment
from tollkeeper.engine.lists.values import IP_BITS, show_network
from tollkeeper.engine.offline.testing.streams import START
from tollkeeper.engine.programs.compile.functions import divided
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_Program = TypeVar("_Program", bound=p.Rule | p.Scorecard | p.EventType)
_Part = TypeVar("_Part", bound=Struct)


def given_facts(given: Iterable[p.Given], base: Payment | None, arrived: int) -> Facts:
    """The facts of a test's payment; `base` is the one it takes from a file.

    The timestamp is fixed unless it is given, and the payment arrives then, or at `arrived` (µs)
    when that is later. A given client or card fingerprint replaces the one derived from headers,
    BIN and last four digits.
    """
    payment = base or replace(_empty_record(Payment), timestamp=from_microseconds(START))
    derived: list[tuple[tuple[str, ...], p.Value]] = []
    for each in given:
        if not isinstance(each, p.GivenValue):
            continue
        target, value = each.target, each.value
        match target:
            case p.Fact(path=path) if _is_sent(path):
                payment = _with(
                    payment, path, _as_sent(read_carried(value, target.type), target.type)
                )
            case p.Fact(path=path):
                payment = _with(payment, _owner(path), None)
                access = full_vocabulary().payment[".".join(path)].access
                derived.append((access, read_carried(value, target.type)))
            case p.HeaderFact():
                payment = _with_entry(payment, (target.side, "headers"), target.name, value.value)
            case p.MetadataFact():
                held = (payment.metadata or {}).get(target.key)
                entry = _put_within(held, target.inner, _as_sent(value.value, value.type))
                payment = _with_entry(payment, ("metadata",), target.key, entry)
            case _:
                pass
    # Deriving facts needs a payment with a method.
    whole = payment if payment.method else replace(payment, method=_empty_record(Method))
    facts = replace(derive(whole, arrived, read_client), payment=payment)
    facts = replace(facts, arrived=max(arrived, facts.timestamp))
    for access, fact in derived:
        facts = _with(facts, access, fact)
    return facts


def given_score(given: Iterable[p.Given]) -> int | None:
    """The score in hundredths, None when it is not given."""
    for each in given:
        if isinstance(each, p.GivenValue) and isinstance(each.target, p.Score):
            return int(read_carried(each.value, each.target.type))
    return None


def given_lets(program: _Program, given: Iterable[p.Given]) -> _Program:
    """The program with the given lets replaced by the test's values."""
    lets = list(program.lets)
    for each in given:
        if isinstance(each, p.GivenValue) and isinstance(each.target, p.LetValue):
            target = each.target
            value = read_carried(each.value, target.type)
            constant = p.Constant(target.id, target.span, target.type, value)
            lets[target.index] = with_fields(lets[target.index], value=constant, source=None)
    return with_fields(program, lets=tuple(lets))


def read_carried(constant: p.Constant, kind: t.Type) -> p.Value:
    """The constant's value as values of type `kind` are represented (grammar/types.py)."""
    own = constant.type
    if not isinstance(kind, t.Number) or not isinstance(own, t.Number) or own.scale is None:
        return constant.value
    value = int(constant.value)
    if kind.scale is None:
        return float(value / 10**own.scale)
    return divided(value * 10**kind.scale, 10**own.scale)


def _as_sent(value: p.Value, kind: t.Type) -> object:
    """A value in the form that the payment's own field has."""
    match kind:
        case t.Number(scale=int(scale)) if scale > 0:
            return int(value) / 10**scale
        case t.Instant():
            return from_microseconds(int(value))
        case t.Ip():
            return show_network(int(value), IP_BITS)
        case _:
            return value


def _is_sent(path: tuple[str, ...]) -> bool:
    """Whether the field is one of the payment's own, not a derived one."""
    kind: type[Struct] | None = Payment
    for name in path:
        if kind is None or name not in kind.__struct_fields__:
            return False
        kind = _record(kind, name)
    return True


def _owner(path: tuple[str, ...]) -> tuple[str, ...]:
    """The innermost record of the payment on the path."""
    while not _is_sent(path):
        path = path[:-1]
    return path


@cache
def _record(kind: type[Struct], name: str) -> type[Struct] | None:
    """The type of a field that is a record, else None."""
    hint = get_type_hints(kind)[name]
    for each in (hint, *get_args(hint)):
        if isinstance(each, type) and issubclass(each, Struct):
            return each
    return None


def _empty_record(kind: type[_Part]) -> _Part:
    return kind(**dict.fromkeys(kind.__struct_fields__))


def _with(whole: _Part, path: tuple[str, ...], value: object) -> _Part:
    """`whole` with a field set, creating the records on its path; a record itself is only created."""
    name, *rest = path
    kind, held = _record(type(whole), name), getattr(whole, name)
    if kind is not None:
        inner = _empty_record(kind) if held is None else held
        value = _with(inner, tuple(rest), value) if rest else inner
    return replace(whole, **{name: value})


def _with_entry(payment: Payment, path: tuple[str, ...], key: str, value: object) -> Payment:
    held: Any = payment
    for name in path:
        held = None if held is None else getattr(held, name)
    entries: Mapping[str, object] = held or {}
    return _with(payment, path, {**entries, key: value})


def _put_within(held: object, keys: tuple[str, ...], value: object) -> object:
    """A metadata entry with `value` set at the end of `keys`, and its other contents."""
    if not keys:
        return value
    entries: Mapping[str, object] = held if isinstance(held, dict) else {}
    return {**entries, keys[0]: _put_within(entries.get(keys[0]), keys[1:], value)}
