"""The SQLite file with the times at which groups of `age`, `interval`, `since`, `first` and `streak`
were seen, beside the journal's file.

All of it can be derived from the journal: a file that is missing, damaged or of another version is
created again and filled. A group is stored as a hash of 16 bytes, so that a row's size does not
depend on its key.

Most groups that are read were never seen. A filter in memory knows this of nearly all of them, so
that the file is not read: whatever writes to the file adds to the filter, and a thread adds what the
file had when it was opened.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import NamedTuple, TypeAlias

from msgspec.structs import astuple

from tollkeeper.engine.journal.contract import JournalError, Unavailable
from tollkeeper.engine.journal.past import Newest
from tollkeeper.engine.journal.side_file import Durability, SideFile, connect, create_file
from tollkeeper.engine.velocity.contract import Group
from tollkeeper.engine.velocity.seen_filter import SeenFilter
from tollkeeper.engine.velocity.spooled_changes import HashedChange
from tollkeeper.grammar.program import Value

AGES_FILE = "ages.db"
HASH_SIZE = 16
"""The bytes of a group's hash."""
_VERSION = 2
DURABILITY: Durability = "NORMAL"
"""Commits that a power cut loses are filled again from the journal, which has their entries."""
PAGES = 4096
"""The pages of 4 KiB that are cached for reads."""
_STEP = 5000
"""The most times of a given up series that one transaction removes."""
_WRITTEN = 100
"""The most rows that one statement writes."""
_ADDED = 1000
"""How many groups are added to the filter at once, which takes the interpreter a tenth of a
millisecond."""

# `place` is the sequence number up to which the file has a series whole, null when it does not; a
# series without an account was given up. `newest` has the journal's newest entry at the last write.
_TABLES = f"""
CREATE TABLE series (id INTEGER PRIMARY KEY, account INTEGER, digest TEXT, place INTEGER);
CREATE TABLE newest (id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, arrived INTEGER NOT NULL);
CREATE TABLE moments (
    series INTEGER, seen BLOB, time INTEGER, count INTEGER, PRIMARY KEY (series, seen, time)
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""
_OF = "FROM moments WHERE series = ? AND seen = ?"
_FIRST = f"SELECT time {_OF} ORDER BY time LIMIT 1"
_LAST = f"SELECT time {_OF} ORDER BY time DESC LIMIT 1"
_IN_USE = "SELECT id FROM series WHERE account IS NOT NULL"
# In one row, as each row that is fetched takes the interpreter from the event loop.
_NEXT_GROUPS = (
    "SELECT group_concat(hex(seen), '') FROM (SELECT DISTINCT seen FROM moments"
    " WHERE series = ? AND seen > ? ORDER BY seen LIMIT ?)"
)

StoredCount: TypeAlias = tuple[int, bytes, int, int]
"""A series' number, a group's hash, a time (µs), and a count or its change."""
CountChange: TypeAlias = tuple[Group, int, int]
"""A group, a time (µs), and the number of times it was seen then, or by how much that changes."""


class StoredSeries(NamedTuple):
    """A series in the file; `sequence` is the sequence number up to which the file has it whole, None
    when it does not."""

    number: int
    account: int
    digest: str
    sequence: int | None


class SeenTimesFile(SideFile):
    """The series and their groups' times. `seen` is the hash of a group. A file that turns out damaged
    is removed, so that the next start creates it again.

    `seen_filter` has all groups of the file once the thread `filling` has ended.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, DURABILITY)
        self._reading.execute(f"PRAGMA cache_size = {PAGES}")
        self.seen_filter = SeenFilter()
        self._filter_is_whole = False
        self._is_closing = False
        self.filling = Thread(target=self._fill_filter, name=path.stem, daemon=True)
        self.filling.start()

    def series(self) -> list[StoredSeries]:
        """The series that were not given up."""
        return list(
            map(StoredSeries._make, self._run("SELECT * FROM series WHERE account IS NOT NULL"))
        )

    def last_number(self) -> int:
        """The highest number of a series in the file, 0 without any."""
        return int(self._run("SELECT coalesce(max(id), 0) FROM series").fetchone()[0])

    def bounds(self, series: int, seen: bytes) -> tuple[int, int] | None:
        """The first and the last time (µs), None for a group that was never seen."""
        if self._filter_is_whole and not self.seen_filter.may_have(series, seen):
            return None
        first = self._run(_FIRST, (series, seen)).fetchone()
        if first is None:
            return None
        last = self._run(_LAST, (series, seen)).fetchone()
        return first[0], last[0]

    def count(self, series: int, seen: bytes, time: int) -> int:
        """How often the group was seen at this time (µs)."""
        found = self._run(f"SELECT count {_OF} AND time = ?", (series, seen, time)).fetchone()
        return 0 if found is None else int(found[0])

    def ascending(self, series: int, seen: bytes) -> Iterator[int]:
        """The times (µs) in ascending order."""
        with closing(self._run(f"SELECT time {_OF} ORDER BY time", (series, seen))) as found:
            yield from (time for (time,) in found)

    def descending(self, series: int, seen: bytes, at: int) -> Iterator[int]:
        """The times not after `at` (µs), in descending order."""
        query = f"SELECT time {_OF} AND time <= ? ORDER BY time DESC"
        with closing(self._run(query, (series, seen, at))) as found:
            yield from (time for (time,) in found)

    def counts_after(self, series: int, seen: bytes, after: int) -> Iterator[tuple[int, int]]:
        """The times later than `after` (µs), each with how often the group was seen then."""
        query = f"SELECT time, count {_OF} AND time > ?"
        with closing(self._run(query, (series, seen, after))) as found:
            yield from found

    def close(self) -> None:
        self._is_closing = True
        self.filling.join()
        super().close()

    def _fill_filter(self) -> None:
        # A file that can't be used makes the next read fail. Without the filter, every read uses the file.
        with suppress(sqlite3.Error), closing(connect(self._path, DURABILITY)) as connection:
            for (series,) in connection.execute(_IN_USE).fetchall():
                groups = b""
                while True:
                    if self._is_closing:
                        return
                    after = (series, groups[-HASH_SIZE:], _ADDED)
                    (found,) = connection.execute(_NEXT_GROUPS, after).fetchone()
                    if found is None:
                        break
                    groups = bytes.fromhex(found)
                    self.seen_filter.add(series, groups)
            self._filter_is_whole = True

    def _run(self, query: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._reading.execute(query, values)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Unavailable:
        if type(error) is sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)
        return super()._failure(error)


