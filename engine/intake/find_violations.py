"""The careful walk through a request that the fast decode refused: all that is wrong with it.

It is derived from the Structs, and it is the meaning: what it finds no fault with is accepted.
A part is decoded whole and taken apart only when that fails, and nothing is decoded that no Struct
names, so a hostile body costs little more than reading over it.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
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

from tollkeeper.engine.intake import violations
from tollkeeper.engine.intake.annotations import RULES_OF_STRUCTS, Member, Shape, members
from tollkeeper.engine.intake.exact_numbers import has_two_decimals
from tollkeeper.engine.intake.field_rules import INVALID, FieldRules, header_place, shown_name
from tollkeeper.engine.intake.payment import MAX_HEADERS
from tollkeeper.engine.intake.violations import BODY, Violation

S = TypeVar("S", bound=Struct)

_JSON_TYPES = dict.fromkeys(b"-0123456789", "number") | {
    ord("{"): "object",
    ord("["): "array",
    ord('"'): "string",
    ord("t"): "boolean",
    ord("f"): "boolean",
    ord("n"): "null",
}

# Violations after which the rest of an array or of the headers is not looked into any more.
_ENOUGH = 2 * violations.MAX_LISTED

# Bytes beyond which a part is taken apart at once: to decode it whole first may be in vain.
_LARGE = 64 * 1024
# Headers that are looked at to find what is wrong with them.
_HEADERS_READ = 10 * MAX_HEADERS
_TEXTS = frozenset({"string", "array"})

_OBJECT = json.Decoder(dict[str, Raw])
_ARRAY = json.Decoder(list[Raw])
_HEADER = json.Decoder(str | list[str])


def walk(body: bytes, envelope: type[S], rules: FieldRules) -> S | tuple[Violation, ...]:
    """The request in `body`, or every violation in it: field by field, then what fields ask of each other.

    A member that a Struct does not name is a violation where the Struct forbids it.
    """
    if not body.strip():
        return (violations.empty_body(),)
    reading = _Walk(rules)
    try:
        values = reading.body(envelope, body)
    except DecodeError as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        return (violations.malformed_json(reason[:1].lower() + reason[1:]),)
    except UnicodeDecodeError:
        return (violations.malformed_json("it is not UTF-8"),)
    except RecursionError:
        return (violations.malformed_json("it is nested too deep"),)
    if reading.found:
        return violations.listed(reading.found, all_found=reading.all_found)
    return convert(values, envelope)


class _Walk:
    """Each method gives what was sent at `field`, or INVALID, and adds what is wrong to `found`."""

    def __init__(self, rules: FieldRules) -> None:
        self.rules = rules
        self.found: list[Violation] = []
        self.all_found = True

    def refuse(self, violation: Violation) -> object:
        self.found.append(violation)
        return INVALID

    def has_enough(self) -> bool:
        """Whether so much is wrong that the rest of a long part is not looked into."""
        self.all_found = self.all_found and len(self.found) < _ENOUGH
        return not self.all_found

    def body(self, envelope: type[Struct], sent: bytes) -> Any:
        try:
            return self.struct(envelope, "", sent)
        except ValidationError:
            json.decode(sent, type=Raw)
            return self.refuse(violations.invalid_type(BODY, "an object"))

    def value(self, shape: Shape, field: str, sent: Raw) -> Any:
        if shape.written or (len(sent) > _LARGE and shape.has_parts):
            return self.apart(shape, field, sent)
        try:
            value = shape.decoder.decode(sent)
        except ValidationError:
            return self.apart(shape, field, sent)
        if shape.ruled:
            self.found += _broken(self.rules, shape, field, value)
        return value

    def apart(self, shape: Shape, field: str, sent: Raw) -> Any:
        """The value part by part, to tell what is wrong with each."""
        json_type = _json_type(sent)
        if json_type == "null" and shape.nullable:
            return None
        if json_type != shape.json_type:
            return self.refuse(_unfit(field, json_type, shape.words))
        if shape.struct is not None:
            return self.struct(shape.struct, field, sent)
        if shape.element is not None:
            return self.array(shape.element, shape.most, field, sent)
        if shape.rule == "headers":
            return self.headers(shape, field, sent)
        return (
            self.written(shape, field, sent) if shape.written else self.unread(shape, field, sent)
        )

    def struct(self, cls: type[Struct], field: str, sent: Raw | bytes) -> Any:
        parts = _sieve(cls).decode(sent)
        if cls.__struct_config__.forbid_unknown_fields:
            self.strangers(cls, field, sent)
        values: dict[str, Any] = {}
        for member, part in zip(members(cls), structs.astuple(parts), strict=True):
            if part is not UNSET:
                place = _place(field, member.name)
                values[member.name] = self.value(member.shape, place, part)
            elif member.required:
                self.refuse(violations.missing(_place(field, member.name)))
        if cls in RULES_OF_STRUCTS:
            self.found += getattr(self.rules, RULES_OF_STRUCTS[cls])(field, values)
        return values

    def strangers(self, cls: type[Struct], field: str, sent: Raw | bytes) -> None:
        known = cls.__struct_fields__
        for name in _OBJECT.decode(sent):
            if name not in known:
                if self.has_enough():
                    break
                self.refuse(violations.unknown_member(_place(field, shown_name(name))))

    def array(self, element: Shape, most: int, field: str, sent: Raw) -> Any:
        parts = _items(most, sent)
        if most and len(parts) > most:
            self.refuse(violations.too_long(field, most, "items"))
            del parts[most:]
        read = []
        for index, part in enumerate(parts):
            if self.has_enough():
                break
            read.append(self.value(element, f"{field}[{index}]", part))
        return read

    def written(self, shape: Shape, field: str, sent: Raw) -> Any:
        """An amount or metadata, judged as it was written too."""
        limit = self.rules.limits.metadata_size
        if shape.rule == "metadata" and len(sent) > limit:
            return self.refuse(violations.too_long(field, limit, "bytes of JSON"))
        try:
            value = shape.decoder.decode(sent)
        except ValidationError:
            return self.unread(shape, field, sent)
        if shape.rule == "amount":
            if not has_two_decimals(bytes(sent).decode()):
                return self.refuse(violations.precision(field))
            return abs(value)  # zero may have been sent with a sign
        self.found += _broken(self.rules, shape, field, value)
        return value

    def unread(self, shape: Shape, field: str, sent: Raw) -> object:
        """What is wrong with a value of the right JSON type that its decoder refused."""
        if shape.core is str and shape.rule is not None:
            text = json.decode(sent, type=str)
            self.found += getattr(self.rules, shape.rule)(field, text[: shape.most + 1])
            return INVALID
        return self.refuse(shape.refusal(field, bytes(sent)))

    def headers(self, shape: Shape, field: str, sent: Raw) -> Any:
        parts = _OBJECT.decode(sent)
        if len(parts) > shape.most:
            self.refuse(violations.too_long(field, shape.most, "entries"))
        fit: dict[str, Any] = {}
        for name, part in islice(parts.items(), _HEADERS_READ):
            if self.has_enough():
                break
            json_type = _json_type(part)
            try:
                if json_type in _TEXTS:
                    fit[name] = _HEADER.decode(part)
                    continue
            except ValidationError:
                pass
            place = header_place(field, name)
            self.refuse(_unfit(place, json_type, "a string or an array of strings"))
        self.found += self.rules.headers(field, fit)
        return fit


def _broken(rules: FieldRules, shape: Shape, field: str, value: Any) -> list[Violation]:
    """What breaks a rule within a value that fits its type; places within it are made on demand."""
    if value is None or value is UNSET:
        return []
    found: list[Violation] = []
    if shape.rule is not None:
        found += getattr(rules, shape.rule)(field, value)
    if shape.element is not None and shape.element.ruled:
        for index, item in enumerate(value):
            for violation in _broken(rules, shape.element, "", item):
                found.append(_within(f"{field}[{index}]", violation))
    if shape.struct is not None:
        for member in _ruled(shape.struct):
            part = getattr(value, member.name)
            for violation in _broken(rules, member.shape, member.name, part):
                found.append(_within(field, violation))
        if shape.struct in RULES_OF_STRUCTS:
            found += getattr(rules, RULES_OF_STRUCTS[shape.struct])(field, value)
    return found


def _within(field: str, violation: Violation) -> Violation:
    return structs.replace(violation, field=_place(field, violation.field.lstrip(".")))


def _unfit(field: str, json_type: str, expected: str) -> Violation:
    if json_type == "null":
        return violations.null(field)
    return violations.invalid_type(field, expected)


def _place(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _json_type(sent: Raw) -> str:
    return _JSON_TYPES[memoryview(sent)[0]]


@cache
def _ruled(cls: type[Struct]) -> tuple[Member, ...]:
    """The members that a rule holds for, or for something within."""
    return tuple(member for member in members(cls) if member.shape.ruled)


@cache
def _sieve(cls: type[Struct]) -> json.Decoder[Any]:
    """Reads the members of `cls`, undecoded, and over all others."""
    names = [field.name for field in structs.fields(cls)]
    members = [(name, Raw | UnsetType, UNSET) for name in names]
    return json.Decoder(defstruct(f"{cls.__name__}Sieve", members))


def _items(most: int, sent: Raw) -> list[Raw]:
    """The items of an array, undecoded: one more than `most` of them, all when it is 0."""
    if not most:
        return _ARRAY.decode(sent)
    row = _row(most + 1).decode(sent)
    return [part for part in structs.astuple(row) if part is not UNSET]


@cache
def _row(length: int) -> json.Decoder[Any]:
    """Reads the first `length` items of an array, undecoded, and over all others."""
    items = [(f"item_{index}", Raw | UnsetType, UNSET) for index in range(length)]
    return json.Decoder(defstruct("Row", items, array_like=True))
