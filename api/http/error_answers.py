"""The one error body: the meaning of each status and each error type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tollkeeper.api.http.operation import Example

TYPES: Final[Mapping[str, str]] = {
    "missing": "a required member was not sent",
    "null": "a member that takes no null was sent as null",
    "unknown_member": "nothing reads a member of that name; in settings a typo is not passed over",
    "invalid_type": "the value has another JSON type than the member",
    "invalid_value": "the value is not one of those that are allowed",
    "invalid_format": "the text has another format than the member requires",
    "too_long": "a text, an array or an object has too many characters or items",
    "out_of_range": "a number, or a number of things, is too small or too large",
    "precision": "the number has more decimals than are allowed",
    "timestamp_future": "the instant is later than the service's clock",
    "timestamp_too_old": "the instant is older than 24 hours",
    "private_address": "a device's address, or a webhook's, is a private one",
    "taken": "the id is in use already",
    "required_by_status": "the `status` that was sent makes this member necessary",
    "malformed_json": "the body is not JSON, or an object in it has a member twice",
    "unknown_event_type": "no event type has this id",
    "inactive_event_type": "no version of the event type is active",
    "invalid_credentials": "there is no key, or it is not valid",
    "forbidden": "the key does not have the scope that is needed",
    "not_found": "what the path or the body names doesn't exist",
    "method_not_allowed": "the path has no such method; the header `Allow` lists those it has",
    "unsupported_media_type": "the body is of a type that the operation doesn't take, or compressed",
    "conflict": "the request conflicts with the current state",
    "idempotency_mismatch": "the idempotency key was used with another request",
    "too_large": "the body, or the head of the request, has too many bytes",
    "too_many_requests": "more was sent than is allowed: wait for `Retry-After` seconds, then send more slowly",
    "unavailable": "nothing was done and it may be sent again after `Retry-After` seconds",
    "timeout": "the body did not arrive in time",
    "malformed_request": "the request is not HTTP, or ended before it was whole",
    "internal_error": "an internal error, which the service has logged",
}
"""Every error `type`, except the codes of diagnostics (docs/api.md, "Errors")."""


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """The meaning of the error body under one status; `name` is its name in the document."""

    name: str
    doc: str
    example: Example


def refusal(field: str, type_: str, message: str) -> dict[str, Any]:
    return {"errors": [{"field": field, "type": type_, "message": message}]}


STATUSES: Final[Mapping[int, ErrorAnswer]] = {
    400: ErrorAnswer(
        "BadRequest",
        "The request can't be read: it is not HTTP, or its `Host` is invalid.",
        Example("not HTTP", refusal("body", "malformed_request", "this is not HTTP")),
    ),
    401: ErrorAnswer(
        "InvalidCredentials",
        "Invalid access credentials: no key, a wrong one, or one that was revoked. "
        "Nothing was processed.",
        Example(
            "a bad key",
            refusal("authorization", "invalid_credentials", "invalid access credentials"),
        ),
    ),
    403: ErrorAnswer(
        "Forbidden",
        "The key is valid but lacks the scope that this operation needs, or its account is suspended.",
        Example(
            "another scope", refusal("authorization", "forbidden", "this key has no `rules` scope")
        ),
    ),
    404: ErrorAnswer(
        "NotFound",
        "What the path names doesn't exist. What belongs to another account never does.",
        Example("no such payment", refusal("id", "not_found", "no payment has this id")),
    ),
    405: ErrorAnswer(
        "NoSuchMethod",
        "The path has no such method; the header `Allow` lists those it has.",
        Example(
            "a method of another path",
            refusal("method", "method_not_allowed", "use GET, HEAD, OPTIONS, PATCH here"),
        ),
    ),
    408: ErrorAnswer(
        "SlowBody",
        "The body did not arrive in time; the connection is closed.",
        Example(
            "a slow body",
            refusal("body", "timeout", "the body did not arrive within 15 seconds"),
        ),
    ),
    409: ErrorAnswer(
        "Conflict",
        "The request conflicts with the current state. Read that again, then decide.",
        Example(
            "somebody was faster",
            refusal("expected", "conflict", "the newest version is 4, not 3"),
        ),
    ),
    413: ErrorAnswer(
        "TooLarge",
        "The body has too many bytes; the connection is closed.",
        Example("300 KiB", refusal("body", "too_large", "a body has at most 262144 bytes")),
    ),
    415: ErrorAnswer(
        "UnsupportedMediaType",
        "The body is of a type that the operation doesn't take, or in a content coding.",
        Example(
            "a form",
            refusal(
                "content-type", "unsupported_media_type", "send the body as `application/json`"
            ),
        ),
    ),
    422: ErrorAnswer(
        "Invalid",
        "Rules are broken; all of them are listed, each with its path from the top of the body.",
        Example("a member is missing", refusal("payment.type", "missing", "`type` is required")),
    ),
    429: ErrorAnswer(
        "TooManyRequests",
        "The key, or its account, has sent more than its share. Nothing was done; send it again "
        "after `Retry-After` seconds.",
        Example(
            "too fast",
            refusal(
                "authorization", "too_many_requests", "this key may send 5000 reports a second"
            ),
        ),
    ),
    431: ErrorAnswer(
        "HeadTooLarge",
        "The request's head has too many bytes; the connection is closed.",
        Example("a cookie jar", refusal("headers", "too_large", "a head has at most 65536 bytes")),
    ),
    500: ErrorAnswer(
        "Fault",
        "An internal error. Whether the request was carried out is unknown: send it again "
        "with the same idempotency key or id.",
        Example(
            "a fault",
            refusal("body", "internal_error", "something went wrong here; it has been logged"),
        ),
    ),
    503: ErrorAnswer(
        "Unavailable",
        "Nothing was done, and it may be sent again after `Retry-After` seconds: the windows are "
        "being rebuilt, too many requests wait, or the disk can't be written.",
        Example("starting", refusal("body", "unavailable", "the windows are being rebuilt")),
    ),
}
"""Every status of the error body that an operation can answer with."""

_RETRY_AFTER: Final = {
    "description": "Seconds to wait before sending it again.",
    "schema": {"type": "integer", "minimum": 1},
}


def _count(description: str) -> Mapping[str, Any]:
    return {"description": description, "schema": {"type": "integer", "minimum": 0}}


ERROR_HEADERS: Final[Mapping[int, Any]] = {
    401: {"WWW-Authenticate": {"schema": {"type": "string", "const": "Bearer"}}},
    405: {"Allow": {"schema": {"type": "string"}}},
    429: {
        "Retry-After": _RETRY_AFTER,
        "RateLimit-Limit": _count("The most requests at once, after a pause."),
        "RateLimit-Remaining": _count("The number of them that are left: none."),
        "RateLimit-Reset": _count("Seconds until all of them are available again."),
    },
    503: {"Retry-After": _RETRY_AFTER},
}
"""The headers of error answers by status, for the document."""
