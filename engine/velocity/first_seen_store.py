"""The times at which groups were seen, of all accounts' series, written to a file in the background.

Each write brings a series to a sequence number, which is written with it: a start fills the series
from there on. A change is written only once the journal has its entry.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

from tollkeeper.engine.journal.contract import JournalError, Unavailable
from tollkeeper.engine.journal.past import Newest
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.velocity import first_seen_file
from tollkeeper.engine.velocity.first_seen import RecentBounds, SeenTimes, StoredSeenTimes
from tollkeeper.engine.velocity.first_seen_file import (
    CountChange,
    SeenTimesFile,
    StoredSeries,
    hash_changes,
    open_seen_times_file,
)
from tollkeeper.engine.velocity.seen_filter import SeenFilter
from tollkeeper.engine.velocity.spooled_changes import HashedChange, SpooledChanges

EVERY_S = 5.0
"""The seconds between two writes of changes: many at once cost less, as most are to different pages of
the file. A start after a crash reads the journal's last `EVERY_S` seconds, a takeover waits for a write.
"""
FILLED = 20_000
"""How many collected changes of a series being filled are held before they are spooled: sorting them
takes 10 ms, in which the interpreter does nothing else."""

SeriesName: TypeAlias = tuple[int, str]
"""An account, and the digest of one of its series."""
Written: TypeAlias = Callable[[], Awaitable[None]]
"""Waits until the journal has written or refused all entries appended before the call."""
ReadNewest: TypeAlias = Callable[[], Awaitable[Newest]]
"""Returns the journal's newest entry on disk."""


