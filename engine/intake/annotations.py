"""The annotations of `payment.py` as data, for the full search for violations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Meta, Struct, UnsetType, json, structs

from tollkeeper.engine.intake import violations
from tollkeeper.engine.intake.exact_numbers import double_of
from tollkeeper.engine.intake.payment import Creation, Transaction, Update
from tollkeeper.engine.intake.violations import Violation

_JSON_TYPES: Mapping[Any, tuple[str, str]] = {
    str: ("string", "a string"),
    Literal: ("string", "a string"),
    datetime: ("string", "a string"),
    int: ("number", "an integer"),
    float: ("number", "a number"),
    bool: ("boolean", "a boolean"),
    dict: ("object", "an object"),
    tuple: ("array", "an array"),
    Any: ("anything", "anything"),
}


RULES_OF_STRUCTS: Mapping[Any, str] = {
    Creation: "transactions_by_status",
    Update: "transactions_by_status",
    Transaction: "response_code_by_status",
}
"""Rules between the fields of a Struct, each by the name of a method of `FieldRules`."""

INSTANT_FORM = "an ISO 8601 date and time with an offset"
"""What an instant must be, in the words of a violation."""

_RULES_OF_TEXT = frozenset({"amount", "metadata"})


class Shape(Struct, frozen=True):
    """What a value may be, apart from null.

    `struct` is set for an object with named members, `element` for an array; `rule` is the name of
    a method of `FieldRules`. `min_length` and `max_length` bound a text, an array or an object; 0
    is no bound. `has_rule` tells whether a rule applies to the value or to a part of it,
    `needs_text` whether one of these rules reads the JSON text instead of the decoded value. A
    `free` value may be anything, even what no decoder takes; for a `blank` one an empty text stands
    for null.
    """

    core: Any
    nullable: bool
    struct: type[Struct] | None
    element: Shape | None
    json_type: str
    words: str
    decoder: json.Decoder[Any]
    rule: str | None = None
    min_length: int = 0
    max_length: int = 0
    ge: float | None = None
    le: float | None = None
    choices: tuple[str, ...] = ()
    has_rule: bool = False
    needs_text: bool = False
    free: bool = False
    blank: bool = False

    @property
    def has_parts(self) -> bool:
        return self.struct is not None or self.element is not None or self.rule == "headers"

    def refusal(self, field: str, sent: bytes) -> Violation:
        """Why the decoder refused a value of the right JSON type."""
        if self.core is str:
            if sent == b'""':
                return violations.empty(field)
            return violations.too_long(field, self.max_length, "characters")
        if self.choices:
            return violations.not_one_of(field, self.choices)
        if self.core is datetime:
            return violations.invalid_format(field, INSTANT_FORM)
        if self.core is int and not sent.lstrip(b"-").isdigit():
            return violations.invalid_type(field, self.words)
        if self.ge is not None and self.le is not None:
            return violations.out_of_range(field, f"between {self.ge} and {self.le}")
        return violations.out_of_range(field, "without numbers that no double can hold")


class Member(Struct, frozen=True):
    name: str
    required: bool
    shape: Shape


@cache
def members(cls: type[Struct]) -> tuple[Member, ...]:
    """The fields of a Struct, in order."""
    return tuple(
        Member(field.name, field.required, shape_of(field.type)) for field in structs.fields(cls)
    )


def shape_of(annotation: Any) -> Shape:
    """The shape that an annotation describes."""
    core, nullable, metas = _unwrap(annotation)
    kind = get_origin(core) or core
    named = isinstance(kind, type) and issubclass(kind, Struct)
    json_type, words = _JSON_TYPES[dict if named else kind]
    bounds: dict[str, Any] = {
        name: value
        for meta in metas
        for name, value in (
            ("min_length", meta.min_length),
            ("max_length", meta.max_length),
            ("ge", meta.ge),
            ("le", meta.le),
            ("rule", meta.extra and meta.extra.get("rule")),
            ("free", meta.extra and meta.extra.get("free")),
            ("blank", meta.extra and meta.extra.get("blank")),
        )
        if value is not None
    }
    element = shape_of(get_args(core)[0]) if kind is tuple else None
    parts = [member.shape for member in members(core)] if named else [element] if element else []
    return Shape(
        core=core,
        nullable=nullable,
        struct=core if named else None,
        element=element,
        json_type=json_type,
        words=words,
        choices=get_args(core) if kind is Literal else (),
        decoder=json.Decoder(annotation, float_hook=double_of),
        has_rule="rule" in bounds
        or core in RULES_OF_STRUCTS
        or any(part.has_rule for part in parts),
        needs_text=bounds.get("rule") in _RULES_OF_TEXT
        or "blank" in bounds
        or any(part.needs_text for part in parts),
        **bounds,
    )


def _unwrap(annotation: Any) -> tuple[Any, bool, tuple[Meta, ...]]:
    """The type inside `Annotated`, `| None` and `| UnsetType`; whether null is allowed; all `Meta`."""
    if get_origin(annotation) is Annotated:
        inner, *metas = get_args(annotation)
        core, nullable, more = _unwrap(inner)
        return core, nullable, (*metas, *more)
    parts = get_args(annotation)
    if NoneType in parts or UnsetType in parts:
        (inner,) = (part for part in parts if part not in (NoneType, UnsetType))
        core, _, metas_within = _unwrap(inner)
        return core, NoneType in parts, metas_within
    return annotation, False, ()
