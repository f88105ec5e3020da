"""The full search for violations in a request that the fast decode refused.

It is derived from the Structs and decides: a request without violations is accepted. A value is
decoded as a whole, and part by part only when that fails; members that no Struct names are not
decoded. So a hostile body costs little more than a pass over its bytes.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from contextlib import suppress
from datetime import datetime
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

from tollkeeper.engine.instants import read_iso_8601
from tollkeeper.engine.intake import violations
from tollkeeper.engine.intake.annotations import RULES_OF_STRUCTS, Member, Shape, members
from tollkeeper.engine.intake.exact_numbers import double_of, has_two_decimals
from tollkeeper.engine.intake.field_rules import INVALID, FieldRules, header_path, printable_name
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

# So many violations end the search in an array or in the headers.
_MOST_VIOLATIONS = 2 * violations.MAX_LISTED

# A value with more bytes is read part by part at once: decoding it as a whole may be in vain.
_LARGE = 64 * 1024
# Characters of an integer that is written with a fraction or an exponent.
_LONGEST_INTEGER = 32
# Headers that are looked at to find what is wrong with them.
_HEADERS_READ = 10 * MAX_HEADERS
_TEXTS = frozenset({"string", "array"})

# What the decoder says also of half a pair at the end of a text.
_TRUNCATED = "Input data was truncated"
_HALF_PAIR = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")

_OBJECT = json.Decoder(dict[str, Raw])
_ARRAY = json.Decoder(list[Raw])
_HEADER = json.Decoder(str | list[str])


def find_violations(body: bytes, envelope: type[S], rules: FieldRules) -> S | tuple[Violation, ...]:
    """The request in `body`, or every violation in it: of single fields, then between fields.

    A member that a Struct does not name is a violation where the Struct forbids it.
    """
    if not body.strip():
        return (violations.empty_body(),)
    search = _Search(rules)
    try:
        values = search.body(envelope, body)
    except DecodeError as error:
        return (violations.malformed_json(_reason(str(error), body)),)
    except UnicodeDecodeError:
        return (violations.malformed_json("it is not UTF-8"),)
    except RecursionError:
        return (violations.malformed_json("it is nested too deep"),)
    if search.found:
        return violations.cap_violations(search.found, all_found=search.all_found)
    return convert(values, envelope)


def _reason(message: str, body: bytes) -> str:
    """Why a body is no JSON; the decoder's `message` is unspecific for two reasons."""
    if body.startswith(BOM_UTF8):
        return "it begins with a byte order mark"
    if message == _TRUNCATED and _HALF_PAIR.search(body):
        return "it has half of a surrogate pair"
    reason = message.removeprefix("JSON is malformed: ")
    return reason[:1].lower() + reason[1:]


