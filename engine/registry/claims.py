"""Who is judging which payment just now, so that no two people judge one; kept in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from tollkeeper.engine.instants import HOUR

CLAIM_LASTS = HOUR // 4
"""How long a payment is somebody's (µs)."""
MAX_CLAIMS = 10_000
"""Claims held at once; the oldest make room."""


@dataclass(frozen=True, slots=True)
class ReviewClaim:
    """`by` is judging the payment until `ends_at` (µs)."""

    by: str
    ends_at: int


@dataclass(slots=True)
class Claims:
    """By account and payment."""

    _held: dict[tuple[int, str], ReviewClaim] = field(default_factory=dict)

    def take(self, account: int, payment: str, by: str, now: int) -> ReviewClaim | None:
        """The payment is `by`'s from now on, anew if it was; None while it is another's."""
        held = self._held.pop((account, payment), None)
        if held is not None and held.by != by and now < held.ends_at:
            self._held[account, payment] = held
            return None
        if len(self._held) >= MAX_CLAIMS:
            del self._held[next(iter(self._held))]
        claim = self._held[account, payment] = ReviewClaim(by, now + CLAIM_LASTS)
        return claim
