"""What a payment of a test account asks to come back: `toll_test` in its metadata (docs/api.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.grammar.program import Action

MEMBER: Final = "toll_test"
MAX_DELAY_MS: Final = 30_000
_PATH: Final = f"payment.metadata.{MEMBER}"


class ForcedOutcome(Struct, frozen=True, forbid_unknown_fields=True):
    """The action or the score (0 to 1, two decimals) to decide by, the status of an error to answer
    with, and how long to wait before anything is done.
    """

    action: Action | None = None
    score: float | None = None
    status: int | None = None
    delay_ms: int = 0

    @property
    def hundredths(self) -> int | None:
        """The score in hundredths."""
        return None if self.score is None else round(self.score * 100)


UNFORCED: Final = ForcedOutcome()


def read_forced(metadata: Mapping[str, Any] | None) -> ForcedOutcome | Violation:
    """What the metadata asks for, or what is wrong with it."""
    sent = None if metadata is None else metadata.get(MEMBER)
    if sent is None:
        return UNFORCED
    try:
        forced = msgspec.convert(sent, ForcedOutcome)
    except msgspec.ValidationError as error:
        return Violation(_PATH, "invalid_value", str(error).lower())
    if forced.score is not None and not 0 <= forced.score <= 1:
        return Violation(f"{_PATH}.score", "out_of_range", "a score is from 0.00 to 1.00")
    if not 0 <= forced.delay_ms <= MAX_DELAY_MS:
        message = f"a delay is from 0 to {MAX_DELAY_MS} milliseconds"
        return Violation(f"{_PATH}.delay_ms", "out_of_range", message)
    return forced
