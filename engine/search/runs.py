"""Runs: an entity's payments of several blocks side by side, each with its outcome.

Each block stores an entity's payments at a place of its own, so 30 days of 10,000,000 payments take
200 look-ups per entity; with runs, a few.

A run is made from four blocks that get no new payments, a run of the next level from four runs, and
so on, one range of values at a time. What a larger run holds is removed from the smaller ones. Once
made, runs are changed along with the blocks.
"""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from tollkeeper.engine.search.blocks import SHIFT, block_of, is_list
from tollkeeper.engine.search.reading import EVERY_VALUE, AccountIndex
from tollkeeper.engine.search.terms import ENTITIES, Facet

COMMON = b""
"""Stands for too many payments for a list in some block: they are read from the blocks."""
LEVELS = range(3)
"""A run of level 0 covers 4 blocks, of level 1 16, of level 2 64."""
_OUTCOME = 8
"""The number of low bits of an entry that hold the payment's outcome; the rest hold its place."""
_PLACE = SHIFT + 2 * len(LEVELS)
"""A place is this many low bits of a sequence number; it is the same in runs of every level."""
_AT_ONCE = 16_384
"""About this many entries are added to a run at once."""
_OPEN = 4
"""The last blocks of the journal are in no run: their payments and outcomes still change often."""
_LEVEL_BITS: Final = 2

Entity: TypeAlias = tuple[Facet, int]


class Unmade(NamedTuple):
    """A run still to be made for an account, and the highest value that it already holds."""

    account: int
    run: int
    through: int


def run_of(block: int, level: int) -> int:
    """Return the number of a block's run of a level: the run's first block, and the level."""
    bits = 2 * (level + 1)
    return block >> bits << bits << _LEVEL_BITS | level


def level_of(run: int) -> int:
    return run & (1 << _LEVEL_BITS) - 1


def blocks_of(run: int) -> range:
    """Return the blocks that a run covers."""
    first = run >> _LEVEL_BITS
    return range(first, first + (1 << 2 * (level_of(run) + 1)))


def runs_for(made: Mapping[int, int], value: int) -> tuple[list[int], list[int]]:
    """Given how far each run is made, return the runs that hold a value, and the level-0 runs whose
    blocks must be read for it, because no run holds it yet.
    """
    telling, left = list[int](), list[int]()
    told: set[int] = set()
    for run in sorted(made, key=level_of, reverse=True):
        blocks = blocks_of(run)
        if blocks.start in told:
            continue
        if made[run] >= value:
            telling.append(run)
            told.update(blocks)
        elif level_of(run) == 0:
            left.append(run)
    return telling, left


def runs_within(made: Mapping[int, int], blocks: range) -> dict[int, int]:
    """Those of the runs that are of any of these blocks."""
    return {
        run: through
        for run, through in made.items()
        if blocks_of(run).start < blocks.stop and blocks_of(run).stop > blocks.start
    }


def entries_from(run: int, entries: bytes, begin: int) -> array[int]:
    """Return a run's entries from sequence number `begin` on."""
    found = array("I", entries)
    first = begin - _base_of(run)
    return found[bisect_left(found, first << _OUTCOME) :] if first > 0 else found


def sequence_of(run: int, entry: int) -> int:
    """Return the sequence number of an entry's payment."""
    return _base_of(run) + (entry >> _OUTCOME)


def _base_of(run: int) -> int:
    return (run >> _LEVEL_BITS) << SHIFT >> _PLACE << _PLACE


def index_in_block(sequence: int) -> int:
    return sequence & (1 << _PLACE) - 1


def entry_outcomes(entries: array[int]) -> bytes:
    """Return the outcome bytes of entries."""
    return entries.tobytes()[:: entries.itemsize]


def note_runs(index: sqlite3.Connection, blocks: Iterable[tuple[int, int]]) -> None:
    """Register the runs of blocks (with their accounts) that got new payments."""
    runs = {(account, run_of(block, level)) for account, block in blocks for level in LEVELS}
    index.executemany("INSERT OR IGNORE INTO runs_made VALUES (?, ?, -1)", sorted(runs))


def unmade_run(index: sqlite3.Connection) -> Unmade | None:
    """Return the next run to be made; smaller ones come before those made from them."""
    found = index.execute(_UNMADE, (SHIFT, _OPEN)).fetchone()
    return None if found is None else Unmade(*found)


def extend_run(index: AccountIndex, run: int, through: int, give_way: Callable[[], None]) -> None:
    """Add the next values, after `through`, to an account's run; `give_way` is called before what is
    read of each block.
    """
    blocks = blocks_of(run)
    payments = sum(index.members(Facet.PAYMENT, 0, block).bit_count() for block in blocks)
    stretch = EVERY_VALUE * _AT_ONCE // max(payments * len(ENTITIES), _AT_ONCE)
    last = min(through + stretch, EVERY_VALUE)
    if level_of(run) == 0:
        entries = _entries_of_blocks(index, run, through, last, give_way)
    else:
        entries = _entries_of_runs(index, run, through, last)
    index.connection.executemany(
        "INSERT INTO runs VALUES (?, ?, ?, ?)",
        [(index.account, run, value, entries[value]) for value in sorted(entries)],
    )
    index.connection.execute(
        "UPDATE runs_made SET through = ? WHERE account = ? AND run = ?", (last, index.account, run)
    )
    if last == EVERY_VALUE:
        index.connection.executemany(
            "DELETE FROM runs_made WHERE account = ? AND run = ?",
            [(index.account, smaller) for smaller in _smaller_runs(run)],
        )


