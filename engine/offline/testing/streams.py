"""Streams of what happened, as JSON Lines in time order: the histories of tests, and cases.

A line is one of

    {"payment": {…}}                       the body of `POST /payments`
    {"update": {"id": "p-1", …}}           the body of `PATCH /payments/{id}`, and the id
    {"event": {"type": "…", …}}            the body of `POST /events`
    {"label": {"payment": "p-1", …}}       one of the body of `POST /labels`
    {"list": "trusted", "entries": […]}    the body of `PUT /lists/{name}/entries`, and the name

and may say when it arrived (`"at"`). The default is a payment's or event's own timestamp, and
otherwise the arrival of the line before. A payment in a test's history may say how it was decided
(`"decision"`).
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from tollkeeper.engine.decision import Action, AppliedRule, Decision
from tollkeeper.engine.instants import from_microseconds, to_microseconds
from tollkeeper.engine.intake.payment import Payment, Timestamp, Update
from tollkeeper.engine.intake.read import read_creation, read_update
from tollkeeper.engine.intake.violations import describe_violations
from tollkeeper.engine.labels.label import Label, LabelSource, Verdict, add_label

START = to_microseconds(datetime(2026, 1, 1, 12, tzinfo=UTC))
"""The time of tests and cases that give none: noon of 1 January 2026, a Thursday (µs)."""


_WHAT = (
    'a line holds a "payment", an "update", an "event", a "label" of a payment, or a "list" with its'
    ' "entries"'
)
_A_PAYMENT = '{"payment": {…}} is needed'
_AN_EVENT = '{"event": {…}} is needed'


class StreamError(Exception):
    """A line that can't be read, or that contradicts those before it."""


class CreationLine(Struct, frozen=True):
    """`arrived` in µs. `decision` is None when the line does not say."""

    line: int
    arrived: int
    payment: Payment
    decision: Decision | None


class UpdateLine(Struct, frozen=True):
    line: int
    arrived: int
    id: str
    update: Update


class ListLine(Struct, frozen=True):
    """`entries` as `lists/entries.py` reads them."""

    line: int
    arrived: int
    list: str
    entries: tuple[Any, ...]


class LabelLine(Struct, frozen=True):
    """A label of the payment `id`."""

    line: int
    arrived: int
    id: str
    label: Label


class EventLine(Struct, frozen=True):
    """An event: `timestamp` in µs, `data` as it was sent."""

    line: int
    arrived: int
    type: str
    id: str
    timestamp: int
    data: dict[str, Any]


StreamLine: TypeAlias = CreationLine | UpdateLine | EventLine | LabelLine | ListLine


class _Event(Struct, frozen=True):
    type: str
    data: dict[str, Any] = {}
    id: str | None = None
    timestamp: Timestamp | None = None


class _DecisionMember(Struct, frozen=True, forbid_unknown_fields=True):
    action: Action | None = None
    rule: str | None = None
    condition: str | None = None
    score: Annotated[float, Meta(ge=0, le=1)] | None = None


_ABSENT = msgspec.Raw()


class _LabelMember(Struct, frozen=True, forbid_unknown_fields=True):
    payment: str
    label: Verdict | None
    source: LabelSource = "review"
    reason: str | None = None


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One line; a number for `label` is used by `toll fit` and `toll suggest` alone."""

    payment: msgspec.Raw = _ABSENT
    update: msgspec.Raw = _ABSENT
    event: _Event | None = None
    list: str | None = None
    entries: tuple[Any, ...] | None = None
    at: Timestamp | None = None
    decision: _DecisionMember | None = None
    label: int | _LabelMember | None = None


class _SentLine(Struct, frozen=True):
    id: str | None = None
    timestamp: Timestamp | None = None


class _StreamedId(Struct, frozen=True):
    id: str


_line = msgspec.json.Decoder(_Line).decode
_sent = msgspec.json.Decoder(_SentLine).decode
_named = msgspec.json.Decoder(_StreamedId).decode


def read_stream(path: Path) -> list[StreamLine]:
    """The file's items in order. Raises `StreamError` with the file and line."""
    items: list[StreamLine] = []
    arrived = START
    for number, text in enumerate(_lines(path), start=1):
        if not text.strip():
            continue
        place = f"{path}:{number}"
        try:
            item = _item(number, _line(text), arrived, place)
        except (msgspec.DecodeError, RecursionError) as error:
            raise _line_error(place, _unread(error, _WHAT)) from None
        if items and item.arrived < arrived:
            raise _line_error(
                place, "this arrives before the line above it, and lines are in time order"
            )
        arrived = item.arrived
        items.append(item)
    return items


def labels_in_stream(path: Path) -> dict[str, str]:
    """The labels of payments by id in a file that `read_stream` has read: "1" and "0" of payments'
    own lines, and the verdicts of lines that label them.
    """
    said: defaultdict[str, dict[LabelSource, Verdict]] = defaultdict(dict)
    known: dict[str, str | None] = {}
    for number, text in enumerate(_lines(path), start=1):
        line = _line(text) if text.strip() else _Line()
        match bytes(line.payment), line.label:
            case body, int(label) if body:
                known[_sent_line(body).id or _unnamed(number)] = str(label)
            case b"", _LabelMember(payment=id_, label=verdict, source=source):
                known[id_] = add_label(said[id_], Label(source, verdict, 0, ""))
    return {id_: label for id_, label in known.items() if label is not None}


