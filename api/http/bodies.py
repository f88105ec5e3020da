"""Read a request's body, as the type that its operation takes and within its limits.

A request that writes is refused before any work is done if too many others wait to be written. A
repeated `Idempotency-Key` gets the stored response (docs/api.md, "Validation").
"""

from __future__ import annotations

import hashlib
import re
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeAlias, TypeVar

import msgspec
from litestar import Request
from litestar.types import Scope

from tollkeeper.api.http.authentication import check_key_again
from tollkeeper.api.http.errors import (
    JSON,
    Problem,
    incomplete_body,
    invalid,
    invalid_at,
    slow_body,
    too_large,
    unavailable,
    unsupported,
)
from tollkeeper.api.http.request import Exchange, RequestState, state_of
from tollkeeper.engine.intake.field_rules import rules_at
from tollkeeper.engine.intake.find_violations import find_violations
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.intake.repeated_members import may_repeat_members, repeated_members
from tollkeeper.engine.intake.violations import Violation, ViolationType
from tollkeeper.engine.journal.entries import Idempotency
from tollkeeper.engine.runtime import Engine
from tollkeeper.grammar.parser import MAX_FILE_BYTES

_TWICE = "this member is there twice"
_MAX_TEXT = MAX_FILE_BYTES + 1

AnyRequest: TypeAlias = Request[Any, Any, Any]

T = TypeVar("T", bound=msgspec.Struct)

_JSON = re.compile(rb"application/(?:[!#$&^_.+a-z0-9-]+\+)?json")
_TEXT = re.compile(rb"text/[!#$&^_.+a-z0-9-]+|application/octet-stream")

# The members of these bodies have no rules that depend on an account or on the time.
_RULES = rules_at(0, DEFAULT_LIMITS)


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the first header of this lower-case name."""
    return state_of(scope).head.headers.get(name)


async def read_json(request: Exchange, type_: type[T]) -> T:
    """Decode the body as `type_`. Raises `Problem` 422 with every violation."""
    body = await read_json_bytes(request)
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        read = find_violations(body, type_, _RULES)
    if isinstance(read, tuple):
        raise invalid(read)
    return read


async def read_json_bytes(request: Exchange) -> bytes:
    """Read a JSON body (of media type JSON, or none), and check that no object has a member twice.

    Raises as `read_body`, and `Problem` 415 and 422.
    """
    known = request.known
    content_type = known.head.headers.get(b"content-type")
    if content_type and content_type != JSON and not _JSON.fullmatch(_media_type(content_type)):
        raise unsupported("content-type", "send the body as `application/json`")
    body = await read_body(request, known.service.settings.body_bytes)
    if may_repeat_members(body) and (places := repeated_members(body)):
        raise invalid([Violation(place, "malformed_json", _TWICE) for place in places])
    return body


async def read_text(request: Exchange) -> bytes:
    """Read the text of a rule file; its syntax isn't checked here. Raises as `read_json_bytes`."""
    content_type = header(request.scope, b"content-type")
    if content_type and not _TEXT.fullmatch(_media_type(content_type)):
        raise unsupported("content-type", "send the text as `text/plain`")
    return await read_body(request, _MAX_TEXT)


async def read_body(request: Exchange, limit: int) -> bytes:
    """Read the whole body, at most `limit` bytes.

    Raises `Problem` 415 for a content coding, 413 past the limit, 408 if it arrives too slowly
    (`connection.py`), 400 if the client disconnects, 401 and 403 if the key has ended meanwhile.
    """
    known, headers = request.known, request.known.head.headers
    coding = headers.get(b"content-encoding")
    if coding and coding.strip().lower() != b"identity":
        raise unsupported("content-encoding", "send the body as it is, in no content coding")
    declared = headers.get(b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    if request.whole is not None:
        if len(request.whole) > limit:
            raise too_large(limit)
        return request.whole
    chunks: list[bytes] = []
    size = 0
    while True:
        message: Any = await request.receive()
        if message["type"] == "http.disconnect":
            known.log["disconnected"] = True
            raise incomplete_body()
        if known.late:
            raise slow_body(known.service.settings.body_seconds)
        chunk: bytes = message["body"]
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        if not message["more_body"]:
            check_key_again(known)
            return b"".join([*chunks, chunk]) if chunks else chunk
        chunks.append(chunk)


def _media_type(content_type: bytes) -> bytes:
    """Return the media type without its parameters."""
    return content_type.partition(b";")[0].strip().lower()


def admit(engine: Engine) -> None:
    """Raise `Problem` 503 while the engine isn't ready, or if too many requests wait to be written.

    After a failed write, each request tries the journal again.
    """
    if not engine.ready.is_set():
        raise unavailable(engine.obstacle() or "")
    if not engine.journal.has_room():
        raise unavailable("too many requests wait to be written")


MAX_KEY = 256
_KEY_FIELD = "idempotency-key"
_KEY_HEADER = _KEY_FIELD.encode()
_KEY = re.compile(rb"[\x20-\x7e]+")


def idempotency_key(known: RequestState) -> str | None:
    """Return the request's idempotency key. Raises `Problem` 422 unless it is 1 to `MAX_KEY`
    characters of printable ASCII.
    """
    value = known.head.headers.get(_KEY_HEADER)
    if value is None:
        return None
    if known.head.names.count(_KEY_HEADER) > 1:
        raise _key_problem("invalid_value", "a request has one idempotency key")
    if not value:
        raise _key_problem("invalid_value", "an idempotency key must not be empty")
    if len(value) > MAX_KEY:
        raise _key_problem("too_long", f"an idempotency key has at most {MAX_KEY} characters")
    if not _KEY.fullmatch(value):
        raise _key_problem("invalid_format", "an idempotency key is printable ASCII")
    return value.decode()


def turn_of(request: Exchange, key: str | None) -> AbstractAsyncContextManager[None]:
    """Hold back other requests with the same account and idempotency key while the context lasts;
    the next one then finds this one's stored response.
    """
    if key is None:
        return nullcontext()
    return request.engine.locks.of("idempotency key", request.key.account, key)


def repeatable(
    request: Exchange, key: str | None, body: bytes, response: bytes
) -> Idempotency | None:
    """Return what is stored so that a request with a key can be repeated; None without a key."""
    return None if key is None else Idempotency(key, _digest(request, body), response)


def replay_response(request: Exchange, stored: Idempotency, body: bytes) -> bytes:
    """Return the stored response, marked as a replay.

    Raises `Problem` 422 if the key was used with another method, path or body.
    """
    if stored.digest != _digest(request, body):
        raise _key_problem("idempotency_mismatch", "this key was used with another request")
    request.answer_headers.append((b"idempotent-replayed", b"true"))
    return stored.response


def _key_problem(type_: ViolationType, message: str) -> Problem:
    return invalid_at(_KEY_FIELD, type_, message)


def _digest(request: Exchange, body: bytes) -> bytes:
    """SHA-256 of method, path and body."""
    head = request.known.head
    digest = hashlib.sha256(f"{head.method} {head.path}\n".encode())
    digest.update(body)
    return digest.digest()
