"""An immutable mapping of which a changed one is made without copying all of it."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Set, ValuesView
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class PersistentMap(Mapping[_Key, _Value]):
    """The items of a mapping, in its order, of which `with_item` and `without` make others.

    A change of n items copies about √n of them: all items but the last changed ones are shared.
    """

    __slots__ = ("_base", "_gone", "_later")

    def __init__(
        self,
        base: Mapping[_Key, _Value] | None = None,
        later: Mapping[_Key, _Value] | None = None,
        gone: Set[_Key] = frozenset(),
    ) -> None:
        """Hold `base` without the keys in `gone`, and with the items of `later`; none is to be
        changed from now on."""
        self._base = base or {}
        self._later = later or {}
        self._gone = gone
        if (len(self._later) + len(gone)) ** 2 > len(self._base):
            self._base, self._later, self._gone = self._joined(), {}, frozenset()

    def with_item(self, key: _Key, value: _Value) -> PersistentMap[_Key, _Value]:
        return PersistentMap(self._base, {**self._later, key: value}, self._gone)

    def without(self, key: _Key) -> PersistentMap[_Key, _Value]:
        """The mapping without a key, which need not be there."""
        later = {each: value for each, value in self._later.items() if each != key}
        gone = self._gone | {key} if key in self._base else self._gone
        return PersistentMap(self._base, later, gone)

    def __getitem__(self, key: _Key) -> _Value:
        if key in self._later:
            return self._later[key]
        if key in self._gone:
            raise KeyError(key)
        return self._base[key]

    def __iter__(self) -> Iterator[_Key]:
        for key in self._base:
            if key not in self._gone:
                yield key
        for key in self._later:
            if key not in self._base or key in self._gone:
                yield key

    def __len__(self) -> int:
        again = sum(key in self._base and key not in self._gone for key in self._later)
        return len(self._base) - len(self._gone) + len(self._later) - again

    def items(self) -> ItemsView[_Key, _Value]:
        return self._joined().items()

    def values(self) -> ValuesView[_Value]:
        return self._joined().values()

    def __repr__(self) -> str:
        return repr(self._joined())

    def _joined(self) -> dict[_Key, _Value]:
        joined = {**self._base}
        for key in self._gone:
            del joined[key]
        joined.update(self._later)
        return joined
