"""Import a whole file of entries: all of it, or nothing and a list of its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.entries import ListEntry

_BATCH = 1000
MAX_REPORTED = 100


class BadEntry(NamedTuple):
    """What is wrong with one entry of a file; `place` is its line or network."""

    place: str
    message: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    """`bad` are the first of the `bad_count` entries with errors; with any, nothing may be kept."""

    count: int
    bad: tuple[BadEntry, ...]
    bad_count: int


def import_entries(
    found: Iterable[ListEntry | BadEntry], stage: Callable[[Sequence[ListEntry]], None]
) -> ImportResult:
    """Pass the entries to `stage` in batches; after a bad one, only collect further bad ones."""
    batch: list[ListEntry] = []
    bad: list[BadEntry] = []
    count = bad_count = 0
    for entry in found:
        if isinstance(entry, BadEntry):
            bad_count += 1
            if len(bad) < MAX_REPORTED:
                bad.append(entry)
        elif not bad_count:
            count += 1
            batch.append(entry)
            if len(batch) == _BATCH:
                stage(batch)
                batch = []
    if batch and not bad_count:
        stage(batch)
    return ImportResult(count, tuple(bad), bad_count)


def bad_entry(place: str, violations: Iterable[Violation]) -> BadEntry:
    """The violations of one entry as one line, by the columns' names."""
    words = (f"`{bad.field.rpartition('.')[2]}`: {bad.message}" for bad in violations)
    return BadEntry(place, "; ".join(words))
