"""Requests and the interpretation of answers, shared by both clients; without any input or output."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypedDict, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from msgspec import Struct

from tollkeeper.api.client.answers import CreationAnswer, UpdateAnswer

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
"""A service that asks for a longer one is not asked again: the caller's customer waits."""
_NOT_DONE: Final = frozenset((429, 503))
"""Statuses that mean that nothing was done: any request may be repeated."""
_UNKNOWN: Final = frozenset((408, 500, 502, 504))
"""Statuses after which only an idempotent request may be repeated."""
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


class EventSubmitted(Struct, frozen=True):
    """The answer to an event."""

    event: dict[str, Any]


class ErrorItem(TypedDict):
    """One item of an answer's `errors`."""

    field: str
    type: str
    message: str


class _ErrorItems(Struct, frozen=True):
    errors: list[ErrorItem]


@dataclass(frozen=True, slots=True)
class ClientCall(Generic[T]):
    """One request and the type of its answer; if `repeatable`, sending it twice has no further
    effect.
    """

    method: str
    path: str
    answer: type[T]
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True

    def content(self) -> bytes | None:
        match self.body:
            case None:
                return None
            case str():
                return self.body.encode()
            case _:
                return _ENCODER.encode(self.body)


class RequestError(Exception):
    """The service refused the request; repeating it unchanged gets the same answer.

    `errors` are the items of the answer, each with `field`, `type` and `message`.
    """

    def __init__(self, status: int, errors: list[ErrorItem], request_id: str) -> None:
        shown = "; ".join(f"{each['field']}: {each['message']}" for each in errors)
        super().__init__(f"{status}: {shown} (request {request_id})")
        self.status = status
        self.errors = errors
        self.request_id = request_id


class UnansweredError(Exception):
    """No attempt got a conclusive answer."""


def creation_call(
    payment: Mapping[str, Any], idempotency_key: str | None
) -> ClientCall[CreationAnswer]:
    """Return the request that creates a payment; without an idempotency key, one is generated so
    that it can be repeated.
    """
    headers = {"idempotency-key": idempotency_key or str(uuid.uuid4())}
    return ClientCall("POST", "/payments", CreationAnswer, {"payment": payment}, headers)


def update_call(payment_id: str, update: Mapping[str, Any]) -> ClientCall[UpdateAnswer]:
    """Return the request that reports a payment's final status; it can be repeated if each of its
    transactions has an id, since others are added each time.
    """
    # `.` and `..` alone would be taken for steps of the path.
    path = f"/payments/{quote(payment_id, safe='').replace('.', '%2E')}"
    repeatable = all(each.get("id") is not None for each in update.get("transactions") or ())
    return ClientCall("PATCH", path, UpdateAnswer, {"payment": update}, repeatable=repeatable)


def event_call(event: Mapping[str, Any], idempotency_key: str | None) -> ClientCall[EventSubmitted]:
    """Return the request that submits an event; without an idempotency key, one is generated."""
    headers = {"idempotency-key": idempotency_key or str(uuid.uuid4())}
    return ClientCall("POST", "/events", EventSubmitted, {"event": event}, headers)


def any_call(method: str, path: str, body: Any) -> ClientCall[Any]:
    """Return the request for any other operation, by its path below `/v1`; a text is sent as it is,
    any other body as JSON.
    """
    headers = {"content-type": "text/plain; charset=utf-8"} if isinstance(body, str) else {}
    repeatable = method in ("GET", "PUT", "DELETE")
    return ClientCall(method, path, Any, body, headers, repeatable)


def is_conclusive(answer: httpx.Response) -> bool:
    """Whether the answer tells that the request was done, or that it will not be."""
    return answer.status_code not in _NOT_DONE | _UNKNOWN


def read_answer(call: ClientCall[T], answer: httpx.Response) -> T:
    """Decode a conclusive answer. Raises `RequestError` if it is a refusal, and `UnansweredError` if
    it is a success in words that are not the service's.
    """
    if answer.is_success:
        try:
            return msgspec.json.decode(answer.content, type=call.answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise unanswered_error(call, answer) from error
    try:
        errors = msgspec.json.decode(answer.content, type=_ErrorItems).errors
    except (msgspec.MsgspecError, UnicodeDecodeError):
        errors = [{"field": "body", "type": "unknown", "message": answer.reason_phrase}]
    raise RequestError(answer.status_code, errors, answer.headers.get("x-request-id", ""))


def unanswered_error(call: ClientCall[Any], answer: httpx.Response | None) -> UnansweredError:
    """Return the error for a request whose last attempt got this answer, or none."""
    if answer is None:
        reason = "no answer"
    elif answer.is_success:
        reason = f"the answer {answer.status_code} has another body than this operation's"
    else:
        reason = f"the answer {answer.status_code}"
    return UnansweredError(f"{call.method} {call.path}: {reason}")


def pause_before_next(
    call: ClientCall[Any], attempt: int, answer: httpx.Response | None
) -> float | None:
    """Return the seconds to wait before the next attempt; None if there must be none.

    `attempt` counts from 0; `answer` is inconclusive, or None if the connection failed.
    """
    is_undone = answer is not None and answer.status_code in _NOT_DONE
    if not (is_undone or call.repeatable):
        return None
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
    pause: float = longest * random.uniform(0.5, 1)  # noqa: S311 - it spreads requests, and guards nothing
    retry_after: str = "" if answer is None else answer.headers.get("retry-after", "")
    if not (retry_after.isascii() and retry_after.isdigit()):
        return pause
    asked = float(retry_after)
    return None if asked > LONGEST_PAUSE_S else max(pause, asked)
