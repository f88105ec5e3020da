"""Read a request's body, within its bounds."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias, TypeVar, cast

import msgspec
from litestar import Request
from litestar.types import HTTPReceiveMessage, Receive, Scope

from tollkeeper.api.errors import invalid, slow_body, too_large
from tollkeeper.engine.violations import Violation
from tollkeeper.grammar.parser import MAX_FILE_BYTES

MAX_BODY = 256 * 1024
MAX_TEXT = MAX_FILE_BYTES + 1
BODY_SECONDS = 15.0

AnyRequest: TypeAlias = Request[Any, Any, Any]

T = TypeVar("T")


class Disconnected(Exception):  # noqa: N818 - the client's doing, not a fault of ours
    """The client went away before its body was whole."""


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of that lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return value
    return None


async def read_text(request: AnyRequest) -> bytes:
    """The text of a rule file; what it may hold is the parser's to say."""
    return await read_body(request.scope, request.receive, MAX_TEXT, BODY_SECONDS)


async def read_json(request: AnyRequest, type_: type[T]) -> T:
    """The body as `type_`. Raises `Problem` 422 at the place that doesn't fit."""
    body = await read_body(request.scope, request.receive, MAX_BODY, BODY_SECONDS)
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        field = path.strip("`").lstrip(".") or "body"
        raise invalid([Violation(field, "invalid_type", message.lower())]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise invalid([Violation("body", "malformed_json", "this is not JSON")]) from None


async def read_body(scope: Scope, receive: Receive, limit: int, seconds: float) -> bytes:
    """The whole body, at most `limit` bytes and within `seconds` from its start.

    Raises `Problem` 413 beyond the limit, 408 past the time, `Disconnected` when the client left.
    """
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            return await _read_chunks(receive, limit)
    except TimeoutError:
        raise slow_body(seconds) from None


async def _read_chunks(receive: Receive, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = cast("HTTPReceiveMessage", await receive())
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunks.append(message["body"])
        size += len(chunks[-1])
        if size > limit:
            raise too_large(limit)
        if not message["more_body"]:
            return b"".join(chunks)
