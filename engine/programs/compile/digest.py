"""Digests of expressions: equal for expressions of equal structure, wherever they are written.

Ids, spans and bounds are left out, and lets are replaced by their values, so equal series in
different rules have one digest, in every process and release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from hashlib import blake2b
from typing import Any

from tollkeeper.grammar.program import Expression, Let, LetValue, Node, Series
from tollkeeper.grammar.types import Number, Type

_SIZE = 16


class Digests:
    """Digests of one program's parts, of 32 hexadecimal digits, cached; `lets` are the program's."""

    def __init__(self, lets: Sequence[Let]) -> None:
        self.lets = lets
        self._known: dict[int, tuple[object, str]] = {}
        self._lets: list[str] = []
        for let in lets:
            self._lets.append(self.of(let.value))

    def __reduce__(self) -> tuple[Any, ...]:
        # The cache goes by the addresses of parts in memory.
        return Digests, (self.lets,)

    def of(self, part: Expression | Series) -> str:
        if isinstance(part, LetValue):
            return self._lets[part.index]
        known = self._known.get(id(part))
        if known is None:
            # The part is kept with its digest, so that no other object gets its id.
            known = self._known[id(part)] = (part, self._make_digest(part))
        return known[1]

    def _make_digest(self, part: Expression | Series) -> str:
        texts = [type(part).__name__]
        kind: Any = type(part)
        texts += [self._text(getattr(part, name)) for name in _meaningful(kind)]
        return blake2b(
            " ".join(texts).encode("utf-8", "surrogatepass"), digest_size=_SIZE
        ).hexdigest()

    def _text(self, value: Any) -> str:
        """A text that is unique to the value."""
        if isinstance(value, (Node, Series)):
            return self.of(value)  # type: ignore[arg-type]  # every part of an expression is one
        if isinstance(value, Type):
            return _kind(value)
        if isinstance(value, tuple):
            return f"({' '.join(map(self._text, value))})"
        if isinstance(value, str):
            return f"{len(value)}:{value}"
        return repr(value)


@cache
def _meaningful(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name not in ("id", "span"))


def _kind(kind: Type) -> str:
    name = type(kind).__name__
    return f"{name}/{kind.scale}" if isinstance(kind, Number) else name
