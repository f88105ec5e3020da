"""Ids that are certainly unused, so that most appends need no query of the database.

Once a query has found no id with a beginning, all ids with it are those that were appended since.
Ids that the service makes begin with the time, so a query every few seconds is enough.
"""

from __future__ import annotations

from collections.abc import Callable

BEGINNING = 10
"""How many characters make a beginning: 4 seconds of a UUID of version 7."""
MAX_HELD = 50_000
"""How many ids and beginnings are held in memory."""


class UnusedIds:
    """`is_unused(account, beginning)` queries whether no id of the account begins so.

    It must see entries on disk and entries being written.
    """

    def __init__(self, is_unused: Callable[[int, str], bool]) -> None:
        self._is_unused = is_unused
        self._held = 0
        # By account and beginning: all its ids, None where the database has some.
        self._ids: dict[tuple[int, str], set[str] | None] = {}

    def has(self, account: int, record_id: str) -> bool:
        """Whether it is certain that the account has no entry with this id, of any kind."""
        beginning = (account, record_id[:BEGINNING])
        try:
            ids = self._ids[beginning]
        except KeyError:
            ids = set() if self._is_unused(*beginning) else None
            self._ids[beginning] = ids
            self._held += 1
            self._drop_oldest()
        return ids is not None and record_id not in ids

    def remove(self, account: int, record_id: str) -> None:
        """To be called before an entry with this id is appended."""
        ids = self._ids.get((account, record_id[:BEGINNING]))
        if ids is not None:
            ids.add(record_id)
            self._held += 1
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drops the oldest beginnings while too much is held."""
        while self._held > MAX_HELD:
            ids = self._ids.pop(next(iter(self._ids)))
            self._held -= 1 + len(ids or ())
