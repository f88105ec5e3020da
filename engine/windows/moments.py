"""The event times at which the groups of one series were seen, in memory or on disk.

Every moment is kept, not only the first and the last: an update may take a record out of its
group, and then the one after it is the first.
"""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_left, bisect_right, insort
from hashlib import blake2b
from pathlib import Path
from tempfile import mkstemp
from typing import Protocol

from tollkeeper.engine.windows.elements import Group

PAGES = 4096
"""How many pages of 4 KiB of a series stay in memory."""


class Moments(Protocol):
    """The event times (µs) at which each group was seen."""

    def add(self, group: Group, time: int) -> None: ...

    def remove(self, group: Group, time: int) -> None:
        """Takes out one such moment, if it is there."""
        ...

    def first(self, group: Group) -> int | None: ...

    def latest(self, group: Group, at: int) -> int | None:
        """The latest moment not after `at` (µs)."""
        ...

    def discard(self) -> None:
        """Gives back what the series holds."""
        ...


class MemoryMoments:
    """A group seen once, as most are, is held as a bare number."""

    def __init__(self) -> None:
        self._moments: dict[Group, int | list[int]] = {}

    def add(self, group: Group, time: int) -> None:
        held = self._moments.get(group)
        if held is None:
            self._moments[group] = time
        elif isinstance(held, int):
            self._moments[group] = [min(held, time), max(held, time)]
        else:
            insort(held, time)

    def remove(self, group: Group, time: int) -> None:
        held = self._moments.get(group)
        if isinstance(held, list):
            at = bisect_left(held, time)
            if at < len(held) and held[at] == time:
                del held[at]
            if len(held) == 1:
                self._moments[group] = held[0]
        elif held == time:
            del self._moments[group]

    def first(self, group: Group) -> int | None:
        held = self._moments.get(group)
        return held[0] if isinstance(held, list) else held

    def latest(self, group: Group, at: int) -> int | None:
        held = self._moments.get(group)
        if isinstance(held, list):
            before = bisect_right(held, at)
            return held[before - 1] if before else None
        return held if held is not None and held <= at else None

    def discard(self) -> None:
        self._moments.clear()


class DiskMoments:
    """A scratch file in `folder`, gone with the process: like the windows it is filled at start.

    SQLite's page cache is what stays in memory, whatever the number of groups. A group is held by
    16 bytes of its hash, so the file says of nobody that they were there.
    """

    def __init__(self, folder: Path) -> None:
        handle, name = mkstemp(prefix="moments-", dir=folder)
        self._database = sqlite3.connect(name, isolation_level=None)
        self._run = self._database.execute
        for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = {PAGES}"):
            self._run(f"PRAGMA {setting}")
        self._run(
            "CREATE TABLE moments (seen BLOB, time INTEGER, count INTEGER,"
            " PRIMARY KEY (seen, time)) WITHOUT ROWID"
        )
        self._run("BEGIN")
        Path(name).unlink()
        os.close(handle)

    def add(self, group: Group, time: int) -> None:
        self._run(
            "INSERT INTO moments VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
            (_hashed(group), time),
        )

    def remove(self, group: Group, time: int) -> None:
        seen = (_hashed(group), time)
        if not self._run(
            "DELETE FROM moments WHERE seen = ? AND time = ? AND count = 1", seen
        ).rowcount:
            self._run("UPDATE moments SET count = count - 1 WHERE seen = ? AND time = ?", seen)

    def first(self, group: Group) -> int | None:
        return self._one(
            "SELECT time FROM moments WHERE seen = ? ORDER BY time LIMIT 1", (_hashed(group),)
        )

    def latest(self, group: Group, at: int) -> int | None:
        return self._one(
            "SELECT time FROM moments WHERE seen = ? AND time <= ? ORDER BY time DESC LIMIT 1",
            (_hashed(group), at),
        )

    def discard(self) -> None:
        self._database.close()

    def _one(self, query: str, values: tuple[bytes] | tuple[bytes, int]) -> int | None:
        found = self._run(query, values).fetchone()
        return None if found is None else int(found[0])


def _hashed(group: Group) -> bytes:
    return blake2b(repr(group).encode("utf-8", "surrogatepass"), digest_size=16).digest()
