"""What a payment of a test account asks to come back: `toll_test` in its metadata (docs/api.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, json

from tollkeeper.engine.intake.field_rules import rules_at
from tollkeeper.engine.intake.find_violations import find_violations
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.grammar.program import Action

MEMBER: Final = "toll_test"
MAX_DELAY_MS: Final = 30_000


class ForcedOutcome(Struct, frozen=True, forbid_unknown_fields=True):
    """The action or the score (0 to 1, two decimals) to decide by, the status of an error to answer
    with, and how long to wait before anything is done.
    """

    action: Action | None = None
    score: Annotated[float, Meta(ge=0, le=1)] | None = None
    status: int | None = None
    delay_ms: Annotated[int, Meta(ge=0, le=MAX_DELAY_MS)] = 0

    @property
    def hundredths(self) -> int | None:
        """The score in hundredths."""
        return None if self.score is None else round(self.score * 100)


class _Metadata(Struct, frozen=True):
    toll_test: ForcedOutcome


class _Payment(Struct, frozen=True):
    metadata: _Metadata


class _Body(Struct, frozen=True):
    payment: _Payment


UNFORCED: Final = ForcedOutcome()
# Nothing of it depends on the time.
_RULES: Final = rules_at(0, DEFAULT_LIMITS)


def read_forced(metadata: Mapping[str, Any] | None) -> ForcedOutcome | tuple[Violation, ...]:
    """What the metadata asks for, or all that is wrong with it."""
    sent = None if metadata is None else metadata.get(MEMBER)
    if sent is None:
        return UNFORCED
    found = find_violations(json.encode({"payment": {"metadata": {MEMBER: sent}}}), _Body, _RULES)
    return found if isinstance(found, tuple) else found.payment.metadata.toll_test
