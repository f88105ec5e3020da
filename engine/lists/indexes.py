"""Three look-ups of entries: by exact value, by longest prefix, by narrowest network.

Prefixes and networks of one length are found by one probe, so a lookup costs as many probes as
there are lengths, whatever the number of entries. An expired entry gives way to a shorter one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tollkeeper.engine.lists.layers import HeldEntry, Layers
from tollkeeper.engine.lists.values import IP_BITS
from tollkeeper.grammar.program import Value

_LENGTH_BITS = 8
_IPV4_PREFIX = 96
_IPV4_MAPPED = 0xFFFF


@dataclass(frozen=True, slots=True)
class ExactIndex:
    held: Layers[Value]

    def find(self, value: Value, at: int) -> HeldEntry | None:
        found = self.held.get(value)
        return found if found is not None and _is_valid_at(found, at) else None

    def with_changes(self, changes: Mapping[Value, HeldEntry | None]) -> ExactIndex:
        return ExactIndex(self.held.with_changes(changes))


@dataclass(frozen=True, slots=True)
class PrefixIndex:
    """`lengths` of the prefixes, longest first."""

    held: Layers[Value]
    lengths: tuple[int, ...]

    def find(self, text: Value, at: int) -> HeldEntry | None:
        assert isinstance(text, str)
        size = len(text)
        for length in self.lengths:
            if length <= size:
                found = self.held.get(text[:length])
                if found is not None and _is_valid_at(found, at):
                    return found
        return None

    def with_changes(self, changes: Mapping[Value, HeldEntry | None]) -> PrefixIndex:
        return PrefixIndex(
            self.held.with_changes(changes), _merge_lengths(self.lengths, _sizes(changes))
        )


@dataclass(frozen=True, slots=True)
class NetworkIndex:
    """Networks by `network_key`; prefix lengths of 128 bits, longest first.

    An IPv4 address looks only at the lengths of networks that may hold one, another address only
    at those of the others.
    """

    held: Layers[Value]
    ipv4_lengths: tuple[int, ...]
    ipv6_lengths: tuple[int, ...]

    def find(self, address: Value, at: int) -> HeldEntry | None:
        assert isinstance(address, int)
        lengths = self.ipv4_lengths if address >> 32 == _IPV4_MAPPED else self.ipv6_lengths
        for length in lengths:
            spare = IP_BITS - length
            found = self.held.get(address >> spare << spare + _LENGTH_BITS | length)
            if found is not None and _is_valid_at(found, at):
                return found
        return None

    def with_changes(self, changes: Mapping[Value, HeldEntry | None]) -> NetworkIndex:
        ipv4, ipv6 = _network_lengths(changes)
        return NetworkIndex(
            self.held.with_changes(changes),
            _merge_lengths(self.ipv4_lengths, ipv4),
            _merge_lengths(self.ipv6_lengths, ipv6),
        )


Index: TypeAlias = ExactIndex | PrefixIndex | NetworkIndex


def network_key(first: int, bits: int) -> int:
    """A network's first address and prefix length (of 128 bits) as one number."""
    return first << _LENGTH_BITS | bits


def prefix_index(held: Mapping[Value, HeldEntry]) -> PrefixIndex:
    return PrefixIndex(Layers((held,)), _merge_lengths((), _sizes(held)))


def network_index(held: Mapping[Value, HeldEntry]) -> NetworkIndex:
    ipv4, ipv6 = _network_lengths(held)
    return NetworkIndex(Layers((held,)), _merge_lengths((), ipv4), _merge_lengths((), ipv6))


def _is_valid_at(held: HeldEntry, at: int) -> bool:
    return held.expires_at is None or at < held.expires_at


def _sizes(keys: Iterable[Value]) -> set[int]:
    return {len(str(key)) for key in keys}


def _network_lengths(keys: Iterable[Value]) -> tuple[set[int], set[int]]:
    ipv4, ipv6 = set(), set()
    for key in keys:
        length = int(key) & (1 << _LENGTH_BITS) - 1
        if length < _IPV4_PREFIX:
            ipv4.add(length)
            ipv6.add(length)
        elif int(key) >> 32 + _LENGTH_BITS == _IPV4_MAPPED:
            ipv4.add(length)
        else:
            ipv6.add(length)
    return ipv4, ipv6


def _merge_lengths(lengths: tuple[int, ...], more: set[int]) -> tuple[int, ...]:
    return lengths if more.issubset(lengths) else tuple(sorted({*lengths, *more}, reverse=True))
