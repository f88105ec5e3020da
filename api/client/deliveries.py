"""Webhook deliveries: check the signature, decode the body (docs/events.md, "Webhooks")."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

TOLERANCE_S: Final = 300


class SignatureError(Exception):
    """The service didn't send the body, or not recently."""


def read_webhook(
    body: bytes,
    signature: str | None,
    secrets: Sequence[str],
    *,
    tolerance: float = TOLERANCE_S,
    now: float | None = None,
) -> dict[str, Any]:
    """Return the body as JSON if one of `secrets` signed it, at most `tolerance` seconds ago.

    `signature` is the header `Toll-Signature`, None if there was none; `now` in seconds since the
    epoch. Raises `SignatureError`.
    """
    if signature is None:
        raise SignatureError("there is no signature")
    parts = [part.partition("=") for part in signature.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    if len(times) != 1 or not (times[0].isascii() and times[0].isdigit()) or len(times[0]) > 12:
        raise SignatureError("the signature tells no time")
    if abs((time.time() if now is None else now) - int(times[0])) > tolerance:
        raise SignatureError("the signature is too old")
    signed = b"%d." % int(times[0]) + body
    wanted = [hmac.new(each.encode(), signed, hashlib.sha256).hexdigest() for each in secrets]
    marks = [value for name, _, value in parts if name == "v1"]
    if not any(hmac.compare_digest(a.encode(), b.encode()) for a in marks for b in wanted):
        raise SignatureError("no secret of ours made the signature")
    notice: dict[str, Any] = msgspec.json.decode(body)
    return notice
