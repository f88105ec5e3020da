"""The configuration as of an earlier sequence number, folded from the journal's changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from heapq import merge
from itertools import chain, islice, takewhile

from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.damage import UNREADABLE, Damage
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.registry.changes import (
    AccountCreated,
    RecordedChange,
    SettingsChanged,
    decode_change,
)
from tollkeeper.engine.registry.settings import scaled_rates
from tollkeeper.engine.registry.state import Configuration, fold_changes

HELD = 8
"""The most states that are cached; none has a list's entries or other personal data."""
HELD_RATES = 64
"""The most changes of rates that are cached: an update reads those of its payment's time."""


class PastStates:
    """One account's configuration as of a sequence number.

    `owners(account)` are the accounts whose changes lead to it: itself, and of a test account its
    live one. `rates(changed)` are the rates that the settings changed at this sequence number have.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.at = lru_cache(HELD)(self._fold)
        self.rates = lru_cache(HELD_RATES)(self._rates)
        self.owners = cache(self._owners)

    def _fold(self, account: int, sequence: int) -> Configuration:
        """Fold from the cached state at a rounder number, so that neighbours share the work."""
        if sequence == 0:
            return Configuration()
        before = _rounder(sequence)
        entries = merge(*(self._entries(each, before, sequence) for each in self.owners(account)))
        return fold_changes(self.at(account, before), recorded_changes(entries))

    def _owners(self, account: int) -> frozenset[int]:
        return owners_of(account, recorded_changes(islice(self._entries(account), 1)))

    def _rates(self, changed: int) -> Mapping[tuple[str, str], int]:
        (recorded,) = recorded_changes(self._entries(None, changed - 1, changed))
        assert isinstance(recorded.change, SettingsChanged)
        return scaled_rates(recorded.change.settings)

    def _entries(
        self, account: int | None, after: int = 0, up_to: int | None = None
    ) -> Iterator[Entry]:
        batches = self._journal.replay(account, after=after, up_to=up_to, kinds=(Kind.CHANGE,))
        return chain.from_iterable(batches)


def configuration_at(connection: SqlConnection, sequence: int | None = None) -> Configuration:
    """The configuration of all accounts as of a sequence number, or now, folded from the beginning.

    Raises `Damaged` as `recorded_changes`.
    """
    entries = reads.changes(connection, 0)
    if sequence is not None:
        entries = takewhile(lambda entry: entry.sequence <= sequence, entries)
    return fold_changes(Configuration(), recorded_changes(entries))


def owners_of(account: int, changes: Iterable[RecordedChange]) -> frozenset[int]:
    """The accounts whose changes lead to this one's configuration; a test account's creation, which is
    among the `changes`, names its live one.
    """
    created = (each.change for each in changes if each.account == account)
    lives = (each.live for each in created if isinstance(each, AccountCreated))
    return frozenset({account, *(live for live in lives if live is not None)})


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
