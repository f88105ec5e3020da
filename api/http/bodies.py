"""Read a request's body, of the type that its operation takes and within its bounds."""

from __future__ import annotations

import re
from typing import Any, TypeAlias, TypeVar, cast

import msgspec
from litestar import Request
from litestar.types import HTTPReceiveMessage, Receive, Scope

from tollkeeper.api.http.errors import (
    JSON,
    incomplete_body,
    invalid,
    slow_body,
    too_large,
    unsupported,
)
from tollkeeper.api.http.request import state_of
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.intake.field_rules import rules_at
from tollkeeper.engine.intake.find_violations import find_violations
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.grammar.parser import MAX_FILE_BYTES

_MAX_TEXT = MAX_FILE_BYTES + 1

AnyRequest: TypeAlias = Request[Any, Any, Any]

T = TypeVar("T", bound=msgspec.Struct)

_JSON = re.compile(rb"application/(?:[!#$&^_.+a-z0-9-]+\+)?json")
_TEXT = re.compile(rb"text/[!#$&^_.+a-z0-9-]+|application/octet-stream")

# The members of these bodies have no rules that depend on an account or on the time.
_RULES = rules_at(0, DEFAULT_LIMITS)


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of that lower-case name."""
    return state_of(scope).headers.get(name)


async def read_json(request: AnyRequest, type_: type[T]) -> T:
    """The body as `type_`. Raises `Problem` 422 with every place that doesn't fit."""
    body = await read_json_bytes(request.scope, request.receive)
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = find_violations(body, type_, _RULES)
    if isinstance(found, tuple):
        raise invalid(found)
    return found


async def read_json_bytes(scope: Scope, receive: Receive) -> bytes:
    """The body, said to be JSON or nothing at all. Raises as `read_body`, and `Problem` 415."""
    said = header(scope, b"content-type")
    if said and said != JSON and not _JSON.fullmatch(_media_type(said)):
        raise unsupported("content-type", "send the body as `application/json`")
    return await read_body(scope, receive, _settings(scope).body_bytes)


async def read_text(request: AnyRequest) -> bytes:
    """The text of a rule file, which is the parser's to judge. Raises as `read_json_bytes`."""
    said = header(request.scope, b"content-type")
    if said and not _TEXT.fullmatch(_media_type(said)):
        raise unsupported("content-type", "send the text as `text/plain`")
    return await read_body(request.scope, request.receive, _MAX_TEXT)


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body, at most `limit` bytes.

    Raises `Problem` 415 for one in a content coding, 413 beyond the limit, 408 when the connection
    says that it is late (`connection.py`), 400 when the client left.
    """
    coding = header(scope, b"content-encoding")
    if coding and coding.strip().lower() != b"identity":
        raise unsupported("content-encoding", "send the body as it is, in no content coding")
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = cast("HTTPReceiveMessage", await receive())
        if message["type"] == "http.disconnect":
            state_of(scope).log["disconnected"] = True
            raise incomplete_body()
        if state_of(scope).late:
            raise slow_body(_settings(scope).body_seconds)
        chunk = message["body"]
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        if not message["more_body"]:
            return b"".join([*chunks, chunk]) if chunks else chunk
        chunks.append(chunk)


def _media_type(said: bytes) -> bytes:
    """The type alone, without its parameters."""
    return said.partition(b";")[0].strip().lower()


def _settings(scope: Scope) -> Settings:
    return state_of(scope).service.settings
