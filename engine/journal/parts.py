"""What the journal keeps of lists beside their present entries: two parts of its contract.

All of it blocks, and is for other threads than the event loop's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tollkeeper.engine.journal.entries import ListEntry


class Past(Protocol):
    """Lists as they were."""

    def found_at(
        self, account: int, list_name: str, sequence: int, values: Sequence[str]
    ) -> list[ListEntry]:
        """A list's entries of these values, a few hundred at most, as a payment at `sequence` met
        them.

        As far back as the account keeps its history.
        """


class Staged(Protocol):
    """Contents that are filled beside a list's own, to be swapped in."""

    def staged_count(self, account: int, list_name: str, content: int) -> int | None:
        """How many entries are staged for the list under `content`; None when nothing is."""

    def staged(self, content: int) -> Iterator[ListEntry]:
        """The entries of a staged content, ordered by value."""

    def discard_abandoned(self) -> None:
        """Takes away what killed imports left behind.

        While an import runs nothing is: all that is staged may be its own.
        """
