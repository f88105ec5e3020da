"""Entries handed to the writer and not yet known to be on disk, as reads must see them."""

from __future__ import annotations

import asyncio

from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.writer import Append


class InFlight:
    """Used from the event loop only, so a read and the append that follows it see the same."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str], tuple[Entry, ...]] = {}
        self._keys: dict[tuple[int, str], list[asyncio.Future[None]]] = {}
        self._unsettled: dict[int, asyncio.Future[None]] = {}

    def add(self, append: Append) -> None:
        """Notes an append, until it is removed again."""
        entry = append.entry
        of = (entry.account, entry.id)
        before = self._entries.get(of)
        self._entries[of] = (entry,) if before is None else (*before, entry)
        self._unsettled[entry.sequence] = append.done
        if append.idempotency is not None:
            self._keys[entry.account, append.idempotency.key] = []

    def remove(self, append: Append) -> None:
        """Forgets an append that is on disk or lost."""
        entry = append.entry
        of = (entry.account, entry.id)
        entries = self._entries[of]
        del self._unsettled[entry.sequence]
        if len(entries) == 1:
            del self._entries[of]
        else:
            self._entries[of] = tuple(each for each in entries if each is not entry)
        if append.idempotency is not None:
            for waiting in self._keys.pop((entry.account, append.idempotency.key), ()):
                if not waiting.done():
                    waiting.set_result(None)

    def unsettled(self) -> list[asyncio.Future[None]]:
        """What becomes of each append that is neither on disk nor lost."""
        return list(self._unsettled.values())

    def of(self, account: int, record_id: str, *kinds: Kind) -> list[Entry]:
        """The entries with this id and one of the kinds, oldest first."""
        return [e for e in self._entries.get((account, record_id), ()) if e.kind in kinds]

    def begins(self, account: int, beginning: str) -> bool:
        """Whether an id of the account begins so."""
        return any(of == account and id_.startswith(beginning) for of, id_ in self._entries)

    def with_key(self, account: int, key: str) -> asyncio.Future[None] | None:
        """What to wait for until the key's first use is on disk or lost, None when there is none.

        It isn't the append's own future: who sent the first request may have stopped waiting.
        """
        waiting = self._keys.get((account, key))
        if waiting is None:
            return None
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(settled)
        return settled
