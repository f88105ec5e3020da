"""The moments of all accounts' series, written behind the traffic.

Each write brings what all places up to one brought, and that place with it: a start fills each
series from there on. Nothing is written before the journal has it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

from structlog import get_logger

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.velocity import first_seen_file as moments_file
from tollkeeper.engine.velocity.first_seen import Moments
from tollkeeper.engine.velocity.first_seen_file import (
    CountChange,
    MomentsFile,
    StoredSeries,
    open_moments_file,
)
from tollkeeper.engine.velocity.first_seen_series import Lately, StoredMoments

EVERY_S = 0.5
"""How often what changed is written."""
FILLED = 50_000
"""So many filled moments of a series wait before they are written."""

Of: TypeAlias = tuple[int, str]
"""An account, and the digest of one of its series."""
Written: TypeAlias = Callable[[], Awaitable[None]]
"""Done once the journal has written or refused all that it was given before."""

log = get_logger()


class MomentsStore:
    """`last` is the journal's last place: a series that is beyond it is another journal's."""

    def __init__(self, file: MomentsFile, last: int) -> None:
        self._file = file
        self._lately = Lately()
        self._numbers = count(file.last_number() + 1)
        self._kept: dict[Of, StoredSeries] = {}
        self._given_up: list[int] = []
        self._series: dict[Of, StoredMoments] = {}
        self._rewritten: set[int] = set()
        self._lock = asyncio.Lock()
        for each in file.series():
            if each.place is None or each.place > last:
                self._given_up.append(each.number)
            else:
                self._kept[each.account, each.digest] = each

    def place(self, account: int, digest: str) -> int:
        """The place beyond which `open` leaves a series to be filled, 0 for all of them."""
        kept = self._kept.get((account, digest))
        return 0 if kept is None or kept.place is None else kept.place

    def open(self, account: int, digest: str) -> Moments:
        """A series to be filled, then to go live."""
        of = (account, digest)
        if of in self._series:
            self._give_up(of)
        kept = self._kept.pop(of, None)
        number = next(self._numbers) if kept is None else kept.number
        place = None if kept is None else kept.place
        self._series[of] = StoredMoments(self._file, self._lately, number, place)
        return self._series[of]

    def go_live(self, account: int, digests: Iterable[str], place: int) -> None:
        """The series hold all that places up to `place` brought, and are read from now on."""
        for _, series in self._filled(account, digests):
            series.go_live(place)

    def give_up_others(self, needed: Collection[Of]) -> None:
        """Gives up what the file has of series that are not needed."""
        for of in [of for of in self._kept if of not in needed]:
            self._given_up.append(self._kept.pop(of).number)

    async def write_filled(
        self, account: int, digests: Iterable[str], beyond: int = FILLED
    ) -> None:
        """Writes what was filled of the series that hold more than `beyond` moments of it."""
        async with self._lock:
            for of, series in self._filled(account, digests):
                # One that is whole in the file stays so until what is new is too much to hold.
                if series.filling > (FILLED if series.written_place is not None else beyond):
                    filled = series.take_filled()
                    await self._file.write(partial(_add, of, series.number, filled))

    async def write(self, written: Written) -> None:
        """Writes what changed. Raises `JournalError`, and holds on to it then."""
        async with self._lock:
            for of in [of for of, series in self._series.items() if series.is_given_up]:
                self._give_up(of)
            if self._given_up:
                await self._file.write(partial(_give_up, self._given_up))
                self._given_up = []
            taken = {of: series for of, series in self._series.items() if series.take_changes()}
            if taken:
                await self._write(taken, written)

    async def remove_some(self) -> bool:
        """Removes some of what was given up; false when nothing is left."""
        return await self._file.write(moments_file.remove_step)

    @asynccontextmanager
    async def rewriting(self, account: int, written: Written) -> AsyncIterator[None]:
        """Within it the account's past changes, in the journal and in the windows.

        Should that be cut off, the next start fills the account's series from the beginning.
        """
        async with self._lock:
            self._rewritten.add(account)
            await self._file.write(partial(moments_file.forget_places, account=account))
            for (number, _), series in self._series.items():
                if number == account:
                    series.written_place = None
        yield
        self._rewritten.discard(account)
        await self.write(written)
        await self._file.empty_log()

    async def _write(self, taken: dict[Of, StoredMoments], written: Written) -> None:
        done: dict[Of, StoredMoments] = {}
        try:
            await written()
            lasting = {of: series for of, series in taken.items() if series.is_lasting}
            await self._file.write(partial(_set, lasting, frozenset(self._rewritten)))
            done = lasting
        finally:
            for of, series in taken.items():
                series.end_writing(was_written=of in done, is_whole=of[0] not in self._rewritten)

    def _filled(self, account: int, digests: Iterable[str]) -> list[tuple[Of, StoredMoments]]:
        found = [(of, self._series.get(of)) for of in ((account, each) for each in digests)]
        return [(of, series) for of, series in found if series is not None]

    def _give_up(self, of: Of) -> None:
        self._given_up.append(self._series.pop(of).number)


def _add(
    of: Of, series: int, filled: Sequence[CountChange], connection: sqlite3.Connection
) -> None:
    moments_file.set_place(connection, StoredSeries(series, *of, None))
    moments_file.add_counts(connection, series, filled)


def _set(
    taken: dict[Of, StoredMoments], rewritten: Collection[int], connection: sqlite3.Connection
) -> None:
    for of, series in taken.items():
        changes, place = series.taken()
        moments_file.set_counts(connection, series.number, changes)
        kept = StoredSeries(series.number, *of, None if of[0] in rewritten else place)
        moments_file.set_place(connection, kept)


def _give_up(given_up: Sequence[int], connection: sqlite3.Connection) -> None:
    for series in given_up:
        moments_file.give_up(connection, series)


async def write_behind(store: MomentsStore, written: Written) -> None:
    """Write again and again, until cancelled; what fails is logged once, and tried again."""
    failing = False
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            await store.write(written)
            while await store.remove_some():
                await asyncio.sleep(0)
        except JournalError as error:
            if not failing:
                log.error("ages_not_written", error=str(error))
            failing = True
        else:
            failing = False


@asynccontextmanager
async def open_moments(folder: Path, last: int) -> AsyncIterator[MomentsStore]:
    """The moments of a data folder whose lock is held. Raises `JournalError`."""
    async with open_moments_file(folder) as file:
        yield MomentsStore(file, last)
