"""Rate limits of a key, and of all keys of an account together: token buckets.

Reports (payments and events) and all other requests have separate buckets, so that a shop's
payments never wait for its own imports. Of the others, configuration changes have one more bucket,
since each is a commit that other accounts' payments wait for. A request that comes a little too
early waits for its turn, unless it is a report, so that one account's requests delay others'
payments only one at a time.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from tollkeeper.api.http.errors import Problem, too_many_requests
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.intake.addresses import address_number
from tollkeeper.engine.registry.state import ApiKey

REPORTS_BURST_S: Final = 2.0
WORK_BURST_S: Final = 10.0
CHANGES_BURST_S: Final = 5.0
SIGN_INS_BURST_S: Final = 60.0
"""A bucket's capacity, in seconds of its rate."""
MOST_STREAMS: Final = 20
"""The most decision streams of an account at once on a listener: each queries the index twice a
second.
"""
_STREAM_AGAIN_S: Final = 5
LONGEST_TURN_S: Final = 0.5
"""The longest that a request other than a report waits for its turn before it is refused."""
MAX_ADDRESSES: Final = 10_000
"""The most addresses whose sign-ins are counted; past it, the least recent one is forgotten."""

Demand: TypeAlias = Literal["report", "work", "change"]
"""What a request asks of the service; a change also counts as work."""

_CARRIES_IPV4: Final = 0xFFFF
"""The upper bits of an `address_number` for an IPv4 address."""


class Allowance(Struct, frozen=True, gc=False):
    """The state of the bucket with the least left: requests, and seconds until it is full again.

    The request's own turn comes in `wait` seconds.
    """

    limit: int
    remaining: int
    reset: int
    wait: float

    def headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"ratelimit-limit", b"%d" % self.limit),
            (b"ratelimit-remaining", b"%d" % self.remaining),
            (b"ratelimit-reset", b"%d" % self.reset),
        ]


@dataclass(slots=True)
class Bucket:
    """Gains `rate` tokens a second, up to `burst` seconds' worth; `full_at` is when (seconds of a
    monotonic clock) it is full again.
    """

    rate: int
    burst: float
    full_at: float = 0.0


class Limiter:
    """The buckets of one listener, for keys and for accounts."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._of_accounts: dict[tuple[int, bool], Bucket] = {}
        self._of_keys: dict[tuple[int, str, bool], tuple[Bucket, Bucket]] = {}
        self._changes: dict[int, Bucket] = {}
        self._streams: dict[int, list[float]] = {}
        self._sign_ins = settings.address_sign_ins
        self._sign_ins_full_at: dict[str, float] = {}

    def take(
        self, key: ApiKey, demand: Demand, now: float, tokens: int = 1, at_hand: int = 1
    ) -> Allowance:
        """Take `tokens` for a request; `now` in seconds of a monotonic clock.

        Raises `Problem` 429, and takes nothing, if a bucket won't have `at_hand` tokens within the
        longest wait. The other tokens may be missing: later requests wait until they are there, so
        that a batch may be larger than a bucket.
        """
        reports = demand == "report"
        name = key.account, key.id, reports
        own, shared = self._of_keys.get(name) or self._open(name)
        rate, burst = own.rate, own.burst
        patience = 0.0 if reports else LONGEST_TURN_S
        full_in = (own.full_at - now if own.full_at > now else 0.0) + at_hand / rate
        shared_in = (shared.full_at - now if shared.full_at > now else 0.0) + at_hand / shared.rate
        if full_in > burst + patience:
            raise _too_many("key", own, _noun(reports), now)
        if shared_in > burst + patience:
            raise _too_many("account", shared, _noun(reports), now)
        wait = max(0.0, full_in - burst, shared_in - burst)
        if demand == "change":
            wait = max(wait, self._take_change(key.account, now))
        full_in += (tokens - at_hand) / rate
        shared_in += (tokens - at_hand) / shared.rate
        own.full_at, shared.full_at = now + full_in, now + shared_in
        if (burst - shared_in) * shared.rate < (burst - full_in) * rate:
            rate, full_in = shared.rate, shared_in
        left = max(0, int((burst - full_in) * rate))
        return Allowance(round(rate * burst), left, ceil(full_in), wait)

    def _take_change(self, account: int, now: float) -> float:
        """Return the seconds until the account's next change may begin. Raises as `take`."""
        bucket = self._changes.get(account)
        if bucket is None:
            bucket = Bucket(self._settings.account_changes, CHANGES_BURST_S)
            self._changes[account] = bucket
        full_in = max(0.0, bucket.full_at - now) + 1 / bucket.rate
        wait = full_in - bucket.burst
        if wait > LONGEST_TURN_S:
            raise _too_many("account", bucket, "changes", now)
        bucket.full_at = now + full_in
        return wait

    def _open(self, name: tuple[int, str, bool]) -> tuple[Bucket, Bucket]:
        """Make full buckets for a key, and for its account unless another key has used that one."""
        account, _, reports = name
        limits, burst = self._settings, REPORTS_BURST_S if reports else WORK_BURST_S
        shared = self._of_accounts.setdefault(
            (account, reports),
            Bucket(limits.account_reports if reports else limits.account_work, burst),
        )
        own = Bucket(limits.key_reports if reports else limits.key_work, burst)
        return self._of_keys.setdefault(name, (own, shared))

    def open_stream(self, account: int, lasting: float, now: float) -> float:
        """Count a stream of an account until it is closed, at most for `lasting` (s); return when
        that ends. Raises `Problem` 429 if the account has too many streams.
        """
        ends = [end for end in self._streams.get(account, ()) if end > now]
        if len(ends) >= MOST_STREAMS:
            message = f"an account may follow {MOST_STREAMS} streams at once"
            raise too_many_requests(message, _STREAM_AGAIN_S)
        end = now + lasting
        self._streams[account] = [*ends, end]
        return end

    def close_stream(self, account: int, end: float) -> None:
        """Stop counting the stream that would have ended at `end`."""
        with suppress(ValueError):
            self._streams[account].remove(end)

    def take_sign_in(self, address: str, now: float) -> None:
        """Take one token for a sign-in attempt from an address; IPv6 addresses share one per /64.

        Raises `Problem` 429, and takes nothing, if the bucket is empty.
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


def _too_many(who: str, bucket: Bucket, what: str, now: float) -> Problem:
    full_in = max(0.0, bucket.full_at - now)
    left = Allowance(round(bucket.rate * bucket.burst), 0, ceil(full_in), 0.0)
    return too_many_requests(
        f"this {who} may send {bucket.rate} {what} a second",
        ceil(full_in + 1 / bucket.rate - bucket.burst),
        left.headers(),
    )


def _noun(reports: bool) -> str:
    return "reports" if reports else "requests"


def _network(address: str) -> str:
    """Return the /64 of an IPv6 address, since its holder has all 2⁶⁴ addresses in it; IPv4 as it
    is.
    """
    number = address_number(address)
    if number is None or number >> 32 == _CARRIES_IPV4:
        return address
    return f"{number >> 64:x}::/64"
