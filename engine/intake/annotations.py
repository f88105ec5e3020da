"""What the annotations of `payment.py` say, read once for the careful walk."""

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
"""What fields ask of each other: for a Struct the name of a method of `FieldRules`."""

_OF_WRITTEN = frozenset({"amount", "metadata"})


class Shape(Struct, frozen=True):
    """What a value may be, null set aside.

    `struct` is set for an object with named members, `element` for an array; `rule` is the name
    of a method of `FieldRules`. `most` bounds the length of a text, an array or an object; 0 does
    not. `ruled` tells that a rule holds here or within, `written` that one looks at what was
    written rather than at what it decodes to.
    """

    core: Any
    nullable: bool
    struct: type[Struct] | None
    element: Shape | None
    json_type: str
    words: str
    decoder: json.Decoder[Any]
    rule: str | None = None
    most: int = 0
    ge: float | None = None
    le: float | None = None
    choices: tuple[str, ...] = ()
    ruled: bool = False
    written: bool = False

    @property
    def has_parts(self) -> bool:
        return self.struct is not None or self.element is not None or self.rule == "headers"

    def refusal(self, field: str, sent: bytes) -> Violation:
        """Why the decoder refused a value of the right JSON type."""
        if self.core is str:
            if sent == b'""':
                return violations.empty(field)
            return violations.too_long(field, self.most, "characters")
        if self.choices:
            return violations.not_one_of(field, self.choices)
        if self.core is datetime:
            expected = "an RFC 3339 timestamp with seconds and an offset"
            return violations.invalid_format(field, expected)
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
    core, nullable, metas = _unwrapped(annotation)
    kind = get_origin(core) or core
    named = isinstance(kind, type) and issubclass(kind, Struct)
    json_type, words = _JSON_TYPES[dict if named else kind]
    said: dict[str, Any] = {
        name: value
        for meta in metas
        for name, value in (
            ("most", meta.max_length),
            ("ge", meta.ge),
            ("le", meta.le),
            ("rule", meta.extra and meta.extra["rule"]),
        )
        if value is not None
    }
    element = shape_of(get_args(core)[0]) if kind is tuple else None
    within = [member.shape for member in members(core)] if named else [element] if element else []
    return Shape(
        core=core,
        nullable=nullable,
        struct=core if named else None,
        element=element,
        json_type=json_type,
        words=words,
        choices=get_args(core) if kind is Literal else (),
        decoder=json.Decoder(annotation, float_hook=double_of),
        ruled="rule" in said or core in RULES_OF_STRUCTS or any(part.ruled for part in within),
        written=said.get("rule") in _OF_WRITTEN or any(part.written for part in within),
        **said,
    )


def _unwrapped(annotation: Any) -> tuple[Any, bool, tuple[Meta, ...]]:
    """The type within `Annotated`, `| None` and `| UnsetType`, whether null is allowed, and all that is said."""
    if get_origin(annotation) is Annotated:
        inner, *metas = get_args(annotation)
        core, nullable, more = _unwrapped(inner)
        return core, nullable, (*metas, *more)
    parts = get_args(annotation)
    if NoneType in parts or UnsetType in parts:
        (inner,) = (part for part in parts if part not in (NoneType, UnsetType))
        core, _, metas_within = _unwrapped(inner)
        return core, NoneType in parts, metas_within
    return annotation, False, ()