def read_payment_line(path: Path) -> Payment:
    """The payment in a file that holds the body of `POST /payments`. Raises `StreamError`."""
    return _created_of("\n".join(_lines(path)), START, str(path)).payment


def read_event_line(path: Path) -> EventLine:
    """The event in a file that holds the body of `POST /events`. Raises `StreamError`."""
    item = _one("\n".join(_lines(path)), START, str(path), _AN_EVENT)
    if not isinstance(item, EventLine):
        raise _line_error(str(path), f"this is no event: {_AN_EVENT}")
    return item


def created_of(body: bytes, before: int) -> CreationLine:
    """The payment in the body of `POST /payments`, that arrives at its own timestamp.

    Without one it arrives at `before` (µs). Raises `StreamError`.
    """
    return _created_of(body.decode("utf-8", "replace"), before, "the payment")


def _created_of(text: str, before: int, place: str) -> CreationLine:
    item = _one(text, before, place, _A_PAYMENT)
    if not isinstance(item, CreationLine):
        raise _line_error(place, f"this is no payment: {_A_PAYMENT}")
    return item


def _one(text: str, before: int, place: str, needed: str) -> StreamLine:
    try:
        return _item(1, _line(text), before, place)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _line_error(place, _unread(error, needed)) from None


def _lines(path: Path) -> list[str]:
    try:
        # Not `splitlines`: JSON text may hold line separators other than the line feed.
        return path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise StreamError(f"{path} can't be read: {reason}") from None


def _item(number: int, line: _Line, before: int, place: str) -> StreamLine:
    arrived = before if line.at is None else to_microseconds(line.at)
    match bytes(line.payment), bytes(line.update), line.event, line.list:
        case body, b"", None, None if body and line.entries is None:
            return _read_creation(number, body, line, before, place)
        case _ if line.decision is not None:
            raise _line_error(place, 'only a "payment" has a "decision"')
        case b"", body, None, None if body and line.entries is None:
            update = read_update(_request(body), arrived)
            if not isinstance(update, Update):
                raise _line_error(place, describe_violations(update))
            return UpdateLine(number, arrived, _named(body).id, update)
        case b"", b"", _Event() as event, None if line.entries is None:
            return _read_event(number, event, line, before)
        case b"", b"", None, str(name) if line.entries is not None:
            return ListLine(number, arrived, name, line.entries)
        case b"", b"", None, None if isinstance(line.label, _LabelMember) and line.entries is None:
            sent = line.label
            label = Label(sent.source, sent.label, arrived, place, sent.reason)
            return LabelLine(number, arrived, sent.payment, label)
        case _:
            raise _line_error(place, _WHAT)


def _read_event(number: int, event: _Event, line: _Line, before: int) -> EventLine:
    moment = event.timestamp or line.at
    timestamp = before if moment is None else to_microseconds(moment)
    arrived = timestamp if line.at is None else to_microseconds(line.at)
    id_ = event.id or _unnamed(number)
    return EventLine(number, arrived, event.type, id_, timestamp, event.data)


def _read_creation(number: int, body: bytes, line: _Line, before: int, place: str) -> CreationLine:
    sent = _sent_line(body)
    moment = line.at or sent.timestamp or from_microseconds(before)
    arrived = to_microseconds(moment)
    payment = read_creation(_request(body), arrived)
    if not isinstance(payment, Payment):
        raise _line_error(place, describe_violations(payment))
    if sent.id is None:
        payment = replace(payment, id=_unnamed(number))
    return CreationLine(number, arrived, payment, _decision(line.decision))


def _unnamed(number: int) -> str:
    """The id of what is sent without one in a line."""
    return f"line {number}"


def _sent_line(body: bytes) -> _SentLine:
    try:
        return _sent(body)
    except msgspec.ValidationError:  # reading the whole payment says what is wrong with it
        return _SentLine()


def _request(body: bytes) -> bytes:
    return b'{"payment":' + body + b"}"


def _decision(decided: _DecisionMember | None) -> Decision | None:
    if decided is None:
        return None
    named = decided.rule is not None or decided.condition is not None
    return Decision(
        action=decided.action,
        score=None if decided.score is None else round(decided.score * 100),
        rule=AppliedRule(decided.rule or "", 0, decided.condition) if named else None,
    )


def _unread(error: Exception, needed: str) -> str:
    """Why a line can't be read: its JSON, or what it holds where something else is `needed`."""
    words = str(error).removeprefix("JSON is malformed: ")
    words = words[:1].lower() + words[1:]
    if not isinstance(error, msgspec.ValidationError):
        return f"this is no JSON: {words}"
    return words if " - at `$" in words else f"{words}: {needed}"


def _line_error(place: str, message: str) -> StreamError:
    return StreamError(f"{place}: {message}")
