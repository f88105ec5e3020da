"""Exact sets of values, for reachability analysis.

Numbers and times are represented as integers (a double by its rank among all doubles), so that each
set is a union of closed intervals.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Bound: TypeAlias = int | float
"""An integer, or an infinity."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """A union of closed intervals of integers, disjoint and ascending."""

    spans: tuple[tuple[Bound, Bound], ...]

    @property
    def size(self) -> int:
        return len(self.spans)

    def is_empty(self) -> bool:
        return not self.spans

    def meet(self, other: Intervals) -> Intervals:
        found: list[tuple[Bound, Bound]] = []
        mine, theirs = 0, 0
        while mine < len(self.spans) and theirs < len(other.spans):
            a, b = self.spans[mine]
            c, d = other.spans[theirs]
            if max(a, c) <= min(b, d):
                found.append((max(a, c), min(b, d)))
            if b < d:
                mine += 1
            else:
                theirs += 1
        return Intervals(tuple(found))

    def complement(self) -> Intervals:
        found: list[tuple[Bound, Bound]] = []
        start: Bound = -math.inf
        for low, high in self.spans:
            if start < low:
                found.append((start, low - 1))
            start = high + 1
        if start < math.inf:
            found.append((start, math.inf))
        return Intervals(tuple(found))

    def without(self, other: Intervals) -> Intervals:
        return self.meet(other.complement())


def union(spans: Iterable[tuple[Bound, Bound]]) -> Intervals:
    """Return the union of closed intervals, which may overlap."""
    found: list[tuple[Bound, Bound]] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return Intervals(tuple(found))


ALL_INTEGERS = Intervals(((-math.inf, math.inf),))


@dataclass(frozen=True, slots=True)
class Members:
    """A finite set of values, or everything but these if `complement`."""

    values: frozenset[object]
    complement: bool = False

    @property
    def size(self) -> int:
        return len(self.values)

    def is_empty(self) -> bool:
        return not self.values and not self.complement

    def meet(self, other: Members) -> Members:
        if self.complement and other.complement:
            return Members(self.values | other.values, True)
        if self.complement:
            return Members(other.values - self.values)
        if other.complement:
            return Members(self.values - other.values)
        return Members(self.values & other.values)

    def without(self, other: Members) -> Members:
        return self.meet(Members(other.values, not other.complement))


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that something may have, and whether it may be missing."""

    values: Intervals | Members
    missing: bool

    @property
    def size(self) -> int:
        """The number of values and ranges, as a measure of the work."""
        return 1 + self.values.size

    def is_empty(self) -> bool:
        return not self.missing and self.values.is_empty()

    def meet(self, other: Domain) -> Domain:
        met = self.values.meet(other.values)  # type: ignore[arg-type]  # one subject, one kind
        return Domain(met, self.missing and other.missing)

    def without(self, other: Domain) -> Domain:
        left = self.values.without(other.values)  # type: ignore[arg-type]  # one subject, one kind
        return Domain(left, self.missing and not other.missing)


def meeting(domains: list[Domain]) -> Domain:
    """Return the intersection of all domains, in pairs, so that it takes n log n steps at most."""
    while len(domains) > 1:
        alone = domains[len(domains) & ~1 :]
        domains = [a.meet(b) for a, b in zip(domains[::2], domains[1::2], strict=False)] + alone
    return domains[0]


def comparing(operator: str, floor: int, ceiling: int) -> Intervals:
    """The integers that compare so with a value between `floor` and `ceiling` (equal if it is
    whole).
    """
    match operator:
        case "<":
            return Intervals(((-math.inf, ceiling - 1),))
        case "<=":
            return Intervals(((-math.inf, floor),))
        case ">":
            return Intervals(((floor + 1, math.inf),))
        case ">=":
            return Intervals(((ceiling, math.inf),))
        case "==":
            return Intervals(((floor, floor),) if floor == ceiling else ())
        case _:
            return ALL_INTEGERS.without(comparing("==", floor, ceiling))


def place_of(double: float) -> int:
    """Return a double's rank among all doubles; both zeros have the same."""
    (bits,) = struct.unpack(">q", struct.pack(">d", double))
    return int(bits) if bits >= 0 else -int(bits & 0x7FFF_FFFF_FFFF_FFFF)
