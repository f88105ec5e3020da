"""How much a key, and all keys of an account together, may ask for: token buckets.

Reports (payments and events) and all other work have buckets of their own: a shop's payments never
wait for the same shop's imports.
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple, TypeAlias

from tollkeeper.api.http.errors import too_many_requests
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.intake.addresses import address_number
from tollkeeper.engine.registry.scopes import NarrowScope
from tollkeeper.engine.registry.state import ApiKey

REPORTS_BURST_S: Final = 2.0
WORK_BURST_S: Final = 10.0
SIGN_INS_BURST_S: Final = 60.0
"""A bucket that was left alone holds what its rate gives in so many seconds."""
MAX_ADDRESSES: Final = 10_000
"""Addresses whose sign-ins are counted; the one that tried none for longest makes room."""
_REPORTS: Final[frozenset[NarrowScope]] = frozenset(("payments:write", "events:write"))

_CARRIES_IPV4: Final = 0xFFFF
"""How an `address_number` of an IPv4 address begins."""

_Owner: TypeAlias = int | tuple[int, str]
"""An account's number, or that with a key's id or a user's name."""
_Bucket: TypeAlias = tuple[_Owner, bool]
"""Whose it is, and whether it is for reports."""


class Allowance(NamedTuple):
    """What is left in the bucket that has least: requests, and seconds until it is full again."""

    limit: int
    remaining: int
    reset: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"ratelimit-limit", b"%d" % self.limit),
            (b"ratelimit-remaining", b"%d" % self.remaining),
            (b"ratelimit-reset", b"%d" % self.reset),
        ]


class Limiter:
    """The buckets of one listener; of each only the moment is kept at which it is full again."""

    def __init__(self, settings: Settings) -> None:
        self._rates = {
            True: (settings.key_reports, settings.account_reports),
            False: (settings.key_work, settings.account_work),
        }
        self._full_at: dict[_Bucket, float] = {}
        self._sign_ins = settings.address_sign_ins
        self._sign_ins_full_at: dict[str, float] = {}

    def take(self, key: ApiKey, scope: str, now: float) -> Allowance:
        """Takes one token for a request that needs `scope`; `now` in seconds of a steady clock.

        Raises `Problem` 429 when a bucket is empty, and takes none then.
        """
        reports = scope in _REPORTS
        burst = REPORTS_BURST_S if reports else WORK_BURST_S
        least: Allowance | None = None
        taken: list[tuple[_Bucket, float]] = []
        owners: tuple[_Owner, _Owner] = ((key.account, key.id), key.account)
        for owner, rate in zip(owners, self._rates[reports], strict=True):
            bucket = owner, reports
            full_in = max(0.0, self._full_at.get(bucket, 0.0) - now) + 1 / rate
            if full_in > burst:
                what = "reports" if reports else "requests"
                who = "account" if owner == key.account else "key"
                message = f"this {who} may send {rate} {what} a second"
                raise too_many_requests(message, ceil(full_in - burst))
            taken.append((bucket, now + full_in))
            found = Allowance(round(rate * burst), int((burst - full_in) * rate), ceil(full_in))
            if least is None or found.remaining < least.remaining:
                least = found
        self._full_at.update(taken)
        assert least is not None
        return least

    def take_sign_in(self, address: str, now: float) -> None:
        """Takes one token for an attempt to sign in from an address, an IPv6 one with its neighbours.

        Raises `Problem` 429 when the bucket is empty, and takes none then.
        """
        place = _network(address)
        full_in = max(0.0, self._sign_ins_full_at.get(place, 0.0) - now)
        full_in += SIGN_INS_BURST_S / self._sign_ins
        if full_in > SIGN_INS_BURST_S:
            message = f"an address may try to sign in {self._sign_ins} times a minute"
            raise too_many_requests(message, ceil(full_in - SIGN_INS_BURST_S))
        self._sign_ins_full_at.pop(place, None)
        if len(self._sign_ins_full_at) >= MAX_ADDRESSES:
            del self._sign_ins_full_at[next(iter(self._sign_ins_full_at))]
        self._sign_ins_full_at[place] = now + full_in


def _network(address: str) -> str:
    """Whoever has one IPv6 address has the 2⁶⁴ beside it."""
    number = address_number(address)
    if number is None or number >> 32 == _CARRIES_IPV4:
        return address
    return f"{number >> 64:x}::/64"