class _Search:
    """Each method returns the value at `field`, or INVALID, and adds its violations to `found`."""

    def __init__(self, rules: FieldRules) -> None:
        self.rules = rules
        self.found: list[Violation] = []
        self.all_found = True

    def refuse(self, violation: Violation) -> object:
        self.found.append(violation)
        return INVALID

    def has_enough(self) -> bool:
        """Whether there are so many violations that the rest of a long part is skipped."""
        self.all_found = self.all_found and len(self.found) < _MOST_VIOLATIONS
        return not self.all_found

    def body(self, envelope: type[Struct], sent: bytes) -> Any:
        try:
            return self.struct(envelope, "", sent)
        except ValidationError:
            json.decode(sent, type=Raw)
            return self.refuse(violations.invalid_type(BODY, "an object"))

    def value(self, shape: Shape, field: str, sent: Raw) -> Any:
        if shape.needs_text or (len(sent) > _LARGE and shape.has_parts):
            return self.by_parts(shape, field, sent)
        try:
            value = shape.decoder.decode(sent)
        except ValidationError:
            return self.by_parts(shape, field, sent)
        if shape.has_rule:
            self.found += _broken_rules(self.rules, shape, field, value)
        return value

    def by_parts(self, shape: Shape, field: str, sent: Raw) -> Any:
        """The value, read part by part to find the violations of each."""
        json_type = _json_type(sent)
        if json_type == "null" and shape.nullable:
            return None
        if shape.blank and bytes(sent) == b'""':
            return None
        if shape.free:
            return ""
        if json_type != shape.json_type:
            return self.refuse(_wrong_type(field, json_type, shape.words))
        if shape.struct is not None:
            return self.struct(shape.struct, field, sent)
        if shape.element is not None:
            return self.array(shape, shape.element, field, sent)
        if shape.rule == "headers":
            return self.headers(shape, field, sent)
        return (
            self.as_text(shape, field, sent)
            if shape.needs_text
            else self.undecodable(shape, field, sent)
        )

    def struct(self, cls: type[Struct], field: str, sent: Raw | bytes) -> Any:
        parts = _sieve(cls).decode(sent)
        if cls.__struct_config__.forbid_unknown_fields:
            self.unknown_members(cls, field, sent)
        values: dict[str, Any] = {}
        for member, part in zip(members(cls), structs.astuple(parts), strict=True):
            if part is not UNSET:
                place = _path(field, member.name)
                values[member.name] = self.value(member.shape, place, part)
            elif member.required:
                self.refuse(violations.missing(_path(field, member.name)))
        if cls in RULES_OF_STRUCTS:
            self.found += getattr(self.rules, RULES_OF_STRUCTS[cls])(field, values)
        return values

    def unknown_members(self, cls: type[Struct], field: str, sent: Raw | bytes) -> None:
        known = cls.__struct_fields__
        for name in _OBJECT.decode(sent):
            if name not in known:
                if self.has_enough():
                    break
                self.refuse(violations.unknown_member(_path(field, printable_name(name))))

    def array(self, shape: Shape, element: Shape, field: str, sent: Raw) -> Any:
        most = shape.max_length
        parts = _items(most, sent)
        if len(parts) < shape.min_length:
            self.refuse(violations.empty(field))
        if most and len(parts) > most:
            self.refuse(violations.too_long(field, most, "items"))
            del parts[most:]
        read = []
        for index, part in enumerate(parts):
            if self.has_enough():
                break
            read.append(self.value(element, f"{field}[{index}]", part))
        return read

    def as_text(self, shape: Shape, field: str, sent: Raw) -> Any:
        """An amount or metadata, whose rules also read the JSON text."""
        limit = self.rules.limits.metadata_size
        if shape.rule == "metadata" and len(sent) > limit:
            return self.refuse(violations.too_long(field, limit, "bytes of JSON"))
        try:
            value = shape.decoder.decode(sent)
        except ValidationError:
            return self.undecodable(shape, field, sent)
        if shape.rule == "amount":
            if not has_two_decimals(bytes(sent).decode()):
                return self.refuse(violations.precision(field))
            return abs(value)  # zero may have been sent with a sign
        self.found += _broken_rules(self.rules, shape, field, value)
        return value

    def undecodable(self, shape: Shape, field: str, sent: Raw) -> object:
        """The violation of a value that has the right JSON type but that its decoder refused."""
        if shape.core is str and shape.rule is not None:
            text = json.decode(sent, type=str)
            self.found += getattr(self.rules, shape.rule)(field, text[: shape.max_length + 1])
            return INVALID
        if shape.core is datetime:
            return self.instant(shape, field, sent)
        if shape.core is int:
            return self.integer(shape, field, sent)
        return self.refuse(shape.refusal(field, bytes(sent)))

    def integer(self, shape: Shape, field: str, sent: Raw) -> object:
        """An integer may be written with a fraction of zero: `420.0`."""
        written = bytes(sent).decode()
        if not written.lstrip("-").isdigit() and len(written) <= _LONGEST_INTEGER:
            with suppress(ValueError):
                number = double_of(written)
                if number.is_integer():
                    return self.value(shape, field, Raw(str(int(number)).encode()))
        return self.refuse(shape.refusal(field, bytes(sent)))

    def instant(self, shape: Shape, field: str, sent: Raw) -> object:
        """An instant in a form of ISO 8601 that the decoder does not know."""
        try:
            value = read_iso_8601(json.decode(sent, type=str))
        except ValueError:
            return self.refuse(shape.refusal(field, bytes(sent)))
        self.found += _broken_rules(self.rules, shape, field, value)
        return value

    def headers(self, shape: Shape, field: str, sent: Raw) -> Any:
        parts = _OBJECT.decode(sent)
        if len(parts) > shape.max_length:
            self.refuse(violations.too_long(field, shape.max_length, "entries"))
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
            place = header_path(field, name)
            self.refuse(_wrong_type(place, json_type, "a string or an array of strings"))
        self.found += self.rules.headers(field, fit)
        return fit


def _broken_rules(rules: FieldRules, shape: Shape, field: str, value: Any) -> list[Violation]:
    """The violations of rules within a value that fits its type."""
    if value is None or value is UNSET:
        return []
    found: list[Violation] = []
    if shape.rule is not None:
        found += getattr(rules, shape.rule)(field, value)
    if shape.element is not None and shape.element.has_rule:
        for index, item in enumerate(value):
            for violation in _broken_rules(rules, shape.element, "", item):
                found.append(_prefix_field(f"{field}[{index}]", violation))
    if shape.struct is not None:
        for member in _members_with_rules(shape.struct):
            part = getattr(value, member.name)
            for violation in _broken_rules(rules, member.shape, member.name, part):
                found.append(_prefix_field(field, violation))
        if shape.struct in RULES_OF_STRUCTS:
            found += getattr(rules, RULES_OF_STRUCTS[shape.struct])(field, value)
    return found


def _prefix_field(field: str, violation: Violation) -> Violation:
    return structs.replace(violation, field=_path(field, violation.field.lstrip(".")))


def _wrong_type(field: str, json_type: str, expected: str) -> Violation:
    if json_type == "null":
        return violations.null(field)
    return violations.invalid_type(field, expected)


def _path(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _json_type(sent: Raw) -> str:
    return _JSON_TYPES[memoryview(sent)[0]]


@cache
def _members_with_rules(cls: type[Struct]) -> tuple[Member, ...]:
    """The members that a rule applies to, or to a part of them."""
    return tuple(member for member in members(cls) if member.shape.has_rule)


@cache
def _sieve(cls: type[Struct]) -> json.Decoder[Any]:
    """Decodes an object to the members of `cls` as raw JSON, and skips all others."""
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
    """Decodes an array to its first `length` items as raw JSON, and skips all others."""
    items = [(f"item_{index}", Raw | UnsetType, UNSET) for index in range(length)]
    return json.Decoder(defstruct("Row", items, array_like=True))