class SeenTimesStore:
    """All series in the file. Those that go beyond the journal's `last` sequence number are given up:
    they belong to another journal, or to one that was restored.

    Series are live once they are filled, except between `follow` and `own`.
    """

    def __init__(self, folder: Path, file: SeenTimesFile, last: int, newest: ReadNewest) -> None:
        self._folder = folder
        self._file = file
        self._newest = newest
        self._recent = RecentBounds()
        self._numbers = count(file.last_number() + 1)
        # Whole series in the file that were not opened yet.
        self._stored: dict[SeriesName, StoredSeries] = {}
        self._given_up: list[int] = []
        self._series: dict[SeriesName, StoredSeenTimes] = {}
        # The changes so far of series being filled, where they are too many for memory.
        self._spooled: dict[SeriesName, SpooledChanges] = {}
        self._rewritten: set[int] = set()
        self._lock = asyncio.Lock()
        self._is_following = False
        for each in file.series():
            if each.sequence is None or each.sequence > last:
                self._given_up.append(each.number)
            else:
                self._stored[each.account, each.digest] = each

    def sequence(self, account: int, digest: str) -> int:
        """The sequence number after which a series must be filled once it is opened; 0 for all."""
        stored = self._stored.get((account, digest))
        return 0 if stored is None or stored.sequence is None else stored.sequence

    def open(self, account: int, digest: str) -> SeenTimes:
        """Open a series, to be filled until `end_filling`."""
        name = (account, digest)
        if name in self._series:
            self._give_up(name)
        stored = self._stored.pop(name, None)
        number = next(self._numbers) if stored is None else stored.number
        sequence = None if stored is None else stored.sequence
        self._series[name] = StoredSeenTimes(self._file, self._recent, number, sequence)
        return self._series[name]

    def follow(self) -> None:
        """Only keep the series that are filled from now on up to date; they can't be read."""
        self._is_following = True

    async def own(self, written: Written) -> None:
        """Write the changes that were followed, if the file can be written, and make all series live."""
        with suppress(JournalError):
            await self.write(written)
        self._is_following = False
        for series in self._series.values():
            if series.is_filled:
                series.go_live()

    def end_filling(self, account: int, digests: Iterable[str], sequence: int) -> None:
        """These series have all changes up to this sequence number."""
        for _, series in self._opened_series(account, digests):
            series.end_filling(sequence)
            if not self._is_following:
                series.go_live()

    def give_up_others(self, needed: Collection[SeriesName]) -> None:
        """Give up the stored series that are not needed."""
        for name in [name for name in self._stored if name not in needed]:
            self._given_up.append(self._stored.pop(name).number)

    def give_up_account(self, account: int) -> None:
        """Give up all series of an account."""
        for name in [each for each in self._stored if each[0] == account]:
            self._given_up.append(self._stored.pop(name).number)
        for name in [each for each in self._series if each[0] == account]:
            self._give_up(name)

    async def spool_filled(self, account: int, digests: Iterable[str]) -> None:
        """Spool the collected changes of the series that hold many of them. Raises `Unavailable`."""
        async with self._lock:
            opened = self._opened_series(account, digests)
            with self._dropped_if_full(opened):
                for name, series in opened:
                    if series.filling > FILLED:
                        await self._spool(name, series)

    async def write_filled(self, account: int, digests: Iterable[str], beyond: int) -> None:
        """Write the spooled changes of the series, and the collected changes of each that holds more
        than `beyond`. Raises `Unavailable`.
        """
        async with self._lock:
            opened = self._opened_series(account, digests)
            with self._dropped_if_full(opened):
                for name, series in opened:
                    if name in self._spooled:
                        await self._spool(name, series)
                        await self._write_spooled(name, series)
                    # The file no longer has a series whole once collected changes are written, and a
                    # crash then fills it from the beginning: a whole one is written only when too much
                    # is held.
                    elif series.filling > (FILLED if series.written_up_to is not None else beyond):
                        filled = series.take_filled()
                        await self._file.write(
                            partial(_add, self._file.seen_filter, name, series.number, filled)
                        )

    async def _spool(self, name: SeriesName, series: StoredSeenTimes) -> None:
        spooled = self._spooled.get(name)
        if spooled is None:
            spooled = self._spooled[name] = await self._file.write(partial(_begin, self._folder))
        filled = hash_changes(series.take_filled())
        await self._file.write(partial(_append, spooled, filled))

    async def _write_spooled(self, name: SeriesName, series: StoredSeenTimes) -> None:
        spooled, seen_filter = self._spooled[name], self._file.seen_filter
        await self._file.write(partial(_set_not_whole, name, series.number))
        ranges = spooled.ranges()
        while await self._file.write(partial(_add_next, seen_filter, series.number, ranges)):
            pass
        self._drop_spooled(name)

    @contextmanager
    def _dropped_if_full(
        self, opened: Sequence[tuple[SeriesName, StoredSeenTimes]]
    ) -> Iterator[None]:
        """Give the disk back what was spooled of series that are filled together when something can't
        be written: that ends their filling, and payments need the room."""
        try:
            yield
        except Unavailable:
            for name, _ in opened:
                self._drop_spooled(name)
            raise

    def _drop_spooled(self, name: SeriesName) -> None:
        if name in self._spooled:
            self._spooled.pop(name).close()

    def drop_spooled(self) -> None:
        """Drop the spooled changes of series whose filling did not end."""
        for spooled in self._spooled.values():
            spooled.close()
        self._spooled.clear()

    async def write(self, written: Written) -> None:
        """Write what has changed. Raises `JournalError`; the next call then writes it, too."""
        async with self._lock:
            for name in [name for name, series in self._series.items() if series.is_given_up]:
                self._give_up(name)
            if self._given_up:
                await self._file.write(partial(_give_up, self._given_up))
                self._given_up = []
            taken = {name: series for name, series in self._series.items() if series.take_changes()}
            if taken:
                await self._write(taken, written)

    async def remove_some(self) -> bool:
        """Remove some times of given up series from the file; False when none is left."""
        return await self._file.write(first_seen_file.remove_step)

    @asynccontextmanager
    async def rewriting(self, account: int, written: Written) -> AsyncIterator[None]:
        """Rewrite the account's past, in the journal and in the windows, within the block.

        If the process ends in the block, the next start fills the account's series from the beginning.
        """
        async with self._lock:
            self._rewritten.add(account)
            await self._file.write(partial(first_seen_file.forget_sequences, account=account))
            for (number, _), series in self._series.items():
                if number == account:
                    series.written_up_to = None
        yield
        self._rewritten.discard(account)
        await self.write(written)
        await self._file.empty_log()

    async def _write(self, taken: dict[SeriesName, StoredSeenTimes], written: Written) -> None:
        stored: dict[SeriesName, StoredSeenTimes] = {}
        try:
            await written()
            newest = await self._newest()
            writable = {name: series for name, series in taken.items() if series.is_writable}
            await self._file.write(
                partial(_set, self._file.seen_filter, writable, frozenset(self._rewritten), newest)
            )
            stored = writable
        finally:
            for name, series in taken.items():
                series.end_writing(
                    was_written=name in stored, is_whole=name[0] not in self._rewritten
                )

    def _opened_series(
        self, account: int, digests: Iterable[str]
    ) -> list[tuple[SeriesName, StoredSeenTimes]]:
        names = [(account, digest) for digest in digests]
        return [(name, self._series[name]) for name in names if name in self._series]

    def _give_up(self, name: SeriesName) -> None:
        self._given_up.append(self._series.pop(name).number)
        self._drop_spooled(name)


