"""Runs: sixteen blocks' payments of an entity side by side, with what became of each.

Every block has an entity's payments at a place of its own, so that 30 days of 10,000,000 payments
take 200 look-ups an entity; as runs they take a dozen. Runs are made of blocks that nothing new
comes to, a stretch of values at a time, and then changed along with them.
"""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

from tollkeeper.engine.search.blocks import SHIFT, is_list
from tollkeeper.engine.search.outcomes import PIECE_SHIFT
from tollkeeper.engine.search.reading import EVERY_VALUE, RUN_SHIFT, AccountIndex
from tollkeeper.engine.search.terms import ENTITIES, Facet

COMMON = b""
"""Stands for payments that are too many for a list in some block: the blocks tell of them."""
_BLOCKS = 1 << RUN_SHIFT - SHIFT
_OUTCOME = 8
"""The lowest bits of an entry are the payment's outcome, the others its place in the run."""
_AT_ONCE = 16_384
"""About so many entries are brought into a run at once."""
_OPEN = 1
"""The last runs of the journal are left as blocks: of new payments each would be put in alone."""

Entity: TypeAlias = tuple[Facet, int]


def entries_from(run: int, entries: bytes, begin: int) -> array[int]:
    """The entries of a run for payments from the sequence number `begin` on."""
    found = array("I", entries)
    first = begin - (run << RUN_SHIFT)
    return found[bisect_left(found, first << _OUTCOME) :] if first > 0 else found


def sequence_of(run: int, entry: int) -> int:
    """The sequence number of an entry's payment."""
    return (run << RUN_SHIFT) + (entry >> _OUTCOME)


def entry_outcomes(entries: array[int]) -> bytes:
    """What became of the payments of entries, a byte for each."""
    return entries.tobytes()[:: entries.itemsize]


def note_runs(index: sqlite3.Connection, blocks: Iterable[tuple[int, int]]) -> None:
    """Says that there are payments in blocks, given with their accounts."""
    runs = {(account, block >> RUN_SHIFT - SHIFT) for account, block in blocks}
    index.executemany("INSERT OR IGNORE INTO runs_made VALUES (?, ?, -1)", sorted(runs))


def unmade_run(index: sqlite3.Connection) -> tuple[int, int, int] | None:
    """An account, a run that is still to be made for it, and the last value that it has."""
    found: tuple[int, int, int] | None = index.execute(_UNMADE, (RUN_SHIFT, _OPEN)).fetchone()
    return found


def extend_run(index: AccountIndex, run: int, through: int) -> None:
    """Brings the next values, after `through`, into an account's run."""
    blocks = blocks_of(run)
    payments = sum(index.members(Facet.PAYMENT, 0, block).bit_count() for block in blocks)
    stretch = EVERY_VALUE * _AT_ONCE // max(payments * len(ENTITIES), _AT_ONCE)
    last = min(through + stretch, EVERY_VALUE)
    outcomes = _outcomes_of_run(index.connection, run)
    entries: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
    common = set()
    for facet in ENTITIES:
        for block in blocks:
            base = block - blocks.start << SHIFT
            for value, stored in index.connection.execute(
                _STRETCH, (index.account, facet, block, through, last)
            ):
                if is_list(stored):
                    entries[value].extend(
                        [
                            base + bit << _OUTCOME | outcomes[base + bit]
                            for bit in array("H", stored)
                        ]
                    )
                else:
                    common.add(value)
    index.connection.executemany(
        "INSERT INTO runs VALUES (?, ?, ?)",
        [
            (run, value, COMMON if value in common else entries[value].tobytes())
            for value in sorted(common.union(entries))
        ],
    )
    index.connection.execute(
        "UPDATE runs_made SET through = ? WHERE account = ? AND run = ?", (last, index.account, run)
    )


def blocks_of(run: int) -> range:
    """The blocks that a run is of."""
    first = run << RUN_SHIFT - SHIFT
    return range(first, first + _BLOCKS)


