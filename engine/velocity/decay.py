"""A series for `decay`: totals by steps of time, which weigh less the older they are.

A step is 1/64 of the half life, so that a record from n steps ago weighs 2 ** -(n / 64). Totals are
integers and weights are fixed-point numbers with 60 binary places, so that values depend neither on
the order of records nor on the machine, and removing a record undoes exactly what adding it did.
"""

from __future__ import annotations

from collections import deque
from math import isqrt
from typing import Any

from tollkeeper.engine.velocity.aggregates import DECIMAL_LIMIT
from tollkeeper.engine.velocity.contract import Columns, Group, Window
from tollkeeper.engine.velocity.groups import SWEEP, Clock, Reader, dump_groups, elements_in
from tollkeeper.grammar.checker.aggregates import DECAYED_HALVES
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.types import METADATA_SCALE, Number

STEPS_A_HALF = 64
"""The number of steps in a half life."""
HALVES = DECAYED_HALVES
"""A half life, by number, that is further than this before the one of the read weighs nothing."""
_PLACES = 60
_ROOT_PLACES = 256


def _weights() -> tuple[int, ...]:
    """2 ** (step / 64) for each step of a half life, as integers with 60 binary places."""
    root = 2 << _ROOT_PLACES
    for _ in range(STEPS_A_HALF.bit_length() - 1):
        root = isqrt(root << _ROOT_PLACES)
    found, weight = [], 1 << _ROOT_PLACES
    for _ in range(STEPS_A_HALF):
        found.append(weight >> (_ROOT_PLACES - _PLACES))
        weight = weight * root >> _ROOT_PLACES
    return tuple(found)


WEIGHTS = _weights()


class HalfLife:
    """A group's totals in one half life: each step's, and `weighed`, the sum of total times weight."""

    __slots__ = ("steps", "weighed")

    def __init__(self) -> None:
        self.steps: dict[int, int] = {}
        self.weighed = 0

    def add(self, step: int, value: int) -> None:
        self.weighed += value * WEIGHTS[step]
        total = self.steps.get(step, 0) + value
        if total:
            self.steps[step] = total
        else:
            self.steps.pop(step, None)


class DecayGroups:
    """Totals by group, with the methods of `Groups`; `half_life` and `reach` in µs."""

    def __init__(self, clock: Clock, reach: int, half_life: int) -> None:
        self.clock = clock
        self.reach = reach
        self.lengths: tuple[int, ...] = ()
        self.entries = 0
        self._half_life = half_life
        self._late = reach - (HALVES + 1) * half_life
        self._groups: dict[Group, dict[int, HalfLife]] = {}
        self._due: deque[Group] = deque()

    @property
    def keys(self) -> int:
        """How many groups are held."""
        return len(self._groups)

    def put(self, time: int, group: Group, value: Any) -> None:
        """Add one element of event time `time` (µs)."""
        self._add(time, group, int(value))

    def take(self, time: int, group: Group, value: Any) -> None:
        """Remove one element, which must be there."""
        self._add(time, group, -int(value))

    def pass_buckets(self) -> int:
        """Mark all groups for expiry; returns the arrival (µs) at which to do so again."""
        if not self._due:
            self._due.extend(self._groups)
        return self.clock.newest + self._half_life

    def sweep(self) -> bool:
        """Remove the expired totals of a few marked groups; whether marked groups are left."""
        horizon = self._horizon
        for _ in range(min(SWEEP, len(self._due))):
            group = self._due.popleft()
            held = self._groups.get(group, {})
            for half in [half for half in held if half < horizon]:
                self.entries -= len(held.pop(half).steps)
            if not held:
                self._groups.pop(group, None)
        return bool(self._due)

    def reader(self, window: Window) -> Reader:
        """The reader of a `decay`, whose values have six decimals."""
        places = window.type.scale if isinstance(window.type, Number) else None
        unit = 10 ** (places or 0)

        def read(group: Group, at: int) -> Value | None:
            held = self._groups.get(group)
            return 0 if not held else self._value(held, at, unit)

        return read

    def prepare(self) -> bool:
        """True: there is nothing to index."""
        return True

    def dump(self, start: int, most: int) -> tuple[int, Columns]:
        """About `most` totals as elements, see `dump_groups`."""
        return dump_groups(self._groups, self._totals, True, start, most)

    def load(self, columns: Columns) -> None:
        """Add what `dump` returned. Raises ValueError for columns of different lengths."""
        for group, time, value in elements_in(columns, True):
            self._add(time, group, value)

    def _totals(self, held: dict[int, HalfLife]) -> list[tuple[int, Any]]:
        """A group's totals, each with the first time (µs) of its step."""
        return [
            (self._time(half, step), total)
            for half in sorted(held)
            for step, total in sorted(held[half].steps.items())
        ]

    @property
    def _horizon(self) -> int:
        """The first half life, by number, that some value may still read."""
        return (self.clock.newest - self._late) // self._half_life - HALVES

    def _add(self, time: int, group: Group, value: int) -> None:
        half, step = divmod(time * STEPS_A_HALF // self._half_life, STEPS_A_HALF)
        if half < self._horizon:
            return
        held = self._groups.setdefault(group, {})
        total = held.get(half)
        if total is None:
            total = held[half] = HalfLife()
        before = len(total.steps)
        total.add(step, value)
        self.entries += len(total.steps) - before

    def _time(self, half: int, step: int) -> int:
        """The first time (µs) of a step."""
        return -(-(half * STEPS_A_HALF + step) * self._half_life // STEPS_A_HALF)

    def _value(self, held: dict[int, HalfLife], at: int, unit: int) -> int | None:
        now, step = divmod(at * STEPS_A_HALF // self._half_life, STEPS_A_HALF)
        oldest = now - HALVES
        weighed: int = sum(
            total.weighed << half - oldest for half, total in held.items() if oldest <= half < now
        )
        last = held.get(now)
        if last is not None:
            steps = last.steps
            weighed += (
                sum(total * WEIGHTS[each] for each, total in steps.items() if each <= step)
                << HALVES
            )
        divisor = (WEIGHTS[step] << HALVES) * unit
        size: int = (2 * abs(weighed) * 10**METADATA_SCALE + divisor) // (2 * divisor)
        if size >= DECIMAL_LIMIT:
            return None
        return size if weighed >= 0 else -size
