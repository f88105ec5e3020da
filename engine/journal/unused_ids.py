"""Ids that are certainly unused, so that most appends need no query of the database.

Ids are looked up by prefix. Once a query has found no id with a prefix, the used ids with that
prefix are those that were appended since. Ids that the service makes begin with the time, so that
one query every few seconds is enough for them.
"""

from __future__ import annotations

PREFIX_LENGTH = 10
"""The characters of an id that make its prefix: 4 seconds of a UUID of version 7 share one."""
MAX_IDS = 50_000
"""The most ids and prefixes that are held in memory."""


class UnusedIds:
    """Which ids are unused, of the prefixes that were looked up. Used from the event loop only."""

    def __init__(self) -> None:
        # How many prefixes and ids `_used` has.
        self._size = 0
        # By account and prefix: the ids appended since the database was found to have none with the
        # prefix; None where it has some. The prefix that was looked up first comes first.
        self._used: dict[tuple[int, str], set[str] | None] = {}
        # By account and prefix: the ids appended since a look-up began that has not ended.
        self._appended: dict[tuple[int, str], set[str]] = {}

    def is_unused(self, account: int, record_id: str) -> bool | None:
        """Whether it is certain that the account has no entry with this id, of any kind.

        None when the id's prefix has to be looked up first.
        """
        try:
            used = self._used[account, record_id[:PREFIX_LENGTH]]
        except KeyError:
            return None
        return used is not None and record_id not in used

    def begin_look_up(self, account: int, prefix: str) -> None:
        """To be called before the database is asked whether it has ids with this prefix."""
        self._appended.setdefault((account, prefix), set())

    def end_look_up(self, account: int, prefix: str, *, are_unused: bool) -> None:
        """Take the answer: whether no entry with the prefix was on disk or being written when the
        database was asked.
        """
        appended = self._appended.pop((account, prefix), None)
        if appended is not None:
            self._used[account, prefix] = appended if are_unused else None
            self._size += 1 + (len(appended) if are_unused else 0)
            self._drop_oldest()

    def add_used(self, account: int, record_id: str) -> None:
        """To be called when an entry with this id is appended."""
        prefix = (account, record_id[:PREFIX_LENGTH])
        if self._appended and prefix in self._appended:
            self._appended[prefix].add(record_id)
        used = self._used.get(prefix)
        if used is not None:
            used.add(record_id)
            self._size += 1
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while self._size > MAX_IDS:
            used = self._used.pop(next(iter(self._used)))
            self._size -= 1 + len(used or ())
