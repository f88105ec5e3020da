"""`Idempotency-Key`: a repeated request gets the stored response (docs/api.md, "Validation")."""

from __future__ import annotations

import hashlib
import re

from litestar.types import Scope

from tollkeeper.api.http.bodies import header
from tollkeeper.api.http.errors import Problem, invalid
from tollkeeper.api.http.request import Exchange
from tollkeeper.engine.intake.violations import Violation, ViolationType
from tollkeeper.engine.journal.entries import Idempotency

MAX_KEY = 256
_FIELD = "idempotency-key"
_NAME = _FIELD.encode()
_PRINTABLE = re.compile(rb"[\x20-\x7e]+")


def idempotency_key(scope: Scope) -> str | None:
    """The request's key. Raises `Problem` 422 for one that is not 1 to `MAX_KEY` of printable ASCII."""
    value = header(scope, _NAME)
    if value is None:
        return None
    if sum(name == _NAME for name, _ in scope["headers"]) > 1:
        raise _refused("invalid_value", "a request has one idempotency key")
    if not value:
        raise _refused("invalid_value", "an idempotency key must not be empty")
    if len(value) > MAX_KEY:
        raise _refused("too_long", f"an idempotency key has at most {MAX_KEY} characters")
    if not _PRINTABLE.fullmatch(value):
        raise _refused("invalid_format", "an idempotency key is printable ASCII")
    return value.decode()


def repeatable(
    request: Exchange, key: str | None, body: bytes, response: bytes
) -> Idempotency | None:
    """What is kept for a request with a key, so that it can be sent again."""
    return None if key is None else Idempotency(key, _digest(request, body), response)


def repeated(request: Exchange, stored: Idempotency, body: bytes) -> bytes:
    """The stored response, which is marked as a replay.

    Raises `Problem` 422 when the key was used with another method, path or body.
    """
    if stored.digest != _digest(request, body):
        raise _refused("idempotency_mismatch", "this key was used with another request")
    request.answer_headers.append((b"idempotent-replayed", b"true"))
    return stored.response


def _refused(type_: ViolationType, message: str) -> Problem:
    return invalid([Violation(_FIELD, type_, message)])


def _digest(request: Exchange, body: bytes) -> bytes:
    """SHA-256 of method, path and body."""
    digest = hashlib.sha256(f"{request.scope['method']} {request.scope['path']}\n".encode())
    digest.update(body)
    return digest.digest()
