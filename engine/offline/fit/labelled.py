"""A labelled history: lines of payments and updates, with labels that say which were made by bots.

    {"payment": {"id": "p-1", …}, "label": 1}
    {"update": {"id": "p-1", …}, "at": "2025-06-02T10:00:03Z"}

`label` is 1 for a bot and 0 for a person; a payment without one is only history for the others. `at`
is the arrival; by default, a payment arrives at its timestamp, and an update with the line before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.payment import Timestamp
from tollkeeper.engine.intake.read import read_creation, read_update
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.offline.testing.streams import CreationLine, StreamError, UpdateLine

FraudLabel: TypeAlias = Literal[0, 1]


class LabelledItem(NamedTuple):
    """An item of a history, and its label, None for updates and unlabelled payments."""

    item: CreationLine | UpdateLine
    label: FraudLabel | None


class _Line(Struct, forbid_unknown_fields=True):
    payment: msgspec.Raw = msgspec.Raw()
    update: msgspec.Raw = msgspec.Raw()
    at: Timestamp | None = None
    label: FraudLabel | None = None


class _Payment(Struct):
    id: str
    timestamp: Timestamp


class _Update(Struct):
    id: str


_line = msgspec.json.Decoder(_Line).decode
_payment = msgspec.json.Decoder(_Payment).decode
_update = msgspec.json.Decoder(_Update).decode


def read_labelled(lines: Iterable[bytes]) -> Iterator[LabelledItem]:
    """The items of a history, one at a time; empty lines are skipped.

    Raises `StreamError`, which names the line.
    """
    before = 0
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            found = _read(number, _line(text), before)
        except (msgspec.DecodeError, RecursionError) as error:
            message = str(error)
            raise StreamError(f"line {number}: {message[:1].lower()}{message[1:]}") from None
        if found.item.arrived < before:
            raise StreamError(f"line {number}: this arrives before the line above it")
        before = found.item.arrived
        yield found


def _read(number: int, line: _Line, before: int) -> LabelledItem:
    match bytes(line.payment), bytes(line.update), line.label:
        case body, b"", label if body:
            sent = _payment(body)
            arrived = to_microseconds(line.at or sent.timestamp)
            payment = read_creation(_request(body), arrived)
            if isinstance(payment, tuple):
                raise _line_error(number, payment)
            return LabelledItem(CreationLine(number, arrived, payment, None), label)
        case b"", body, None if body:
            arrived = before if line.at is None else to_microseconds(line.at)
            update = read_update(_request(body), arrived)
            if isinstance(update, tuple):
                raise _line_error(number, update)
            return LabelledItem(UpdateLine(number, arrived, _update(body).id, update), None)
        case _:
            what = 'a line holds a "payment", with a "label" or without, or an "update"'
            raise StreamError(f"line {number}: {what}")


def _request(body: bytes) -> bytes:
    return b'{"payment":' + body + b"}"


def _line_error(number: int, violations: tuple[Violation, ...]) -> StreamError:
    words = "; ".join(f"`{each.field}`: {each.message}" for each in violations)
    return StreamError(f"line {number}: {words}")
