"""A tree of one large group's elements in order of event time, those of one time in that of their
values' hashes, so that one of many is found by halves.

To insert, remove or find an element, and to count or aggregate a range of times, takes a number of
steps that is logarithmic in the number of elements.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress, repeat
from operator import eq
from typing import Any, NamedTuple, TypeAlias

LEAF = 64
"""The most elements of a leaf."""
FAN = 64
"""The most children of a branch."""
_NEVER = 10**18
"""Later (µs) than every instant."""


class PartialAggregate(NamedTuple):
    """How to aggregate a leaf's values, and how to aggregate the results of several parts.

    Neither is called with an empty sequence. `name` identifies the results that branches keep.
    """

    name: str
    of_values: Callable[[Sequence[Any]], Any]
    of_parts: Callable[[Sequence[Any]], Any]


class Leaf:
    """Up to `LEAF` elements: their times (µs) in order, and their values where they have some."""

    __slots__ = ("times", "values")

    def __init__(self, times: array[int], values: list[Any] | None) -> None:
        self.times = times
        self.values = values

    def __len__(self) -> int:
        return len(self.times)

    @property
    def first(self) -> int:
        """The earliest time (µs), `_NEVER` in an empty leaf."""
        return self.times[0] if self.times else _NEVER

    def elements(self) -> Iterator[tuple[int, Any]]:
        """The times and values, in order."""
        return zip(self.times, self.values or repeat(None), strict=False)

    def rank(self, at: int) -> int:
        """The number of elements not later than `at` (µs)."""
        return bisect_right(self.times, at)

    def latest(self, at: int) -> int | None:
        """The latest time not after `at` (µs)."""
        before = bisect_right(self.times, at)
        return self.times[before - 1] if before else None

    def earliest(self, at: int) -> int | None:
        """The earliest time not before `at` (µs)."""
        before = bisect_left(self.times, at)
        return self.times[before] if before < len(self.times) else None

    def comes_behind(self, time: int, value: Any) -> bool:
        """Whether the first element comes behind one of this time and value."""
        if self.first != time or self.values is None:
            return self.first > time
        return hash(self.values[0]) > hash(value)

    def begins_with(self, time: int, value: Any) -> bool:
        """Whether the first element is of this time and of the value's hash."""
        return self.first == time and (self.values is None or hash(self.values[0]) == hash(value))

    def place(self, time: int, value: Any) -> int:
        """The number of elements that do not come behind one of this time and value."""
        end = bisect_right(self.times, time)
        if self.values is None:
            return end
        start = bisect_left(self.times, time, 0, end)
        return bisect_right(self.values, hash(value), start, end, key=hash)

    def insert(self, time: int, value: Any) -> Leaf | None:
        """Insert an element; returns the later half when the node had to be split."""
        times, values = self.times, self.values
        at = self.place(time, value)
        times.insert(at, time)
        if values is not None:
            values.insert(at, value)
        if len(times) <= LEAF:
            return None
        # A group that grows in order has full leaves.
        cut = LEAF if at == LEAF else LEAF // 2
        later = Leaf(times[cut:], None if values is None else values[cut:])
        del times[cut:]
        if values is not None:
            del values[cut:]
        return later

    def remove(self, time: int, value: Any) -> bool:
        """Remove one element of that time and value; False when there is none."""
        times, values = self.times, self.values
        for at in range(self.place(time, value) - 1, -1, -1):
            if times[at] != time or (values is not None and hash(values[at]) != hash(value)):
                break
            if values is None or values[at] == value:
                del times[at]
                if values is not None:
                    del values[at]
                return True
        return False

    def take_first(self, horizon: int, most: int) -> Leaf:
        """Remove and return at most `most` of the earliest elements, those not later than `horizon` (µs)."""
        expired = min(most, bisect_right(self.times, horizon))
        taken = Leaf(self.times[:expired], None if self.values is None else self.values[:expired])
        del self.times[:expired]
        if self.values is not None:
            del self.values[:expired]
        return taken

    def drop(self, horizon: int) -> int:
        """Remove the elements not later than `horizon` (µs); returns how many."""
        expired = bisect_right(self.times, horizon)
        del self.times[:expired]
        if self.values is not None:
            del self.values[:expired]
        return expired

    def collect(self, since: int, at: int, fold: PartialAggregate, parts: list[Any]) -> None:
        """Append the partial results of the elements in (since, at] to `parts`; times in µs."""
        low = bisect_right(self.times, since)
        high = bisect_right(self.times, at, low)
        if high > low and self.values is not None:
            parts.append(fold.of_values(self.values[low:high]))

    def whole(self, fold: PartialAggregate) -> Any:
        """The partial result of all elements."""
        return fold.of_values(self.values or ())


