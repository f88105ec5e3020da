"""Number expressions so that equal ones have equal numbers, wherever they occur."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.walk import PARTS

_PLAIN = frozenset((str, int, float, bool, type(None)))


@dataclass(slots=True)
class Numbers:
    """The numbers of one program's expressions, each computed once; a let has its value's number.

    `lets` may grow at its end.
    """

    lets: Sequence[p.Let]
    _memo: dict[int, tuple[object, int]] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _of_lets: list[int] = field(default_factory=list)

    def of(self, part: p.Expression | p.Series | t.Type) -> int:
        """Return an expression's number, which ignores ids and spans."""
        if isinstance(part, p.LetValue):
            # In order: a let uses only those above it, so this doesn't recurse deeply.
            while len(self._of_lets) <= part.index:
                self._of_lets.append(self.of(self.lets[len(self._of_lets)].value))
            return self._of_lets[part.index]
        known = self._memo.get(id(part))
        if known is None:
            # The part is stored with its number to keep it alive, so that its id stays unique.
            known = self._memo[id(part)] = (part, self._make_number(part))
        return known[1]

    def named(self, key: Hashable) -> int:
        """Return the number of anything else, by a key that identifies it."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _make_number(self, part: Any) -> int:
        if isinstance(part, t.Type):
            return self.named(part)
        own = tuple(self._inner(getattr(part, name)) for name in PARTS[type(part)])
        return self.named((type(part).__name__, *own))

    def _inner(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _PLAIN:
            # Equal in Python but not in the language: True and 1, 1 and 1.0.
            return (kind, value)
        if isinstance(value, tuple):
            return tuple(map(self._inner, value))
        return self.of(value)
