"""Validate an event's data against the fields of its type (docs/language.md, "An event type").

Values are represented as `grammar/types.py` says. Data remember the types that their version gave
them: a program of another version, in which a field has another type, sees it as missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tollkeeper.engine.instants import BeyondCalendarError, read_iso_8601, to_microseconds
from tollkeeper.engine.intake import violations
from tollkeeper.engine.intake.addresses import address_number
from tollkeeper.engine.intake.annotations import INSTANT_FORM
from tollkeeper.engine.intake.redaction import mask_card_numbers
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.programs.compile.functions import metadata_number
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import Value

OWN = ("id", "timestamp")
"""The fields that every event has beside its type's own."""

_IN_CALENDAR = "a time within the years 1 to 9999"

Kinds = Mapping[str, type[t.Type]]


@dataclass(frozen=True, eq=False)
class Contract:
    """The fields of one version of an event type; `kinds` are their types."""

    fields: tuple[p.EventField, ...]
    kinds: Kinds

    @classmethod
    def of(cls, program: p.EventType) -> Contract:
        kinds = {each.name: type(each.type) for each in program.fields}
        own = tuple(each for each in program.fields if each.name not in OWN)
        return cls(own, kinds)


class Data(dict[str, Value]):
    """An event's data by field, including `id` and `timestamp` (µs), without missing ones."""

    __slots__ = ("contract",)

    def __init__(self, contract: Contract, values: Mapping[str, Value]) -> None:
        super().__init__(values)
        self.contract = contract


@dataclass
class DataReading:
    """What reading an event's data gave: `kept` is the JSON to store, `values` are what programs read."""

    kept: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)


def read_data(contract: Contract, sent: Mapping[str, Any], place: str) -> DataReading:
    """Read every field of the contract and ignore others. `place` is the path of the data in the
    body."""
    reading = DataReading()
    for each in contract.fields:
        path = f"{place}.{each.name}"
        written = sent.get(each.name)
        if written is None:
            if each.required:
                wrong = violations.null if each.name in sent else violations.missing
                reading.violations.append(wrong(path))
            continue
        read = _read(each, written, path)
        if isinstance(read, Violation):
            reading.violations.append(read)
            continue
        reading.kept[each.name], value = read
        if value is not None:
            reading.values[each.name] = value
    return reading


def recall_data(contract: Contract, kept: Mapping[str, Any], event_id: str, timestamp: int) -> Data:
    """The data of a stored event, as it was read when it arrived."""
    values = read_data(contract, kept, "").values
    return own_data(contract, values, event_id, timestamp)


def own_data(
    contract: Contract, values: Mapping[str, Value], event_id: str, timestamp: int
) -> Data:
    return Data(contract, {**values, "id": event_id, "timestamp": timestamp})


def _read(
    declared: p.EventField, written: object, path: str
) -> tuple[object, Value | None] | Violation:
    """The JSON to store of a value, and the value as programs read it; a number out of bounds is
    missing."""
    match declared.type:
        case t.String(choices=choices):
            return _read_text(choices, declared.required, written, path)
        case t.Boolean():
            if not isinstance(written, bool):
                return violations.invalid_type(path, "a boolean")
            return written, written
        case t.Number():
            if isinstance(written, bool) or not isinstance(written, int | float):
                return violations.invalid_type(path, "a number")
            return written, metadata_number(written)
        case t.Ip():
            number = address_number(written) if isinstance(written, str) else None
            if number is None:
                return _unfit(written, path, "an IPv4 or IPv6 address")
            return written, number
        case _:
            return _read_instant(written, path)


def _read_text(
    choices: Sequence[str] | None, required: bool, written: object, path: str
) -> tuple[object, Value | None] | Violation:
    """An empty text in an optional field means that the field is missing."""
    if not isinstance(written, str):
        return violations.invalid_type(path, "a string")
    if choices is not None:
        if written not in choices:
            return violations.not_one_of(path, choices, written)
        return written, written
    if len(written) > t.LONGEST_EVENT_TEXT:
        return violations.too_long(path, t.LONGEST_EVENT_TEXT, "characters")
    if not written and required:
        return violations.empty(path)
    text = mask_card_numbers(written)
    return text, text or None


def _read_instant(written: object, path: str) -> tuple[object, Value | None] | Violation:
    if not isinstance(written, str):
        return violations.invalid_type(path, "a string")
    try:
        return written, to_microseconds(read_iso_8601(written))
    except BeyondCalendarError:
        return violations.invalid_format(path, _IN_CALENDAR)
    except ValueError:
        return violations.invalid_format(path, INSTANT_FORM)


def _unfit(written: object, path: str, expected: str) -> Violation:
    if not isinstance(written, str):
        return violations.invalid_type(path, "a string")
    return violations.invalid_format(path, expected)
