"""Which groups a file of seen times may have: a Bloom filter in C, or, where it can't be built, all."""

from __future__ import annotations

try:
    from tollkeeper.engine.velocity._seen_filter import SeenFilter as SeenFilter
except ImportError:  # where C can't be built

    class SeenFilter:  # type: ignore[no-redef]
        """Groups, each given by its series' number and its hash of 16 bytes."""

        @property
        def size(self) -> int:
            """The bytes that it takes."""
            return 0

        def add(self, _series: int, _hashes: bytes, /) -> None:
            """Add groups of a series: their hashes, one behind another."""

        def may_have(self, _series: int, _seen: bytes, /) -> bool:
            """Whether a group may have been added; False if it certainly was not."""
            return True
