"""Numbers for what expressions say: equal for those that say the same, wherever they stand."""

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
    """The numbers of one program's expressions, each worked out once; a let is what it holds.

    `lets` may grow at its end.
    """

    lets: Sequence[p.Let]
    _memo: dict[int, tuple[object, int]] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _of_lets: list[int] = field(default_factory=list)

    def of(self, part: p.Expression | p.Series | t.Type) -> int:
        """The number of an expression, whatever its ids and spans."""
        if isinstance(part, p.LetValue):
            # In the order written: a let uses only those above, so that no chain of them is deep.
            while len(self._of_lets) <= part.index:
                self._of_lets.append(self.of(self.lets[len(self._of_lets)].value))
            return self._of_lets[part.index]
        known = self._memo.get(id(part))
        if known is None:
            # The part is kept beside its number so that its id stays its own.
            known = self._memo[id(part)] = (part, self._make_number(part))
        return known[1]

    def named(self, key: Hashable) -> int:
        """The number of something else that has an identity of its own."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _make_number(self, part: Any) -> int:
        if isinstance(part, t.Type):
            return self.named(part)
        own = tuple(self._inner(getattr(part, name)) for name in PARTS[type(part)])
        return self.named((type(part).__name__, *own))

    def _inner(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _PLAIN:
            # Equal in Python, but not in the language: True and 1, 1 and 1.0.
            return (kind, value)
        if isinstance(value, tuple):
            return tuple(map(self._inner, value))
        return self.of(value)