def set_counts(
    connection: sqlite3.Connection,
    seen_filter: SeenFilter,
    series: int,
    changes: Iterable[CountChange],
) -> None:
    """Set counts of a series; a count of 0 removes the time."""
    rows = _rows_of(seen_filter, series, sorted(hash_changes(changes)))
    connection.executemany(
        "DELETE FROM moments WHERE series = ? AND seen = ? AND time = ?",
        [row[:3] for row in rows if not row[3]],
    )
    _write_rows(connection, "REPLACE INTO moments VALUES {}", [row for row in rows if row[3]])


def add_counts(
    connection: sqlite3.Connection,
    seen_filter: SeenFilter,
    series: int,
    changes: Iterable[CountChange],
) -> None:
    """Add changes, which may be negative, to counts of a series."""
    add_hashed(connection, seen_filter, series, sorted(hash_changes(changes)))


def add_hashed(
    connection: sqlite3.Connection,
    seen_filter: SeenFilter,
    series: int,
    changes: Iterable[HashedChange],
) -> None:
    """Add changes in the table's order."""
    rows = _rows_of(seen_filter, series, changes)
    _write_rows(
        connection,
        "INSERT INTO moments VALUES {} ON CONFLICT DO UPDATE SET count = count + excluded.count",
        rows,
    )
    connection.executemany(
        "DELETE FROM moments WHERE series = ? AND seen = ? AND time = ? AND count <= 0",
        [row[:3] for row in rows if row[3] < 0],
    )


def set_sequence(connection: sqlite3.Connection, series: StoredSeries) -> None:
    """Write up to which sequence number the file has a series whole."""
    connection.execute("REPLACE INTO series VALUES (?, ?, ?, ?)", series)


def set_newest(connection: sqlite3.Connection, newest: Newest) -> None:
    """Write which entry was the journal's newest."""
    connection.execute("REPLACE INTO newest VALUES (1, ?, ?)", astuple(newest))


def read_newest(path: Path) -> Newest:
    """The journal's newest entry when the file was last written. Raises `sqlite3.Error`."""
    with closing(sqlite3.connect(path)) as found:
        row = found.execute("SELECT sequence, arrived FROM newest").fetchone()
    return Newest() if row is None else Newest(*row)


def forget_sequences(connection: sqlite3.Connection, account: int) -> None:
    """Mark all of the account's series as not whole."""
    connection.execute("UPDATE series SET place = NULL WHERE account = ?", (account,))


def give_up(connection: sqlite3.Connection, series: int) -> None:
    """Mark a series for `remove_step` to remove."""
    connection.execute("REPLACE INTO series VALUES (?, NULL, NULL, NULL)", (series,))


def remove_step(connection: sqlite3.Connection) -> bool:
    """Remove some times of given up series; False when none was left."""
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
    """The 16 bytes that stand for a group, the same for equal ones."""
    text = repr(group)
    if "-0.0" in text:
        # Equal groups may differ in a zero's sign, and only in it.
        same = tuple(map(_unsign_zero, group)) if isinstance(group, tuple) else _unsign_zero(group)
        text = repr(same)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH_SIZE).digest()


def _unsign_zero(part: Value) -> Value:
    """The part, 0.0 for -0.0: they are equal, and only their texts differ."""
    return part + 0.0 if isinstance(part, float) else part


def _write_rows(
    connection: sqlite3.Connection, statement: str, rows: Sequence[StoredCount]
) -> None:
    """Write rows, many by one statement, into whose text their placeholders are put: one statement a
    row takes twice as long, and needs the interpreter's lock for each."""
    for begin in range(0, len(rows), _WRITTEN):
        some = rows[begin : begin + _WRITTEN]
        places = ", ".join(["(?, ?, ?, ?)"] * len(some))
        connection.execute(statement.format(places), [*chain.from_iterable(some)])


def hash_changes(changes: Iterable[CountChange]) -> Iterator[HashedChange]:
    return ((hash_group(group), time, count) for group, time, count in changes)


def _rows_of(
    seen_filter: SeenFilter, series: int, changes: Iterable[HashedChange]
) -> list[StoredCount]:
    """The changes as rows. The filter has their groups before anybody can read the rows."""
    rows = [(series, *each) for each in changes]
    seen_filter.add(series, b"".join(seen for _, seen, _, _ in rows))
    return rows


@asynccontextmanager
async def open_seen_times_file(folder: Path) -> AsyncIterator[SeenTimesFile]:
    """Open the file of a data folder whose lock is held, or create it. Raises `JournalError`."""
    path = folder / AGES_FILE
    try:
        if not _is_usable(path):
            _create(path)
        opened = SeenTimesFile(path)
    except (OSError, sqlite3.Error) as error:
        raise JournalError(f"cannot open `{path}`: {error}") from error
    try:
        yield opened
    finally:
        opened.close()


def remove_seen_times(path: Path) -> None:
    """Remove the file with its write-ahead log."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def _create(path: Path) -> None:
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
