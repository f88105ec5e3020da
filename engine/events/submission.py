"""Read the body of `POST /events`: one event or a batch, with all violations of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, json, structs

from tollkeeper.engine.instants import read_iso_8601, to_microseconds
from tollkeeper.engine.intake import violations
from tollkeeper.engine.intake.exact_numbers import double_of
from tollkeeper.engine.intake.field_rules import rules_at
from tollkeeper.engine.intake.find_violations import find_violations
from tollkeeper.engine.intake.identifiers import new_identifier
from tollkeeper.engine.intake.payment import RequiredText, Timestamp
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.programs.active import ActivePrograms, choose_event_type
from tollkeeper.engine.programs.event_contract import Data, own_data, read_data
from tollkeeper.engine.programs.event_type import LoadedEventType
from tollkeeper.grammar.program import BUILT_IN_EVENT

MAX_EVENTS = 1000


class SentEvent(Struct, frozen=True, gc=False):
    """An event as a merchant sends it."""

    type: Annotated[RequiredText, Meta(description="The id of a registered event type.")]
    data: Annotated[dict[str, Any], Meta(description="The fields that the type declares.")]
    id: Annotated[
        RequiredText | None,
        Meta(description="Event identifier, unique in the account; generated when not sent."),
    ] = None
    timestamp: Annotated[
        Timestamp | None, Meta(description="When it happened; the current time when not sent.")
    ] = None


class SingleEventBody(Struct, frozen=True, gc=False):
    """The body of `POST /events` with one event."""

    event: SentEvent


class Event(Struct, frozen=True, gc=False):
    """An event that fits the version of its type that is in force at `timestamp` (µs).

    `kept` is the JSON that the journal stores of its data, `data` what programs read.
    """

    id: str
    timestamp: int
    loaded: LoadedEventType
    kept: dict[str, Any]
    data: Data


class _Bodies(Struct):
    event: Raw | UnsetType = UNSET
    events: Raw | UnsetType = UNSET


class _Loose(Struct):
    """The members of an event that breaks rules, as far as they can be read."""

    type: Any = None
    data: Any = None
    timestamp: Any = None


class _LooseBody(Struct):
    event: _Loose


_EVENT = json.Decoder(SingleEventBody, float_hook=double_of)
_LOOSE = json.Decoder(_LooseBody)
_BODIES = json.Decoder(_Bodies)
_RAWS = json.Decoder(list[Raw])


def split(body: bytes) -> list[bytes] | Violation | None:
    """The events of a batch, each as a body of its own, or the violation that the batch has as a
    whole.

    None when the body is no batch, or no JSON.
    """
    try:
        bodies = _BODIES.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(bodies.events, UnsetType):
        return None
    if not isinstance(bodies.event, UnsetType):
        message = "a request has one `event`, or several `events`"
        return Violation("event", "invalid_value", message)
    if bytes(bodies.events) == b"null":
        return violations.null("events")
    try:
        return [b'{"event":' + bytes(raw) + b"}" for raw in _RAWS.decode(bodies.events)]
    except msgspec.ValidationError:
        return violations.invalid_type("events", "an array")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def place_in_batch(index: int, found: Sequence[Violation]) -> list[Violation]:
    """The violations of one event of a batch, with their paths in the whole body."""
    place = f"events[{index}]"
    return [
        structs.replace(each, field=place + each.field.removeprefix("event"))
        if each.field.startswith("event")
        else structs.replace(each, field=place)
        for each in found
    ]


def read_event(body: bytes, now: int, active: ActivePrograms) -> Event | tuple[Violation, ...]:
    """The event in the body, or all its violations; `now` is the request's arrival in µs."""
    rules = rules_at(now, active.limits)
    sent: SentEvent | tuple[Violation, ...]
    try:
        sent = _EVENT.decode(body).event
        if sent.timestamp is not None and not rules.is_within(sent.timestamp):
            sent = ()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        sent = ()
    if not isinstance(sent, SentEvent):
        walked = find_violations(body, SingleEventBody, rules)
        if isinstance(walked, tuple):
            return violations.cap_violations([*walked, *_more(body, now, active)])
        sent = walked.event
    at = now if sent.timestamp is None else to_microseconds(sent.timestamp)
    loaded = _in_force(active, sent.type, at)
    if isinstance(loaded, Violation):
        return (loaded,)
    reading = read_data(loaded.contract, sent.data, "event.data")
    if reading.violations:
        return violations.cap_violations(reading.violations)
    event_id = sent.id or new_identifier(now)
    data = own_data(loaded.contract, reading.values, event_id, at)
    return Event(event_id, at, loaded, reading.kept, data)


def _more(body: bytes, now: int, active: ActivePrograms) -> list[Violation]:
    """Violations of the type and the data of an event whose form is refused already."""
    try:
        sent = _LOOSE.decode(body).event
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    if not isinstance(sent.type, str) or not sent.type:
        return []
    at = _moment(sent.timestamp, now)
    loaded = _in_force(active, sent.type, at)
    if isinstance(loaded, Violation):
        return [loaded]
    if not isinstance(sent.data, dict):
        return []
    return read_data(loaded.contract, sent.data, "event.data").violations


def _moment(timestamp: Any, now: int) -> int:
    try:
        return to_microseconds(read_iso_8601(timestamp))
    except (TypeError, ValueError):
        return now


def _in_force(active: ActivePrograms, name: str, at: int) -> LoadedEventType | Violation:
    field = "event.type"
    if name == BUILT_IN_EVENT:
        message = "payments are reported to `/payments`"
        return Violation(field, "unknown_event_type", message)
    lineage = active.account.files.get(("event", name))
    if lineage is None:
        return Violation(field, "unknown_event_type", "no event type has this id")
    loaded = choose_event_type(active, name, at)
    if loaded is None:
        return not_active()
    return loaded


def not_active() -> Violation:
    """The violation of an event whose type is not in force."""
    return Violation("event.type", "inactive_event_type", "this event type is not active")
