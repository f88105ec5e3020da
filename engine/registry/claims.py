"""Claims of payments under review, so that no two people review the same one; kept in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from tollkeeper.engine.instants import HOUR

CLAIM_LASTS = HOUR // 4
"""How long a claim lasts (µs)."""
MAX_CLAIMS = 10_000
"""The most claims at once; the oldest are dropped for new ones."""


@dataclass(frozen=True, slots=True)
class ReviewClaim:
    """`by` reviews the payment until `ends_at` (µs)."""

    by: str
    ends_at: int


@dataclass(slots=True)
class Claims:
    """The claims by account and payment."""

    _claims: dict[tuple[int, str], ReviewClaim] = field(default_factory=dict)

    def held(self, account: int, by: str, now: int) -> dict[str, int]:
        """The ends (µs) of a person's claims by payment, in the order in which they were taken."""
        return {
            payment: claim.ends_at
            for (number, payment), claim in self._claims.items()
            if number == account and claim.by == by and now < claim.ends_at
        }

    def take(self, account: int, payment: str, by: str, now: int) -> ReviewClaim | None:
        """Claim the payment, or renew the claim; None while somebody else has it."""
        held = self._claims.pop((account, payment), None)
        if held is not None and held.by != by and now < held.ends_at:
            self._claims[account, payment] = held
            return None
        if len(self._claims) >= MAX_CLAIMS:
            del self._claims[next(iter(self._claims))]
        claim = self._claims[account, payment] = ReviewClaim(by, now + CLAIM_LASTS)
        return claim
