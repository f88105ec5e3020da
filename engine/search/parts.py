"""Parts of the index: a block, or a bundle of 4, 16 or 64 blocks, of which what is counted is kept too.

So figures over 200 blocks are added up from some ten parts. A bundle's number is negative, a block's is
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

Found = TypeVar("Found")

BUNDLE_LEVELS: Final = (1, 2, 3)
"""A bundle of each level has four parts of the level below; a block is of level 0."""
_LEVEL_BITS: Final = 2


def bundle_of(block: int, level: int) -> int:
    """Return the number of a block's bundle of a level: its first block, and the level."""
    bits = 2 * level
    return -(block >> bits << bits << _LEVEL_BITS | level)


def blocks_within(part: int) -> range:
    """Return the blocks of a part."""
    first = part if part >= 0 else -part >> _LEVEL_BITS
    return range(first, first + (1 << 2 * _level_of(part)))


def smaller_parts(part: int) -> list[int]:
    """Return the four parts of a bundle, last first; none of a block."""
    level = _level_of(part)
    if not level:
        return []
    blocks = blocks_within(part)[:: 1 << 2 * (level - 1)]
    return [bundle_of(block, level - 1) if level > 1 else block for block in reversed(blocks)]


def parts_with(block: int) -> list[int]:
    """Return a block and its bundles, the smallest first."""
    return [block, *(bundle_of(block, level) for level in BUNDLE_LEVELS)]


def largest_parts(
    blocks: Sequence[int], find: Callable[[int], Found | None]
) -> Iterator[tuple[int, Found | None]]:
    """Yield the largest bundles of which something is found, with that, and the blocks that are in none
    of them, with what is found of each; last first, as `blocks` are given.
    """
    waiting = list(dict.fromkeys(bundle_of(block, BUNDLE_LEVELS[-1]) for block in reversed(blocks)))
    there = set(blocks)
    while waiting:
        part = waiting.pop()
        if part >= 0:
            if part in there:
                yield part, find(part)
        elif not there.isdisjoint(blocks_within(part)):
            found = find(part)
            if found is None:
                waiting += reversed(smaller_parts(part))
            else:
                yield part, found


def _level_of(part: int) -> int:
    return 0 if part >= 0 else -part & (1 << _LEVEL_BITS) - 1
