"""Is the clock right? What removes data for being old asks here first, and waits while it may not be.

While a service runs, its clock is held against the time that has passed; when one starts, against
the last moment at which the clock was found right. A clock that has jumped is right again when it
is back, when payments arrive whose own times fit it, or when a person says so.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tollkeeper.engine.instants import DAY, HOUR

AT_START = 7 * DAY
"""A service that was stopped for longer asks whether the clock is right."""
WHILE_RUNNING = HOUR
"""How much further than the time that passed, or less far, the clock may have gone."""
WITNESSES = 20
"""So many payments with times of their own, none refused, show that the clock is right."""


@dataclass(slots=True)
class ClockWatch:
    """`trusted` (µs) is the last moment at which the clock was right, 0 before the first.

    `doubt` says why the clock may be wrong, None while it is right.
    """

    trusted: int = 0
    doubt: str | None = None
    _passed: int | None = None

    @property
    def is_plausible(self) -> bool:
        """Whether nothing speaks against the clock."""
        return self.doubt is None

    def look(self, now: int, passed: int) -> None:
        """Judges the clock, which says `now`; `passed` is µs since the machine was started."""
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
        """The clock is right: a person, payments or its going say so."""
        self.trusted, self._passed, self.doubt = now, passed, None


def since_machine_start() -> int:
    """µs that have passed, also while the machine slept, whatever was done to the clock."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def _span_text(span: int) -> str:
    return f"{span // DAY} days" if span >= 2 * DAY else f"{span // HOUR} hours"
