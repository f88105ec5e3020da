"""Send events from a file to a running service, in the largest batches that it accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import httpx
import msgspec

from tollkeeper.api.http.settings import BODY_BYTES
from tollkeeper.engine.events.submission import MAX_EVENTS

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_ENVELOPE_BYTES = len(b'{"events":[]}')
_PATIENCE_S = 60.0


class SubmittedEvent(NamedTuple):
    """`line` is the event's line in the file, from 1; `errors` is empty if the event was stored."""

    line: int
    errors: list[dict[str, Any]]


def batches(lines: Iterable[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield numbered lines without blank ones, in groups of the size of a request."""
    batch: list[tuple[int, bytes]] = []
    size = _ENVELOPE_BYTES
    for number, line in enumerate(lines, start=1):
        event = _one_line(line)
        if not event:
            continue
        if batch and (len(batch) == MAX_EVENTS or size + len(event) + 1 > BODY_BYTES):
            yield batch
            batch, size = [], _ENVELOPE_BYTES
        batch.append((number, event))
        size += len(event) + 1
    if batch:
        yield batch


def _one_line(line: bytes) -> bytes:
    """Return the event as one JSON value; from a line of a history, the event in it.

    A line that isn't JSON becomes a JSON string, so that only this event is refused.
    """
    text = line.strip()
    try:
        found = msgspec.json.decode(text or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b'"not JSON"'
    is_of_history = isinstance(found, dict) and "event" in found
    return bytes(_members(text)["event"]) if is_of_history else text


def send_events(url: str, key: str, lines: Iterable[bytes]) -> Iterator[SubmittedEvent]:
    """Send the events and yield each one's result, in order. Raises `httpx.HTTPError` if there is
    no answer.
    """
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    with httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE_S) as client:
        for batch in batches(lines):
            body = b'{"events":[' + b",".join(event for _, event in batch) + b"]}"
            answer = client.post("/events", content=body)
            if answer.status_code in (httpx.codes.CREATED, httpx.codes.MULTI_STATUS):
                results = answer.json()["events"]
            else:
                results = [answer.json()] * len(batch)
            for (number, _), result in zip(batch, results, strict=True):
                yield SubmittedEvent(number, result.get("errors", []))
