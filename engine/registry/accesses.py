"""Who read personal data: requests are tallied by key for a few seconds, then put into the journal.

An entry for each request would cost the journal more than the payments themselves. Unmasking a
single value has an entry of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.registry.state import ApiKey

MAX_PATHS: Final = 100
"""The most different paths in one entry; requests beyond them are still counted."""
MAX_PATH: Final = 512
"""The most characters kept of a path."""

AccessOf: TypeAlias = tuple[int, str]
"""An account's number and the public part of a key."""


class DataAccess(Struct, frozen=True, omit_defaults=True):
    """The body of an entry of kind `ACCESS`: the requests of one key from `since` (µs) to the
    entry's own time.

    `paths` are the requests' paths without their queries. For the unmasking of one value, `payment`
    and `field` name it.
    """

    by: str
    since: int
    requests: int
    paths: tuple[str, ...] = ()
    payment: str | None = None
    field: str | None = None


@dataclass(slots=True)
class AccessTally:
    """The requests of one key since its last entry; times in µs."""

    since: int
    until: int
    requests: int = 0
    paths: set[str] = field(default_factory=set)

    def add(self, until: int, requests: int, paths: Iterable[str]) -> None:
        """Add requests, the last of them at `until`."""
        self.until = max(self.until, until)
        self.requests += requests
        for path in paths:
            if len(self.paths) < MAX_PATHS:
                self.paths.add(path)


@dataclass(slots=True)
class AccessLedger:
    """The tallies that are not in the journal yet."""

    tallies: dict[AccessOf, AccessTally] = field(default_factory=dict)

    def note(self, key: ApiKey, path: str, now: int) -> None:
        """Count a request with `key`."""
        self.put((key.account, key.id), AccessTally(now, now, 1, {path[:MAX_PATH]}))

    def put(self, reader: AccessOf, tally: AccessTally) -> None:
        """Add a tally, such as one that could not be written."""
        held = self.tallies.setdefault(reader, tally)
        if held is not tally:
            held.since = min(held.since, tally.since)
            held.add(tally.until, tally.requests, tally.paths)

    def take(self) -> dict[AccessOf, AccessTally]:
        """Remove and return all tallies, to be written."""
        taken, self.tallies = self.tallies, {}
        return taken


encode_access = msgspec.json.Encoder().encode
decode_access = msgspec.json.Decoder(DataAccess).decode


def access_of(reader: AccessOf, tally: AccessTally) -> DataAccess:
    """The body of the tally's entry."""
    return DataAccess(reader[1], tally.since, tally.requests, tuple(sorted(tally.paths)))
