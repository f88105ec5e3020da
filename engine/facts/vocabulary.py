"""The vocabulary of rules, derived from the payment's own types and their docs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, get_args

from msgspec import Struct, inspect

from tollkeeper.engine.decision import Action
from tollkeeper.engine.facts.clients import Client
from tollkeeper.engine.intake.addresses import is_private
from tollkeeper.engine.intake.codes import (
    CATEGORY_CODES,
    COUNTRIES,
    CURRENCIES,
    ResponseMeaning,
)
from tollkeeper.engine.intake.field_rules import is_digits
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.intake.payment import MAX_HEADER, MAX_TEXT, Payment, Transaction
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.types import (
    Boolean,
    Collection,
    Headers,
    Instant,
    Ip,
    Metadata,
    Number,
    Record,
    String,
    Type,
)
from tollkeeper.grammar.vocabulary import Field, Vocabulary

# Fields whose value programs read from a derived fact (facts.py).
_DERIVED_ACCESS = {
    ("amount",): ("amount",),
    ("timestamp",): ("timestamp",),
    ("device", "ip_address"): ("device_ip",),
    ("backend", "ip_address"): ("backend_ip",),
}
_TYPE_OF_RULE: Mapping[str, Type] = {
    "instant": Instant(),
    "address": Ip(),
    "device_address": Ip(),
    "headers": Headers(),
    "metadata": Metadata(),
}


def _no_digits(length: int) -> Callable[[Value], str | None]:
    def refuses(value: Value) -> str | None:
        return None if is_digits(str(value), length) else f"it has exactly {length} digits"

    return refuses


def _private(value: Value) -> str | None:
    return "a private one is refused" if isinstance(value, int) and is_private(value) else None


def _too_long(bare: inspect.Type, blank: bool) -> Callable[[Value], str | None] | None:
    """Why a field can never hold a text constant: the text is too long, or empty; `blank` says that
    an empty one counts as missing."""
    if not isinstance(bare, inspect.StrType) or bare.max_length is None:
        return None
    most, least = bare.max_length, 1 if blank else bare.min_length or 0

    def refuses(value: Value) -> str | None:
        if len(str(value)) > most:
            return f"it has at most {most} characters"
        if len(str(value)) >= least:
            return None
        return "an empty one counts as missing" if blank else "it is never empty"

    return refuses


_REFUSALS: Mapping[str, Callable[[Value], str | None]] = {
    "eight_digits": _no_digits(8),
    "four_digits": _no_digits(4),
    "device_address": _private,
}
_CARD_FINGERPRINT = Field(
    path=("method", "card", "fingerprint"),
    type=String(),
    doc="BIN and last four of the card; missing unless both are there.",
    access=("card_fingerprint",),
)
RESPONSE_MEANING = Field(
    path=("connector", "meaning"),
    type=String(get_args(ResponseMeaning)),
    doc="What the response code says, by ISO 8583 and ABECS; missing without a code.",
    access=("connector", "meaning"),
)


def vocabulary(codes: Mapping[str, tuple[str, ...]]) -> Vocabulary:
    """What a file may name.

    `codes` are the members of the lists `currency`, `country` and `category_code`.
    """
    payment = [
        *_fields(Payment, (), codes, ("payment",)),
        _CARD_FINGERPRINT,
        *_client_fields("device"),
        *_client_fields("backend"),
    ]
    return Vocabulary(
        payment=_by_name(payment),
        transaction=_by_name([*_fields(Transaction, (), codes, ()), RESPONSE_MEANING]),
        decision=_by_name(_DECISION),
    )


@cache
def full_vocabulary() -> Vocabulary:
    """The vocabulary with the ISO lists; an account's extra codes are no part of it."""
    return vocabulary(
        {
            "currency": tuple(sorted(CURRENCIES)),
            "country": tuple(sorted(COUNTRIES)),
            "category_code": tuple(sorted(CATEGORY_CODES)),
        }
    )


def _by_name(fields: Iterator[Field] | list[Field] | tuple[Field, ...]) -> Mapping[str, Field]:
    return {".".join(field.path): field for field in fields}


def _client_fields(side: str) -> Iterator[Field]:
    root = Field(
        path=(side, "client"),
        type=Record(),
        doc=f"What the {side}'s headers say about the client; missing without headers.",
        access=(f"{side}_client",),
    )
    yield root
    yield from _fields(Client, root.path, {}, root.access)


def _fields(
    struct: type[Struct],
    above: tuple[str, ...],
    codes: Mapping[str, tuple[str, ...]],
    access: tuple[str, ...],
) -> Iterator[Field]:
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    for field in described.fields:
        path = (*above, field.name)
        bare, further, doc = bare_type(field.type)
        rule = further.get("rule")
        attributes = (*access, field.name) if access else _of_element(field.name)
        if access[:1] == ("payment",):
            attributes = _DERIVED_ACCESS.get(path, attributes)
        refuses = _REFUSALS.get(rule or "") or _too_long(bare, "blank" in further)
        type_ = _type(bare, rule, codes)
        yield Field(path, type_, doc, attributes, field.required, refuses, _longest(type_, bare))
        if isinstance(bare, inspect.StructType):
            yield from _fields(bare.cls, path, codes, attributes)


def _of_element(name: str) -> tuple[str, ...]:
    return ("microseconds",) if name == "timestamp" else (name,)


def bare_type(described: inspect.Type) -> tuple[inspect.Type, Mapping[str, Any], str]:
    """The type without None and without its annotations, what these say further, the description."""
    further: dict[str, Any] = {}
    doc = ""
    while True:
        if isinstance(described, inspect.Metadata):
            further |= described.extra or {}
            doc = (described.extra_json_schema or {}).get("description", doc)
            described = described.type
        elif isinstance(described, inspect.UnionType):
            described = next(
                one for one in described.types if not isinstance(one, inspect.NoneType)
            )
        else:
            return described, further, doc


def _type(bare: inspect.Type, rule: str | None, codes: Mapping[str, tuple[str, ...]]) -> Type:
    if rule is not None and rule in codes:
        return String(codes[rule])
    if rule is not None and rule in _TYPE_OF_RULE:
        return _TYPE_OF_RULE[rule]
    match bare:
        case inspect.StructType():
            return Record()
        case inspect.LiteralType(values=values):
            return String(tuple(str(value) for value in values))
        case inspect.FloatType(ge=low, le=high):
            return Number(2, _decimal(low), _decimal(high))
        case inspect.IntType(ge=low, le=high):
            return Number(0, _decimal(low), _decimal(high))
        case inspect.VarTupleType():
            return Collection()
        case inspect.BoolType():
            return Boolean()
        case _:
            return String()


def _longest(type_: Type, bare: inspect.Type) -> int:
    if isinstance(type_, Headers):
        return MAX_HEADER
    if isinstance(type_, Metadata):
        return DEFAULT_LIMITS.metadata_size
    return getattr(bare, "max_length", None) or MAX_TEXT


def _decimal(bound: Any) -> Decimal | None:
    return None if bound is None else Decimal(bound)


_DECISION = (
    Field(
        ("action",),
        String(get_args(Action)),
        "The action recommended at the time.",
        ("action",),
    ),
    Field(("rule",), String(), "Name of the rule that was applied.", ("rule", "name")),
    Field(
        ("condition",),
        String(),
        "Identifier of the condition that was met.",
        ("rule", "condition"),
    ),
    Field(
        ("score",),
        Number(2, Decimal(0), Decimal(1)),
        "The score that the response showed.",
        ("score",),
    ),
)
