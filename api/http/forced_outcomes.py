"""Outcomes that a request of a test account forces: a delay or an error here, score and action in
the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from tollkeeper.api.http.error_answers import STATUSES
from tollkeeper.api.http.errors import Problem, invalid, invalid_at
from tollkeeper.engine.intake.forced import ForcedOutcome, read_forced
from tollkeeper.engine.intake.violations import Violation

_HEADERS: Final[Mapping[int, tuple[tuple[bytes, bytes], ...]]] = {
    401: ((b"www-authenticate", b"Bearer"),),
    429: ((b"retry-after", b"1"),),
    503: ((b"retry-after", b"1"),),
}


class _ForcingBody(Struct, frozen=True):
    metadata: Any = None


class _SentBody(Struct, frozen=True):
    payment: _ForcingBody


_UPDATE = msgspec.json.Decoder(_SentBody)


async def force_outcome(metadata: Mapping[str, Any] | None) -> ForcedOutcome:
    """Wait and fail as the request's metadata asks; return the forced outcome.

    Raises `Problem`: the requested one, or 422 for what can't be forced.
    """
    forced = read_forced(metadata)
    if isinstance(forced, tuple):
        raise invalid(forced)
    if forced.delay_ms:
        await asyncio.sleep(forced.delay_ms / 1000)
    if forced.status is not None:
        raise _error(forced.status)
    return forced


async def force_update_outcome(body: bytes) -> None:
    """`force_outcome` for an update's body, whose metadata is read only for this.

    Also raises `Problem` for a forced score or action, which an update doesn't have.
    """
    metadata = _UPDATE.decode(body).payment.metadata
    if not isinstance(metadata, dict):
        return
    forced = await force_outcome(metadata)
    if forced.action is not None or forced.score is not None:
        message = "an update is not decided: it can be delayed or refused"
        raise invalid_at("payment.metadata.toll_test", "invalid_value", message)


def _error(status: int) -> Problem:
    """Return the error that the document shows as this status's example."""
    shown = STATUSES.get(status)
    if shown is None:
        message = f"the statuses that can be forced are {', '.join(map(str, STATUSES))}"
        field = "payment.metadata.toll_test.status"
        return invalid_at(field, "invalid_value", message)
    violations = msgspec.convert(shown.example.value["errors"], list[Violation])
    return Problem(status, violations, _HEADERS.get(status, ()))