def _outcomes_of_run(index: sqlite3.Connection, run: int) -> bytes:
    outcomes = bytearray(1 << RUN_SHIFT)
    first = run << RUN_SHIFT - PIECE_SHIFT
    beyond = first + (1 << RUN_SHIFT - PIECE_SHIFT)
    for piece, stored in index.execute(
        "SELECT piece, bytes FROM outcomes WHERE piece >= ? AND piece < ?", (first, beyond)
    ):
        begin = piece - first << PIECE_SHIFT
        outcomes[begin : begin + len(stored)] = stored
    return bytes(outcomes)


class RunChanges:
    """What changes in runs that are made, until it is written."""

    def __init__(self, index: sqlite3.Connection) -> None:
        self._index = index
        self._through: dict[tuple[int, int], int] = {}
        # By account, run and entity: the places that change, with the outcome, or None for no more.
        self._changed: defaultdict[tuple[int, int, Entity], dict[int, int | None]]
        self._changed = defaultdict(dict)

    def concern(self, account: int, sequence: int) -> bool:
        """Whether a payment's run is made, if only in part."""
        return self._made_through(account, sequence >> RUN_SHIFT) >= 0

    def put(
        self, account: int, sequence: int, entities: Iterable[Entity], outcome: int | None
    ) -> None:
        """Has a payment among those of entities, with an outcome; or not, where that is None."""
        run = sequence >> RUN_SHIFT
        place = sequence - (run << RUN_SHIFT)
        through = self._made_through(account, run)
        for entity in entities:
            if entity[1] <= through:
                self._changed[account, run, entity][place] = outcome

    def write(self) -> None:
        """Writes what changed, beside the blocks that have changed so already."""
        for (account, run, (facet, value)), places in sorted(self._changed.items()):
            row = self._index.execute(_ENTRIES, (run, value)).fetchone()
            if row is not None and row[0] == COMMON:
                blocks = blocks_of(run)
                if not any(
                    self._index.execute(_IN_BLOCK, (account, facet, block, value)).fetchone()
                    for block in blocks
                ):
                    self._index.execute(_DELETE, (run, value))
                continue
            entries = _changed_entries(array("I", b"" if row is None else row[0]), places)
            if entries:
                self._index.execute(_PUT, (run, value, entries.tobytes()))
            else:
                self._index.execute(_DELETE, (run, value))
        self._changed.clear()

    def _made_through(self, account: int, run: int) -> int:
        found = self._through.get((account, run))
        if found is None:
            row = self._index.execute(_MADE, (account, run)).fetchone()
            found = self._through[account, run] = -1 if row is None else row[0]
        return found


def _changed_entries(entries: array[int], places: dict[int, int | None]) -> array[int]:
    outcomes: dict[int, int | None]
    outcomes = {entry >> _OUTCOME: entry & (1 << _OUTCOME) - 1 for entry in entries}
    changed = sorted((outcomes | places).items())
    return array("I", [place << _OUTCOME | each for place, each in changed if each is not None])


_UNMADE = (
    f"SELECT account, run, through FROM runs_made WHERE through < {EVERY_VALUE}"
    " AND run <= ((SELECT sequence FROM followed) >> ?) - ? LIMIT 1"
)
_MADE = "SELECT through FROM runs_made WHERE account = ? AND run = ?"
_STRETCH = (
    "SELECT value, members FROM postings WHERE account = ? AND facet = ? AND block = ?"
    " AND value > ? AND value <= ?"
)
_IN_BLOCK = "SELECT 1 FROM postings WHERE account = ? AND facet = ? AND block = ? AND value = ?"
_ENTRIES = "SELECT entries FROM runs WHERE run = ? AND value = ?"
_PUT = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?)"
_DELETE = "DELETE FROM runs WHERE run = ? AND value = ?"
