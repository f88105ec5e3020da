"""What an erasure finds of a person, and keeps for the next one should it fail."""

from __future__ import annotations

from dataclasses import dataclass, field

from tollkeeper.engine.journal.entries import Entry


@dataclass(slots=True)
class PersonEntries:
    """A person's entries as they were: of each payment the creation and the last update, and of each
    event what is left, too, by its sequence number.

    Windows no longer count the payments `uncounted`, count what is left of those `counted`, and of the
    events `recounted`. With the `emails` this is what an erasure that was cut off leaves to the next.
    """

    emails: frozenset[str] = frozenset()
    first: dict[str, Entry] = field(default_factory=dict)
    last: dict[str, Entry] = field(default_factory=dict)
    events: dict[int, tuple[Entry, Entry]] = field(default_factory=dict)
    uncounted: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    recounted: set[int] = field(default_factory=set)
