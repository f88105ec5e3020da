"""Sets of payments as integers: a block holds 65,536 sequence numbers, each of them one bit.

Counting a set, or what two sets have in common, takes microseconds a block, so that any question
about 10,000,000 payments is answered from a few hundred blocks, exactly.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator

SHIFT = 16
SIZE = 1 << SHIFT
WHOLE = (1 << SIZE) - 1
_BYTES = SIZE // 8
# Up to so many members are stored as a list of two bytes each, more as one bit for each number.
MOST_LISTED = 256
MOST_LISTED_BYTES = 2 * MOST_LISTED


def block_of(sequence: int) -> int:
    return sequence >> SHIFT


def bit_of(sequence: int) -> int:
    """The position of a sequence number in its block."""
    return sequence & SIZE - 1


def numbers_from(block: int, first: int) -> int:
    """The set of all numbers of the block from `first` on."""
    below = first - (block << SHIFT)
    if below <= 0:
        return WHOLE
    return (WHOLE >> below) << below if below < SIZE else 0


def numbers_below(block: int, end: int) -> int:
    """The set of all numbers of the block before `end`."""
    return WHOLE & ~numbers_from(block, end)


def is_list(stored: bytes) -> bool:
    """Whether a set is stored as the list of its members."""
    return len(stored) < _BYTES


def members_listed(stored: bytes, low: int = 0, high: int = SIZE) -> array[int]:
    """The members of a set that is stored as a list, at the positions from `low` to before `high`."""
    bits = array("H", stored)
    return bits[bisect_left(bits, low) : bisect_left(bits, high)]


def are_members(stored: bytes, bits: Collection[int]) -> list[bool]:
    """Of each of some positions, whether a stored set has it."""
    if is_list(stored):
        listed = set(array("H", stored))
        return [bit in listed for bit in bits]
    return [bool(stored[bit >> 3] >> (bit & 7) & 1) for bit in bits]


def unpack(stored: bytes) -> int:
    """The set that is stored so."""
    if is_list(stored):
        return set_of(array("H", stored))
    return int.from_bytes(stored, "little")


def set_of(bits: Collection[int]) -> int:
    """The set of the numbers at these positions."""
    if len(bits) == 1:
        (bit,) = bits
        return 1 << bit
    flags = bytearray(_BYTES)
    for bit in bits:
        flags[bit >> 3] |= 1 << (bit & 7)
    return int.from_bytes(flags, "little")


def pack_list(bits: Iterable[int]) -> bytes:
    """What is stored of a set of few members, given in their order."""
    return array("H", bits).tobytes()


def change_members(stored: bytes, come: Collection[int], gone: Collection[int]) -> bytes:
    """What is stored of a set once these positions have come and gone; empty for no members."""
    if is_list(stored) and len(stored) // 2 + len(come) <= MOST_LISTED:
        return pack_list(sorted({*array("H", stored), *come}.difference(gone)))
    return remove_members(unpack(stored) | set_of(come), set_of(gone))


def remove_members(members: int, gone: int) -> bytes:
    """What is stored of a set without those `gone`."""
    left = members & ~gone
    return left.to_bytes(_BYTES, "little") if left else b""


def sliceable(members: int) -> bytes:
    """A set to take many stretches of."""
    return members.to_bytes(_BYTES, "little") if members else b""


def stretch(members: bytes, low: int, high: int) -> int:
    """What a sliceable set has at the positions from `low` to before `high`, the first of them 0.

    Of a set as an integer, each stretch would cost as much as the whole block.
    """
    piece = int.from_bytes(members[low >> 3 : (high + 7) >> 3], "little")
    return piece >> (low & 7) & ((1 << high - low) - 1)


def descending(block: int, members: int) -> Iterator[int]:
    """The sequence numbers of a set, highest first."""
    base = block << SHIFT
    while members:
        bit = members.bit_length() - 1
        yield base + bit
        members ^= 1 << bit


def by_block(sequences: Iterable[int]) -> dict[int, int]:
    """Sets of sequence numbers, by their blocks."""
    bits: dict[int, list[int]] = {}
    for sequence in sequences:
        bits.setdefault(block_of(sequence), []).append(bit_of(sequence))
    return {block: set_of(found) for block, found in bits.items()}