def _begin(folder: Path, _connection: sqlite3.Connection) -> SpooledChanges:
    return SpooledChanges(folder)


def _append(
    spooled: SpooledChanges, changes: Iterable[HashedChange], _connection: sqlite3.Connection
) -> None:
    spooled.add(changes)


def _add_next(
    seen_filter: SeenFilter,
    series: int,
    ranges: Iterator[list[HashedChange]],
    connection: sqlite3.Connection,
) -> bool:
    """Add one range of the spooled changes; False when none is left."""
    changes = next(ranges, None)
    if changes is None:
        return False
    first_seen_file.add_hashed(connection, seen_filter, series, changes)
    return True


def _set_not_whole(name: SeriesName, series: int, connection: sqlite3.Connection) -> None:
    first_seen_file.set_sequence(connection, StoredSeries(series, *name, None))


def _add(
    seen_filter: SeenFilter,
    name: SeriesName,
    series: int,
    filled: Sequence[CountChange],
    connection: sqlite3.Connection,
) -> None:
    _set_not_whole(name, series, connection)
    first_seen_file.add_counts(connection, seen_filter, series, filled)


def _set(
    seen_filter: SeenFilter,
    taken: dict[SeriesName, StoredSeenTimes],
    rewritten: Collection[int],
    newest: Newest,
    connection: sqlite3.Connection,
) -> None:
    first_seen_file.set_newest(connection, newest)
    for name, series in taken.items():
        counts, differences, sequence = series.changes_to_write()
        first_seen_file.set_counts(connection, seen_filter, series.number, counts)
        first_seen_file.add_counts(connection, seen_filter, series.number, differences)
        stored = StoredSeries(series.number, *name, None if name[0] in rewritten else sequence)
        first_seen_file.set_sequence(connection, stored)


def _give_up(given_up: Sequence[int], connection: sqlite3.Connection) -> None:
    for series in given_up:
        first_seen_file.give_up(connection, series)


async def write_behind(store: SeenTimesStore, written: Written) -> None:
    """Write every `EVERY_S` seconds until cancelled; log the first of several failures, and retry."""
    failing = False
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            await store.write(written)
            while await store.remove_some():
                await asyncio.sleep(0)
        except JournalError as error:
            if not failing:
                get_logger().error("ages_not_written", error=str(error))
            failing = True
        else:
            failing = False


@asynccontextmanager
async def open_seen_times(
    folder: Path, last: int, newest: ReadNewest
) -> AsyncIterator[SeenTimesStore]:
    """Open the file of a data folder whose lock is held; `last` is the journal's last sequence number.

    Raises `JournalError`.
    """
    with ExitStack() as stack:
        async with open_seen_times_file(folder) as file:
            store = SeenTimesStore(folder, file, last, newest)
            # After the file is closed: until then its thread may read spooled changes.
            stack.callback(store.drop_spooled)
            yield store
