"""The careful walk through a request that the fast decode refused: all that is wrong with it.

It is derived from the Structs, and it is the meaning: what it finds no fault with is accepted.
Only what a Struct names is decoded, one level at a time, so a hostile body costs little more
than reading over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from msgspec import (
    UNSET,
    DecodeError,
    Raw,
    Struct,
    UnsetType,
    ValidationError,
    convert,
    defstruct,
    json,
    structs,
)

from tollkeeper.engine import violations
from tollkeeper.engine.field_rules import INVALID, FieldRules
from tollkeeper.engine.payment import MAX_TEXT, Creation, Transaction, Update
from tollkeeper.engine.shapes import Shape, members
from tollkeeper.engine.violations import BODY, Violation

S = TypeVar("S", bound=Struct)

RULES_OF_STRUCTS: Mapping[type[Struct], str] = {
    Creation: "transactions_by_status",
    Update: "transactions_by_status",
    Transaction: "response_code_by_status",
}

_JSON_TYPES = dict.fromkeys(b"-0123456789", "number") | {
    ord("{"): "object",
    ord("["): "array",
    ord('"'): "string",
    ord("t"): "boolean",
    ord("f"): "boolean",
    ord("n"): "null",
}

_HEADERS = json.Decoder(dict[str, Raw])
_HEADER = json.Decoder(str | list[str])


def walk(body: bytes, envelope: type[S], rules: FieldRules) -> S | tuple[Violation, ...]:
    """The request in `body`, or every violation in it: field by field, then what fields ask of each other."""
    reading = _Walk(rules)
    try:
        whole = json.decode(body, type=Raw)
        if _json_type(whole) != "object":
            return (violations.invalid_type(BODY, "an object"),)
        values = reading.struct(envelope, "", whole)
    except DecodeError as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        return (violations.malformed_json(reason[:1].lower() + reason[1:]),)
    except UnicodeDecodeError:
        return (violations.malformed_json("it is not UTF-8"),)
    except RecursionError:
        return (violations.malformed_json("it is nested too deep"),)
    return violations.listed(reading.found) if reading.found else convert(values, envelope)


class _Walk:
    """Each method gives what was sent at `field`, or INVALID and one more violation in `found`."""

    def __init__(self, rules: FieldRules) -> None:
        self.rules = rules
        self.found: list[Violation] = []

    def refuse(self, violation: Violation) -> object:
        self.found.append(violation)
        return INVALID

    def value(self, shape: Shape, field: str, sent: Raw) -> Any:
        form = shape.struct or shape.element
        if form is None:
            return self.scalar(shape, field, sent)
        json_type = _json_type(sent)
        if json_type == "null" and shape.nullable:
            return None
        if json_type != shape.json_type:
            return self.refuse(_unfit(field, json_type, shape.words))
        if isinstance(form, Shape):
            return self.array(form, shape.most, field, sent)
        return self.struct(form, field, sent)

    def struct(self, cls: type[Struct], field: str, sent: Raw) -> Any:
        parts = _sieve(cls).decode(sent)
        values: dict[str, Any] = {}
        for member in members(cls):
            part = getattr(parts, member.name)
            if part is not UNSET:
                place = _place(field, member.name)
                values[member.name] = self.value(member.shape, place, part)
            elif member.required:
                self.refuse(violations.missing(_place(field, member.name)))
        if cls in RULES_OF_STRUCTS:
            self.found += getattr(self.rules, RULES_OF_STRUCTS[cls])(field, values)
        return values

    def array(self, element: Shape, most: int, field: str, sent: Raw) -> Any:
        row = _row(most + 1).decode(sent)
        parts = [part for part in structs.astuple(row) if part is not UNSET]
        if len(parts) > most:
            self.refuse(violations.too_long(field, most, "items"))
        return [
            self.value(element, f"{field}[{index}]", part)
            for index, part in enumerate(parts[:most])
        ]

    def scalar(self, shape: Shape, field: str, sent: Raw) -> Any:
        limit = self.rules.limits.metadata_size
        if shape.rule == "metadata" and len(memoryview(sent)) > limit:
            return self.refuse(violations.too_long(field, limit, "bytes of JSON"))
        try:
            value = shape.decoder.decode(sent)
        except ValidationError:
            return self.unread(shape, field, sent)
        if value is None or shape.rule is None:
            return value
        broken = list(getattr(self.rules, shape.rule)(field, value))
        self.found += broken
        return INVALID if broken else value

    def unread(self, shape: Shape, field: str, sent: Raw) -> object:
        """What is wrong with a scalar, headers or metadata that its decoder refused."""
        json_type = _json_type(sent)
        if json_type != shape.json_type:
            return self.refuse(_unfit(field, json_type, shape.words))
        if shape.rule != "headers":
            return self.refuse(shape.refusal(field, bytes(sent)))
        parts = _HEADERS.decode(sent)
        if len(parts) > shape.most:
            return self.refuse(violations.too_long(field, shape.most, "entries"))
        for name, part in parts.items():
            try:
                _HEADER.decode(part)
            except ValidationError:
                place = _header_place(field, name)
                self.refuse(_unfit(place, _json_type(part), "a string or an array of strings"))
        return INVALID


def _unfit(field: str, json_type: str, expected: str) -> Violation:
    if json_type == "null":
        return violations.null(field)
    return violations.invalid_type(field, expected)


def _place(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _header_place(field: str, name: str) -> str:
    """The header itself when its name is fit to be shown."""
    return f"{field}.{name}" if len(name) <= MAX_TEXT and name.isprintable() else field


def _json_type(sent: Raw) -> str:
    return _JSON_TYPES[memoryview(sent)[0]]


@cache
def _sieve(cls: type[Struct]) -> json.Decoder[Any]:
    """Reads the members of `cls`, undecoded, and over all others."""
    names = [field.name for field in structs.fields(cls)]
    members = [(name, Raw | UnsetType, UNSET) for name in names]
    return json.Decoder(defstruct(f"{cls.__name__}Sieve", members))


@cache
def _row(length: int) -> json.Decoder[Any]:
    """Reads the first `length` items of an array, undecoded, and over all others."""
    items = [(f"item_{index}", Raw | UnsetType, UNSET) for index in range(length)]
    return json.Decoder(defstruct("Row", items, array_like=True))
