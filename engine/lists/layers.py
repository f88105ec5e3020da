"""A mapping that never changes: adding to it gives another that shares all but a little.

Three layers, the upper ones hiding what is below. A change copies the top one alone, and pours it
into the next when it is full: a snapshot costs nothing, a lookup three probes at most, a change
about the same whatever the size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from tollkeeper.grammar.program import Value

TOP_SIZE = 256
MIDDLE_SIZE = 65_536

K = TypeVar("K")


class HeldEntry(NamedTuple):
    """An entry: the columns' values in order, valid until `expires_at` (µs), None for no end."""

    expires_at: int | None
    columns: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class Layers(Generic[K]):
    """The layers from the top down, the last one the base. None in an upper layer removes the key."""

    layers: tuple[Mapping[K, HeldEntry | None], ...]

    def get(self, key: K) -> HeldEntry | None:
        for layer in self.layers:
            if key in layer:
                return layer[key]
        return None

    @property
    def most(self) -> int:
        """How many keys there are at most: those that several layers hold count for each."""
        return sum(map(len, self.layers))

    def with_changes(self, changes: Mapping[K, HeldEntry | None]) -> Layers[K]:
        """The mapping with these changes made; None removes a key."""
        *upper, base = self.layers
        top = {**upper[0], **changes} if upper else dict(changes)
        if len(top) <= TOP_SIZE:
            return Layers((top, *upper[1:], base))
        middle = {**upper[1], **top} if len(upper) > 1 else top
        if len(middle) <= MIDDLE_SIZE and len(middle) <= len(base):
            return Layers(({}, middle, base))
        merged = {**base, **middle}
        for key, held in middle.items():
            if held is None:
                del merged[key]
        return Layers((merged,))
