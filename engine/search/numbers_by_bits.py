"""Numbers of payments, stored as one set of payments for each bit: sums, ranges and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def bits_in(number: int) -> Iterator[int]:
    """The positions of a number's set bits, highest first."""
    while number:
        bit = number.bit_length() - 1
        yield bit
        number ^= 1 << bit


def sum_of(by_bit: Mapping[int, int], members: int) -> int:
    """Sum the numbers of these payments."""
    return sum((members & having).bit_count() << bit for bit, having in by_bit.items())


def at_least(by_bit: Mapping[int, int], least: int, members: int) -> int:
    """Return the payments whose number is `least` or more."""
    more, equal = 0, members
    for bit in range(max([least.bit_length() - 1, *by_bit]), -1, -1):
        having = equal & by_bit.get(bit, 0)
        if least >> bit & 1:
            equal = having
        else:
            more |= having
            equal ^= having
    return more | equal


def by_number(by_bit: Mapping[int, int], members: int) -> list[tuple[int, int]]:
    """Return each number with the payments that have it, lowest number first."""
    found = [(0, members)] if members else []
    for bit in sorted(by_bit, reverse=True):
        having = by_bit[bit]
        split = []
        for number, part in found:
            more = part & having
            if part != more:
                split.append((number, part ^ more))
            if more:
                split.append((number | 1 << bit, more))
        found = split
    return found


def from_highest(by_bit: Mapping[int, int], members: int) -> Iterator[tuple[int, int]]:
    """Yield each number with the payments that have it, highest number first. Sets are only read when
    the next number is needed.
    """
    bits = sorted(by_bit, reverse=True)
    waiting = [(0, 0, members)]
    while waiting:
        number, place, part = waiting.pop()
        if not part:
            continue
        if place == len(bits):
            yield number, part
            continue
        having = part & by_bit[bits[place]]
        waiting.append((number, place + 1, part ^ having))
        waiting.append((number | 1 << bits[place], place + 1, having))
