"""The configuration as of an earlier sequence number, folded from the journal's changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from tollkeeper.engine.journal.damage import UNREADABLE, Damage
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.registry.changes import (
    AccountSettings,
    RecordedChange,
    SettingsChanged,
    decode_change,
)
from tollkeeper.engine.registry.state import Configuration, fold_changes

HELD = 8
"""The most states that are cached; none has a list's entries or other personal data."""


class PastStates:
    """One account's configuration as of a sequence number.

    `settings(account, up_to)` are all settings that it had up to a sequence number, each with the
    number from which it held.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.at = lru_cache(HELD)(self._fold)
        self.settings = lru_cache(HELD)(self._settings)

    def _fold(self, account: int, sequence: int) -> Configuration:
        """Fold from the cached state at a rounder number, so that neighbours share the work."""
        if sequence == 0:
            return Configuration()
        before = _rounder(sequence)
        batches = self._journal.replay(account, after=before, up_to=sequence, kinds=(Kind.CHANGE,))
        changes = recorded_changes(entry for batch in batches for entry in batch)
        return fold_changes(self.at(account, before), changes)

    def _settings(self, account: int, up_to: int) -> list[tuple[int, AccountSettings]]:
        batches = self._journal.replay(account, up_to=up_to, kinds=(Kind.CHANGE,))
        changes = recorded_changes(entry for batch in batches for entry in batch)
        return [
            (each.sequence, each.change.settings)
            for each in changes
            if isinstance(each.change, SettingsChanged)
        ]


def recorded_changes(entries: Iterable[Entry]) -> Iterator[RecordedChange]:
    """The changes in entries of kind `change`.

    Raises `Damaged` for one that can't be read, whatever the service's policy for damaged entries:
    without it a revoked key might be valid again.
    """
    for entry in entries:
        try:
            change = decode_change(entry)
        except UNREADABLE as error:
            Damage().meet(entry, error)
        else:
            yield change


def _rounder(sequence: int) -> int:
    """The number with its last nonzero base-256 digit set to 0: 0x12300 for 0x12345."""
    digit = 0xFF
    while not sequence & digit:
        digit <<= 8
    return sequence & ~digit
