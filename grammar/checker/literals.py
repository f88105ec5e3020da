"""Read literals as the type that they meet."""

from __future__ import annotations

import ipaddress
import re
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import TypeAlias, cast

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.words import kind_of

Network: TypeAlias = tuple[int, int]

_UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_MAX_DURATION = 10**18
_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_PLAIN_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,6})?")
_LONGEST_GUESS = 40
_DURATION = re.compile(r"[0-9]{1,15}(ms|s|m|h|d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAPPED = 0xFFFF << 32


def is_literal(node: s.Expression) -> bool:
    """Whether the node is a literal; a number or duration may have a sign."""
    if isinstance(node, s.Negate):
        return isinstance(node.operand, (s.Number, s.Duration))
    return isinstance(node, (s.Number, s.Text, s.Boolean, s.Duration))


def read(work: Work, node: s.Expression) -> p.Constant | None:
    """Read a literal as the type that it has by itself."""
    match node:
        case s.Negate(operand=s.Number() | s.Duration() as operand):
            return _negate(node, read(work, operand))
        case s.Number():
            return _number(work, node)
        case s.Duration():
            return _duration(work, node)
        case s.Text():
            return p.Constant(node.id, node.span, t.String(), node.value)
        case s.Boolean():
            return p.Constant(node.id, node.span, t.Boolean(), node.value)
        case _:
            raise AssertionError(node)


def read_as(work: Work, node: s.Expression, wanted: t.Type, meets: str) -> p.Constant | None:
    """Read a literal as type `wanted`; `meets` names the thing of that type in messages."""
    plain = read(work, node)
    if plain is None:
        return None
    match wanted, plain.value:
        case t.Ip(), str(text):
            return _address(work, node, text)
        case t.Instant(), str(text):
            return _instant(work, node, text)
        case t.String(choices=tuple(choices)), str(text) if text not in choices:
            work.report(say.unknown_value(node.span, text, meets, choices))
            return None
        case _ if type(wanted) is type(plain.type):
            return plain
        case _:
            meant = _guess(node, plain, wanted)
            kinds = (kind_of(wanted), kind_of(plain.type))
            choices = wanted.choices or () if isinstance(wanted, t.String) else ()
            work.report(say.wrong_literal(node.span, meets, *kinds, meant, choices))
            return None


def _guess(node: s.Expression, plain: p.Constant, wanted: t.Type) -> str | None:
    """Return how the literal was probably meant to be written, as a value of type `wanted`."""
    match wanted, node:
        case t.Duration(), _:
            return _guess_duration(plain)
        case t.Number(), s.Text() if _PLAIN_NUMBER.fullmatch(node.value):
            return node.value
        case t.Boolean(), s.Text() if node.value.lower() in ("true", "false"):
            return node.value.lower()
        case t.String(choices=choices), s.Number() if choices is None or node.text in choices:
            return f'"{node.text}"' if len(node.text) <= _LONGEST_GUESS else None
        case _:
            return None


def _guess_duration(plain: p.Constant) -> str | None:
    """Return the length of time that a text or a whole number (of seconds) was probably meant to
    be.
    """
    if isinstance(plain.value, str):
        return plain.value if _DURATION.fullmatch(plain.value) else None
    is_whole = isinstance(plain.type, t.Number) and plain.type.scale == 0
    return f"{plain.value}s" if is_whole and int(plain.value) >= 0 else None


def duration(node: s.Duration) -> int:
    """Return the length in microseconds."""
    return node.amount * _UNITS[node.unit]


def decimal(constant: p.Constant) -> Decimal:
    """Return the value of a number constant; of a duration, its microseconds."""
    scale = (constant.type.scale or 0) if isinstance(constant.type, t.Number) else 0
    return Decimal(constant.value).scaleb(-scale, Context(prec=t.MAX_DIGITS))


def network(work: Work, node: s.Text) -> Network | None:
    """Read an address or network as (first address, prefix length of 128 bits)."""
    if "/" not in node.value:
        address = _address(work, node, node.value)
        return None if address is None else (int(address.value), 128)
    try:
        given = ipaddress.ip_interface(node.value)
    except ValueError:
        work.report(say.bad_network(node.span, node.value))
        return None
    if given.ip != given.network.network_address:
        work.report(say.host_bits(node.span, node.value, str(given.network)))
        return None
    if "%" in node.value or not node.value.rpartition("/")[2].isdecimal():
        work.report(say.bad_network(node.span, node.value))
        return None
    bits = given.network.prefixlen
    return _as_ipv6(given.ip), bits + 96 if given.version == 4 else bits


def _as_ipv6(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> int:
    return int(address) | _MAPPED if address.version == 4 else int(address)


def _address(work: Work, node: s.Expression, text: str) -> p.Constant | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        is_network = "/" in text
        work.report(say.bad_address(node.span, text, is_network))
        return None
    if "%" in text:
        work.report(say.bad_address(node.span, text, False))
        return None
    return p.Constant(node.id, node.span, t.Ip(), _as_ipv6(address))


def _instant(work: Work, node: s.Expression, text: str) -> p.Constant | None:
    value = _microseconds(text)
    if value is None:
        day = f"{text}T00:00:00Z"
        correction = f'"{day}"' if _microseconds(day) is not None else None
        work.report(say.bad_instant(node.span, text, correction))
        return None
    return p.Constant(node.id, node.span, t.Instant(), value)


def _microseconds(text: str) -> int | None:
    """Return the time since 1970 of an instant in RFC 3339's form; None if it is none."""
    if not _RFC3339.fullmatch(text):
        return None
    try:
        at = datetime.fromisoformat(text.upper()).astimezone(UTC)
        return (at - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def _number(work: Work, node: s.Number) -> p.Constant | None:
    whole, _, decimals = node.text.partition(".")
    digits = int(whole + decimals) if len(node.text) <= 100 else 10**t.MAX_DIGITS
    if digits >= 10**t.MAX_DIGITS or len(decimals) > t.MAX_DIGITS:
        work.report(say.number_too_long(node.span))
        return None
    exact = Decimal(node.text)
    return p.Constant(node.id, node.span, t.Number(len(decimals), exact, exact), digits)


def _duration(work: Work, node: s.Duration) -> p.Constant | None:
    length = duration(node)
    if length > _MAX_DURATION:
        work.report(say.duration_too_long(node.span))
        return None
    return p.Constant(node.id, node.span, t.Duration(), length)


def _negate(node: s.Negate, constant: p.Constant | None) -> p.Constant | None:
    if constant is None:
        return None
    kind = constant.type
    if isinstance(kind, t.Number) and kind.low is not None:
        kind = t.Number(kind.scale, kind.low.copy_negate(), kind.low.copy_negate())
    return p.Constant(node.id, node.span, kind, -cast("int", constant.value))


def meeting(work: Work, node: s.Expression, other: p.Expression | None) -> p.Constant | None:
    """Read a literal as the type of the value that it is compared with, within that value's bounds."""
    if other is None:
        return None
    if isinstance(other.type, t.Metadata):
        return read(work, node)
    if isinstance(node, s.Duration) and _counts_milliseconds(other):
        work.report(say.milliseconds(node.span, work.text(other.span), duration(node) / 1000))
        return None
    constant = read_as(work, node, other.type, work.text(other.span))
    if constant is None or not in_range(work, node, constant, other):
        return None
    return constant


def _counts_milliseconds(node: p.Expression | None) -> bool:
    match node:
        case p.ElementFact(path=("duration",)):
            return True
        case p.Fold(function="sum" | "min" | "max" | "avg", value=value):
            return _counts_milliseconds(value)
        case p.History(function="sum" | "min" | "max" | "avg", series=series):
            return _counts_milliseconds(series.value)
        case _:
            return False


def in_range(work: Work, node: s.Expression, constant: p.Expression, other: p.Expression) -> bool:
    """Check that a number is within the bounds of the field or function that it is compared with.

    Bounds of computed values only give warnings.
    """
    if not isinstance(constant, p.Constant) or not isinstance(other, _BOUNDED):
        return True
    if not isinstance(other.type, t.Number) or not isinstance(constant.type, t.Number):
        return True
    value, low, high = decimal(constant), other.type.low, other.type.high
    if (low is not None and value < low) or (high is not None and value > high):
        work.report(say.out_of_range(node.span, work.text(other.span), value, low, high))
        return False
    return True


_BOUNDED = (
    p.Fact,
    p.ElementFact,
    p.EventFact,
    p.DecisionFact,
    p.LabelFact,
    p.EntryCount,
    p.MetadataFact,
    p.TableValue,
    p.Score,
    p.Call,
    p.Fold,
    p.History,
)
