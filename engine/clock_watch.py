"""Whether the system clock can be trusted. Deletion by age checks this first, and waits while it
can't.

While a service runs, its clock is compared with the monotonic time that has passed; at a start,
with the last time at which it was trusted. A clock that has jumped is trusted again when it has
jumped back, when payments arrive whose timestamps agree with it, or when an operator accepts it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tollkeeper.engine.instants import DAY, HOUR

AT_START = 7 * DAY
"""At a start the clock may be this far past the last trusted time; beyond that it is in doubt."""
WHILE_RUNNING = HOUR
"""How far the clock may drift from the monotonic time between two checks."""
WITNESSES = 20
"""This many payments with timestamps of their own, none of them refused, confirm the clock."""


@dataclass(slots=True)
class ClockWatch:
    """`trusted` (µs) is the last time at which the clock was trusted, 0 before the first check.

    `doubt` says why the clock may be wrong, None while it is trusted.
    """

    trusted: int = 0
    doubt: str | None = None
    _passed: int | None = None

    @property
    def is_plausible(self) -> bool:
        """Whether the clock is trusted."""
        return self.doubt is None

    def look(self, now: int, passed: int) -> None:
        """Check the clock, which reads `now` (µs); `passed` is the monotonic time in µs."""
        if not self.trusted:
            self.accept(now, passed)
            return
        expected = self.trusted
        ahead = AT_START
        if self._passed is not None:
            expected += passed - self._passed
            ahead = WHILE_RUNNING
        if now > expected + ahead:
            self.doubt = f"the clock is {_span_text(now - expected)} ahead"
        elif now < expected - WHILE_RUNNING:
            self.doubt = f"the clock is {_span_text(expected - now)} behind"
        else:
            self.accept(now, passed)

    def accept(self, now: int, passed: int) -> None:
        """Trust the clock from now on."""
        self.trusted, self._passed, self.doubt = now, passed, None


def since_machine_start() -> int:
    """µs since the machine was booted, sleep included; setting the clock does not change it."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def _span_text(span: int) -> str:
    return f"{span // DAY} days" if span >= 2 * DAY else f"{span // HOUR} hours"
