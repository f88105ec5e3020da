"""The file that keeps when the groups of `age`, `interval` and `since` were seen, beside the journal's.

It holds nothing that the journal does not: a file that is missing, damaged or of another version
is made anew, and filled again. A group is held by 16 bytes of its hash, so that a time takes
about as much room whatever its key is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tollkeeper.engine.journal.contract import JournalError, Unavailable
from tollkeeper.engine.journal.side_file import Durability, SideFile, connect, create_file
from tollkeeper.engine.velocity.contract import Group

AGES_FILE = "ages.db"
_VERSION = 1
DURABILITY: Durability = "NORMAL"
"""What a power cut takes is filled again from the journal, which is on disk by then."""
PAGES = 4096
"""How many pages of 4 KiB stay in memory for reads."""
_STEP = 5000
"""How many times of a series that was given up are removed at once."""

# `place` is the one up to which a series is whole here, null where it is not; a series without an
# account was given up.
_TABLES = f"""
CREATE TABLE series (id INTEGER PRIMARY KEY, account INTEGER, digest TEXT, place INTEGER);
CREATE TABLE moments (
    series INTEGER, seen BLOB, time INTEGER, count INTEGER, PRIMARY KEY (series, seen, time)
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""
_OF = "FROM moments WHERE series = ? AND seen = ?"
_FIRST = f"SELECT time {_OF} ORDER BY time LIMIT 1"
_LAST = f"SELECT time {_OF} ORDER BY time DESC LIMIT 1"

CountChange: TypeAlias = tuple[Group, int, int]
"""A group, an event time (µs), and a count: how often it was seen then, or how much oftener."""


class StoredSeries(NamedTuple):
    """A series in the file, and the sequence number up to which it is whole there, None where it is
    not."""

    number: int
    account: int
    digest: str
    sequence: int | None


class SeenTimesFile(SideFile):
    """The series and the times of their groups; a file that turns out damaged is removed for the
    next start."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, DURABILITY)
        self._reading.execute(f"PRAGMA cache_size = {PAGES}")

    def series(self) -> list[StoredSeries]:
        """The series that were not given up."""
        return list(
            map(StoredSeries._make, self._run("SELECT * FROM series WHERE account IS NOT NULL"))
        )

    def last_number(self) -> int:
        """The highest number that a series ever had, of those that are not gone."""
        return int(self._run("SELECT coalesce(max(id), 0) FROM series").fetchone()[0])

    def bounds(self, series: int, seen: bytes) -> tuple[int, int] | None:
        """The first and the last time."""
        # Most groups that are asked for were never seen, so the last is not asked for with the first.
        first = self._run(_FIRST, (series, seen)).fetchone()
        if first is None:
            return None
        last = self._run(_LAST, (series, seen)).fetchone()
        return first[0], last[0]

    def count(self, series: int, seen: bytes, time: int) -> int:
        """How often the group was seen at this time."""
        found = self._run(f"SELECT count {_OF} AND time = ?", (series, seen, time)).fetchone()
        return 0 if found is None else int(found[0])

    def upwards(self, series: int, seen: bytes) -> Iterator[int]:
        """The times, the first one first."""
        with closing(self._run(f"SELECT time {_OF} ORDER BY time", (series, seen))) as found:
            yield from (time for (time,) in found)

    def downwards(self, series: int, seen: bytes, at: int) -> Iterator[int]:
        """The times not after `at` (µs), the last one first."""
        query = f"SELECT time {_OF} AND time <= ? ORDER BY time DESC"
        with closing(self._run(query, (series, seen, at))) as found:
            yield from (time for (time,) in found)

    def counts_after(self, series: int, seen: bytes, after: int) -> Iterator[tuple[int, int]]:
        """The times after `after` (µs), each with how often the group was seen then."""
        query = f"SELECT time, count {_OF} AND time > ?"
        with closing(self._run(query, (series, seen, after))) as found:
            yield from found

    def _run(self, query: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._reading.execute(query, values)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Unavailable:
        if type(error) is sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
        return super()._failure(error)


def set_counts(connection: sqlite3.Connection, series: int, changes: Iterable[CountChange]) -> None:
    """Makes each count of a series what a change says."""
    found = _hash_changes(series, changes)
    connection.executemany(
        "DELETE FROM moments WHERE series = ? AND seen = ? AND time = ?",
        [change[:3] for change in found if not change[3]],
    )
    connection.executemany(
        "REPLACE INTO moments VALUES (?, ?, ?, ?)", [change for change in found if change[3]]
    )


def add_counts(connection: sqlite3.Connection, series: int, changes: Iterable[CountChange]) -> None:
    """Adds to each count of a series what a change says, which may be less than nothing."""
    found = _hash_changes(series, changes)
    connection.executemany(
        "INSERT INTO moments VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET count = count + excluded.count",
        found,
    )
    connection.executemany(
        "DELETE FROM moments WHERE series = ? AND seen = ? AND time = ? AND count <= 0",
        [change[:3] for change in found if change[3] < 0],
    )


def set_sequence(connection: sqlite3.Connection, kept: StoredSeries) -> None:
    """Notes up to which sequence number a series is whole here."""
    connection.execute("REPLACE INTO series VALUES (?, ?, ?, ?)", kept)


def forget_sequences(connection: sqlite3.Connection, account: int) -> None:
    """None of the account's series is whole here from now on."""
    connection.execute("UPDATE series SET place = NULL WHERE account = ?", (account,))


def give_up(connection: sqlite3.Connection, series: int) -> None:
    """Leaves a series for `remove_step` to remove."""
    connection.execute("REPLACE INTO series VALUES (?, NULL, NULL, NULL)", (series,))


def remove_step(connection: sqlite3.Connection) -> bool:
    """Removes some of what series that were given up hold; false when nothing was left."""
    found = connection.execute("SELECT id FROM series WHERE account IS NULL LIMIT 1").fetchone()
    if found is None:
        return False
    removed = connection.execute(
        "DELETE FROM moments WHERE (series, seen, time) IN"
        " (SELECT series, seen, time FROM moments WHERE series = ? LIMIT ?)",
        (*found, _STEP),
    ).rowcount
    if removed < _STEP:
        connection.execute("DELETE FROM series WHERE id = ?", found)
    return True


def hash_group(group: Group) -> bytes:
    """The 16 bytes by which a group is held."""
    return blake2b(repr(group).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _hash_changes(series: int, changes: Iterable[CountChange]) -> list[tuple[int, bytes, int, int]]:
    """In the order of the table, so that each of its pages is looked for once."""
    return sorted((series, hash_group(group), time, count) for group, time, count in changes)


@asynccontextmanager
async def open_seen_times_file(folder: Path) -> AsyncIterator[SeenTimesFile]:
    """The file of a data folder whose lock is held. Raises `JournalError` for an unusable folder."""
    path = folder / AGES_FILE
    try:
        if not _is_usable(path):
            _make_anew(path)
        opened = SeenTimesFile(path)
    except (OSError, sqlite3.Error) as error:
        raise JournalError(f"cannot open `{path}`: {error}") from error
    try:
        yield opened
    finally:
        opened.close()


def remove_seen_times(path: Path) -> None:
    """Leaves nothing of the file."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def _make_anew(path: Path) -> None:
    remove_seen_times(path)
    create_file(path)
    with closing(connect(path, DURABILITY)) as made:
        made.executescript(_TABLES)


def _is_usable(path: Path) -> bool:
    if not path.exists():
        return False
    try:
        with closing(connect(path, DURABILITY)) as found:
            return bool(found.execute("PRAGMA user_version").fetchone() == (_VERSION,))
    except sqlite3.DatabaseError:
        return False
