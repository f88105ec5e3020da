"""Ids that nobody can have used yet, known without asking the database.

All ids with one beginning are known once a query has found none with it and every append since was
noted. Ids that the service makes begin with the time, so a query every few seconds is enough.
"""

from __future__ import annotations

from collections.abc import Callable

BEGINNING = 10
"""How many characters make a beginning: 4 seconds of a UUID of version 7."""
MOST = 50_000
"""How many ids and beginnings are held."""


class Novelty:
    """`is_unused(account, beginning)` tells whether no id of the account, written or being written,
    begins so.
    """

    def __init__(self, is_unused: Callable[[int, str], bool]) -> None:
        self._is_unused = is_unused
        self._held = 0
        # By account and beginning: the ids, None where some may be unknown.
        self._known: dict[tuple[int, str], set[str] | None] = {}

    def is_new(self, account: int, record_id: str) -> bool:
        """Whether it is certain that the account never used the id, for an entry of any kind."""
        beginning = (account, record_id[:BEGINNING])
        try:
            known = self._known[beginning]
        except KeyError:
            known = set() if self._is_unused(*beginning) else None
            self._known[beginning] = known
            self._held += 1
            self._forget()
        return known is not None and record_id not in known

    def note(self, account: int, record_id: str) -> None:
        """An entry with this id is about to be appended."""
        known = self._known.get((account, record_id[:BEGINNING]))
        if known is not None:
            known.add(record_id)
            self._held += 1
            self._forget()

    def _forget(self) -> None:
        """Lets the oldest beginnings go when too much is held."""
        while self._held > MOST:
            gone = self._known.pop(next(iter(self._known)))
            self._held -= 1 + len(gone or ())
