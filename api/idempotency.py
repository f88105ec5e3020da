"""`Idempotency-Key`: the same request again gets the stored response (API.md, "Validation")."""

from __future__ import annotations

import hashlib

from litestar.types import Scope

from tollkeeper.api.bodies import header
from tollkeeper.api.errors import invalid
from tollkeeper.engine.journal.entries import Idempotency
from tollkeeper.engine.violations import Violation

MAX_KEY = 256
_FIELD = "idempotency-key"


def idempotency_key(scope: Scope) -> str | None:
    """The request's key. Raises `Problem` 422 for one that is too long or empty."""
    value = header(scope, _FIELD.encode())
    if value is None:
        return None
    if not 1 <= len(value) <= MAX_KEY:
        message = f"an idempotency key has 1 to {MAX_KEY} characters"
        raise invalid([Violation(_FIELD, "too_long", message)])
    return value.decode("latin-1")


def repeated(stored: Idempotency, body: bytes) -> bytes:
    """The stored response. Raises `Problem` 422 when the key was used with another body."""
    if stored.digest != digest(body):
        message = "this key was used with another body"
        raise invalid([Violation(_FIELD, "idempotency_mismatch", message)])
    return stored.response


def digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
