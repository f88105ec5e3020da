"""The entries that an erasure finds of a person; kept for the next attempt when it fails."""

from __future__ import annotations

from dataclasses import dataclass, field

from tollkeeper.engine.journal.entries import Entry


@dataclass(slots=True)
class PersonEntries:
    """A person's entries before their erasure: each payment's creation and last update, and each
    event, before and after, by its sequence number.

    `uncounted` are payments taken out of the windows, `counted` those counted again as erased, and
    `recounted` events counted as erased. `telling` are the ids of payments with the identifier, one
    of each address. With the `emails`, another attempt goes on from here; `by` requested it.
    """

    by: str
    emails: frozenset[str] = frozenset()
    telling: set[str] = field(default_factory=set)
    first: dict[str, Entry] = field(default_factory=dict)
    last: dict[str, Entry] = field(default_factory=dict)
    events: dict[int, tuple[Entry, Entry]] = field(default_factory=dict)
    uncounted: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    recounted: set[int] = field(default_factory=set)
