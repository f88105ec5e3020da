"""Checksums over the journal: one for each entry, and a chain over blocks of them.

A seal closes a block of entries: it holds how many there are, the sum of their checksums, and a
digest of that together with the seal before it. So a changed, missing, added or exchanged entry is
found, and a missing seal too. Retention and erasure remove and rewrite entries within sealed
blocks; what they removed and changed is added up beside the seal. The checksums find damage, not
forgery: whoever can write the file can also compute new ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple
from zlib import crc32

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import Entry

BLOCK = 1000
"""Entries in a sealed block; only the last block before a service ends, or before its last entries are
removed, may have fewer."""

_SEALS = "SELECT sequence, entries, total, chain, removed, changed FROM seals"
_NEXT_BLOCK = (
    "SELECT count(*), coalesce(max(place), 0), CAST(coalesce(sum(checksum), 0) AS bigint) FROM"
    " (SELECT place, checksum FROM journal WHERE place > ? ORDER BY place LIMIT ?) AS block"
)
_SEAL_OF = "SELECT min(sequence) FROM seals WHERE sequence >= ?"


class Seal(NamedTuple):
    """A block that ends with the entry of this sequence number, as it was when it was sealed.

    `total` is the sum of the entries' checksums; `removed` entries have been removed since, and
    `changed` is how much removals and erasures changed the sum.
    """

    sequence: int
    entries: int
    total: int
    chain: bytes
    removed: int
    changed: int


class Alteration(NamedTuple):
    """The checksums of an entry before and after it is rewritten; `after` is None when removed."""

    sequence: int
    before: int | None
    after: int | None


def checksum(entry: Entry) -> int:
    """The CRC-32 of all that the entry holds. Raises ValueError for an id that can't be encoded."""
    sequence, account, kind, id_, arrived, time, body, outcome = entry
    start = crc32(f"{sequence} {account} {kind:d} {arrived} {time} {id_}".encode())
    return crc32(outcome or b"", crc32(body, start))


def chain(before: bytes, sequence: int, entries: int, total: int) -> bytes:
    """The digest of a seal, from that of the seal before it (empty for the first)."""
    return hashlib.sha256(before + f"{sequence} {entries} {total}".encode()).digest()


def seal_step(connection: SqlConnection, *, at_least: int = BLOCK) -> bool:
    """Seal the next block of up to `BLOCK` entries; False when fewer than `at_least` are unsealed."""
    last = connection.execute(f"{_SEALS} ORDER BY sequence DESC LIMIT 1").fetchone()
    begin, before = (0, b"") if last is None else (last[0], last[3])
    entries, sequence, total = connection.execute(_NEXT_BLOCK, (begin, BLOCK)).fetchone()
    if entries < max(at_least, 1):
        return False
    connection.execute(
        "INSERT INTO seals (sequence, entries, total, chain) VALUES (?, ?, ?, ?)",
        (sequence, entries, total, chain(before, sequence, entries, total)),
    )
    return True


def seal_up_to(connection: SqlConnection, sequence: int) -> None:
    """Seal the blocks up to an entry that is to be removed: its number is then known to be used."""
    while connection.execute(_SEAL_OF, (sequence,)).fetchone()[0] is None and seal_step(
        connection, at_least=1
    ):
        pass


def alter(connection: SqlConnection, alterations: Iterable[Alteration]) -> None:
    """Add what retention or erasure alters to the seals, in the same transaction."""

    seal: int | None = 0

    def seal_of(alteration: Alteration) -> int | None:
        nonlocal seal
        if seal is not None and alteration.sequence > seal:
            seal = connection.execute(_SEAL_OF, (alteration.sequence,)).fetchone()[0]
        return seal

    ordered = sorted(alterations)
    for sequence, group in groupby(ordered, seal_of):
        if sequence is None:
            return
        block = list(group)
        removed = sum(each.after is None for each in block)
        changed = sum((each.after or 0) - (each.before or 0) for each in block)
        connection.execute(
            "UPDATE seals SET removed = removed + ?, changed = changed + ? WHERE sequence = ?",
            (removed, changed, sequence),
        )


def seals(connection: SqlConnection) -> Iterator[Seal]:
    """All seals, oldest first."""
    yield from map(Seal._make, connection.execute(f"{_SEALS} ORDER BY sequence"))