class Parts:
    """Each child's partial result; `stale` are the indexes of those that must be computed again."""

    __slots__ = ("stale", "values")

    def __init__(self, count: int) -> None:
        self.values: list[Any] = [None] * count
        self.stale = set(range(count))

    def insert(self, index: int) -> None:
        self.values.insert(index, None)
        self.stale = {each + (each >= index) for each in self.stale} | {index}

    def remove(self, start: int, end: int) -> None:
        del self.values[start:end]
        self.stale = {
            each if each < start else each - end + start
            for each in self.stale
            if not start <= each < end
        }


class Branch:
    """Up to `FAN` children in order of time; `firsts` are lower bounds of each child's times."""

    __slots__ = ("children", "firsts", "parts", "sizes")

    def __init__(self, children: list[TreeNode]) -> None:
        self.children = children
        self.firsts = array("q", [child.first for child in children])
        self.sizes = [len(child) for child in children]
        # By the partial aggregate's name, made when first read.
        self.parts: dict[str, Parts] = {}

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def first(self) -> int:
        """A lower bound of all times (µs)."""
        return self.firsts[0]

    def elements(self) -> Iterator[tuple[int, Any]]:
        """The times and values, in order."""
        return chain.from_iterable(child.elements() for child in self.children)

    def rank(self, at: int) -> int:
        """The number of elements not later than `at` (µs)."""
        index = bisect_right(self.firsts, at) - 1
        return 0 if index < 0 else sum(self.sizes[:index]) + self.children[index].rank(at)

    def latest(self, at: int) -> int | None:
        """The latest time not after `at` (µs)."""
        for index in range(bisect_right(self.firsts, at) - 1, -1, -1):
            found = self.children[index].latest(at)
            if found is not None:
                return found
        return None

    def earliest(self, at: int) -> int | None:
        """The earliest time not before `at` (µs)."""
        for child in self.children[max(bisect_left(self.firsts, at) - 1, 0) :]:
            found = child.earliest(at)
            if found is not None:
                return found
        return None

    def comes_behind(self, time: int, value: Any) -> bool:
        """Whether the first element comes behind one of this time and value."""
        return self.children[0].comes_behind(time, value)

    def begins_with(self, time: int, value: Any) -> bool:
        """Whether the first element is of this time and of the value's hash."""
        return self.children[0].begins_with(time, value)

    def place(self, time: int, value: Any) -> int:
        """The index of the child that an element of this time and value belongs to."""
        # Children whose lower bound is this time begin with one of its elements, or have none.
        low, high = max(bisect_left(self.firsts, time), 1), bisect_right(self.firsts, time)
        while low < high:
            middle = (low + high) // 2
            if self.children[middle].comes_behind(time, value):
                high = middle
            else:
                low = middle + 1
        return low - 1

    def insert(self, time: int, value: Any) -> Branch | None:
        """Insert an element; returns the later half when the node had to be split."""
        index = self.place(time, value)
        self.firsts[index] = min(self.firsts[index], time)
        child = self.children[index]
        later = child.insert(time, value)
        self._resize(index, 1)
        if later is None:
            return None
        self._resize(index, -len(later))
        self._add(index + 1, later)
        if len(self.children) <= FAN:
            return None
        cut = FAN if index == FAN - 1 else FAN // 2
        return self._split(cut)

    def remove(self, time: int, value: Any) -> bool:
        """Remove one element of that time and value; False when there is none."""
        for index in range(self.place(time, value), -1, -1):
            if self.children[index].remove(time, value):
                self._resize(index, -1)
                self._drop_empty(index)
                return True
            if not self.children[index].begins_with(time, value):
                break
        return False

    def take_first(self, horizon: int, most: int) -> Leaf:
        """Remove and return at most `most` of the earliest elements, those not later than `horizon` (µs)."""
        taken = self.children[0].take_first(horizon, most)
        self._resize(0, -len(taken))
        self._drop_empty(0)
        return taken

    def drop(self, horizon: int) -> int:
        """Remove the elements not later than `horizon` (µs); returns how many."""
        whole = max(bisect_right(self.firsts, horizon) - 1, 0)
        expired = sum(self.sizes[:whole])
        self._cut(0, whole)
        part = self.children[0].drop(horizon)
        self._resize(0, -part)
        self._drop_empty(0)
        return expired + part

    def collect(self, since: int, at: int, fold: PartialAggregate, parts: list[Any]) -> None:
        """Append the partial results of the elements in (since, at] to `parts`; times in µs."""
        # Children from `low` on are later than `since`, those before `high` not later than `at`.
        low = bisect_right(self.firsts, since)
        high = bisect_right(self.firsts, at) - 1
        if 0 < low <= high + 1:
            self.children[low - 1].collect(since, at, fold, parts)
        if low <= high:
            parts += self._parts(fold, low, high)
            self.children[high].collect(since, at, fold, parts)

    def whole(self, fold: PartialAggregate) -> Any:
        """The partial result of all elements."""
        return fold.of_parts(self._parts(fold, 0, len(self.children)))

    def _parts(self, fold: PartialAggregate, low: int, high: int) -> list[Any]:
        parts = self.parts.get(fold.name)
        if parts is None:
            parts = self.parts[fold.name] = Parts(len(self.children))
        if parts.stale:
            for index in [each for each in parts.stale if low <= each < high]:
                parts.values[index] = self.children[index].whole(fold)
                parts.stale.discard(index)
        return parts.values[low:high]

    def _resize(self, index: int, by: int) -> None:
        self.sizes[index] += by
        for parts in self.parts.values():
            parts.stale.add(index)

    def _add(self, index: int, child: TreeNode) -> None:
        self.children.insert(index, child)
        self.firsts.insert(index, child.first)
        self.sizes.insert(index, len(child))
        for parts in self.parts.values():
            parts.insert(index)

    def _drop_empty(self, index: int) -> None:
        if not self.sizes[index] and len(self.children) > 1:
            self._cut(index, index + 1)

    def _cut(self, start: int, end: int) -> None:
        del self.children[start:end], self.firsts[start:end], self.sizes[start:end]
        for parts in self.parts.values():
            parts.remove(start, end)

    def _split(self, cut: int) -> Branch:
        later = Branch(self.children[cut:])
        for name, parts in self.parts.items():
            moved = later.parts[name] = Parts(0)
            moved.values = parts.values[cut:]
            moved.stale = {each - cut for each in parts.stale if each >= cut}
            parts.stale = {each for each in parts.stale if each < cut}
            del parts.values[cut:]
        del self.children[cut:], self.firsts[cut:], self.sizes[cut:]
        return later


TreeNode: TypeAlias = Leaf | Branch


def build_tree(times: array[int], values: list[Any] | None) -> TreeNode:
    """A tree of elements, which must be in order of time."""
    if values is not None:
        values = _by_hash(times, values)
    nodes: list[TreeNode] = [
        Leaf(times[at : at + LEAF], None if values is None else values[at : at + LEAF])
        for at in range(0, len(times), LEAF)
    ]
    while len(nodes) > 1:
        nodes = [Branch(nodes[at : at + FAN]) for at in range(0, len(nodes), FAN)]
    return nodes[0] if nodes else Leaf(array("q"), None if values is None else [])


def _by_hash(times: array[int], values: list[Any]) -> list[Any]:
    """The values, those of one time in the order of their hashes."""
    ordered, end = list(values), 0
    for at in compress(range(len(times)), map(eq, times, times[1:])):
        if at >= end:
            end = bisect_right(times, times[at], at)
            ordered[at:end] = sorted(ordered[at:end], key=hash)
    return ordered


def insert_element(root: TreeNode, time: int, value: Any) -> TreeNode:
    """Insert an element; returns the tree's root."""
    later = root.insert(time, value)
    return root if later is None else Branch([root, later])