def _entries_of_blocks(
    index: AccountIndex, run: int, through: int, last: int, give_way: Callable[[], None]
) -> Mapping[int, bytes]:
    """Read the entries of values after `through` up to `last` from a run's blocks."""
    entries: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
    common = set()
    for block in blocks_of(run):
        give_way()
        outcomes = index.outcomes_of(block)
        first = index_in_block(block << SHIFT)
        for facet in ENTITIES:
            for value, stored in index.connection.execute(
                _STRETCH, (index.account, facet, block, through, last)
            ):
                if is_list(stored):
                    entries[value].extend(
                        [first + bit << _OUTCOME | outcomes[bit] for bit in array("H", stored)]
                    )
                else:
                    common.add(value)
    found = {value: each.tobytes() for value, each in entries.items()}
    return found | dict.fromkeys(common, COMMON)


def _entries_of_runs(index: AccountIndex, run: int, through: int, last: int) -> Mapping[int, bytes]:
    """Move the entries of values after `through` up to `last` out of a run's smaller runs."""
    entries: defaultdict[int, list[bytes]] = defaultdict(list)
    for smaller in _smaller_runs(run):
        moved = index.account, smaller, through, last
        for value, stored in index.connection.execute(_VALUES, moved):
            entries[value].append(stored)
        index.connection.execute(_DELETE_VALUES, moved)
    return {
        value: COMMON if COMMON in parts else b"".join(parts) for value, parts in entries.items()
    }


def _smaller_runs(run: int) -> list[int]:
    """Return the runs that a run is made from, first to last; none for level 0."""
    level = level_of(run)
    return sorted({run_of(block, level - 1) for block in blocks_of(run)}) if level else []


class RunChanges:
    """Changes to runs, until they are written."""

    def __init__(self, index: sqlite3.Connection) -> None:
        self._index = index
        self._through: dict[tuple[int, int], int] = {}
        # By account, run and entity: the changed places, with their outcome, or None if removed.
        self._changed: defaultdict[tuple[int, int, Entity], dict[int, int | None]]
        self._changed = defaultdict(dict)

    def concern(self, account: int, sequence: int) -> bool:
        """Whether a payment's run is made, at least in part."""
        block = block_of(sequence)
        return any(self._made_through(account, run_of(block, level)) >= 0 for level in LEVELS)

    def put(
        self, account: int, sequence: int, entities: Iterable[Entity], outcome: int | None
    ) -> None:
        """Set a payment's outcome under these entities; None removes it."""
        place, block = index_in_block(sequence), block_of(sequence)
        runs = [run_of(block, level) for level in reversed(LEVELS)]
        for entity in entities:
            for run in runs:
                if entity[1] <= self._made_through(account, run):
                    self._changed[account, run, entity][place] = outcome
                    break

    def write(self) -> None:
        """Write the changes. The blocks must already be written."""
        for (account, run, (facet, value)), places in sorted(self._changed.items()):
            row = self._index.execute(_ENTRIES, (account, run, value)).fetchone()
            if row is not None and row[0] == COMMON:
                if not any(
                    self._index.execute(_IN_BLOCK, (account, facet, block, value)).fetchone()
                    for block in blocks_of(run)
                ):
                    self._index.execute(_DELETE, (account, run, value))
                continue
            entries = array("I", b"" if row is None else row[0])
            _change_entries(entries, places)
            if entries:
                self._index.execute(_PUT, (account, run, value, entries.tobytes()))
            else:
                self._index.execute(_DELETE, (account, run, value))
        self._changed.clear()

    def _made_through(self, account: int, run: int) -> int:
        found = self._through.get((account, run))
        if found is None:
            row = self._index.execute(_MADE, (account, run)).fetchone()
            found = self._through[account, run] = -1 if row is None else row[0]
        return found


def _change_entries(entries: array[int], places: Mapping[int, int | None]) -> None:
    """Set the outcomes at these places; None removes the entry."""
    for place, outcome in places.items():
        at = bisect_left(entries, place << _OUTCOME)
        is_there = at < len(entries) and entries[at] >> _OUTCOME == place
        if outcome is not None and is_there:
            entries[at] = place << _OUTCOME | outcome
        elif outcome is not None:
            entries.insert(at, place << _OUTCOME | outcome)
        elif is_there:
            del entries[at]


_UNMADE = (
    f"SELECT account, run, through FROM runs_made WHERE through < {EVERY_VALUE}"
    f" AND (run >> {_LEVEL_BITS}) + (4 << 2 * (run & {(1 << _LEVEL_BITS) - 1}))"
    " <= ((SELECT sequence FROM followed) >> ?) - ?"
    f" ORDER BY run & {(1 << _LEVEL_BITS) - 1}, run LIMIT 1"
)
_MADE = "SELECT through FROM runs_made WHERE account = ? AND run = ?"
_STRETCH = (
    "SELECT value, members FROM postings WHERE account = ? AND facet = ? AND block = ?"
    " AND value > ? AND value <= ?"
)
_OF_VALUES = "account = ? AND run = ? AND value > ? AND value <= ?"
_VALUES = f"SELECT value, entries FROM runs WHERE {_OF_VALUES}"
_DELETE_VALUES = f"DELETE FROM runs WHERE {_OF_VALUES}"
_IN_BLOCK = "SELECT 1 FROM postings WHERE account = ? AND facet = ? AND block = ? AND value = ?"
_OF = "account = ? AND run = ? AND value = ?"
_ENTRIES = f"SELECT entries FROM runs WHERE {_OF}"
_PUT = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)"
_DELETE = f"DELETE FROM runs WHERE {_OF}"
