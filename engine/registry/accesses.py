"""Who asked for what tells of persons: gathered by key for a while, then an entry of the journal.

An entry for each request would cost the journal more than the payments that it tells of. One value
that somebody had shown in clear has an entry of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.registry.state import ApiKey

MAX_PATHS: Final = 100
"""How many different paths an entry names; all requests are counted."""
MAX_PATH: Final = 512
"""How many characters of a path are kept."""

AccessOf: TypeAlias = tuple[int, str]
"""An account's number, and the part of a key that may be shown."""


class DataAccess(Struct, frozen=True, omit_defaults=True):
    """The body of an entry of kind `ACCESS`: what was asked for with one key, the first time at
    `since` (µs); the entry's own time is the last.

    `paths` are as they were sent, without what was searched for. Where one value was shown, it is
    that of `field` of `payment`.
    """

    by: str
    since: int
    requests: int
    paths: tuple[str, ...] = ()
    payment: str | None = None
    field: str | None = None


@dataclass(slots=True)
class AccessTally:
    """What one key asked for since the last entry; times in µs."""

    since: int
    until: int
    requests: int = 0
    paths: set[str] = field(default_factory=set)

    def add(self, until: int, requests: int, paths: Iterable[str]) -> None:
        """Counts more requests, the last of them at `until`."""
        self.until = max(self.until, until)
        self.requests += requests
        for path in paths:
            if len(self.paths) < MAX_PATHS:
                self.paths.add(path)


@dataclass(slots=True)
class AccessLedger:
    """What was asked for and is not in the journal yet."""

    tallies: dict[AccessOf, AccessTally] = field(default_factory=dict)

    def note(self, key: ApiKey, path: str, now: int) -> None:
        """A request with `key`."""
        self.put((key.account, key.id), AccessTally(now, now, 1, {path[:MAX_PATH]}))

    def put(self, of: AccessOf, tally: AccessTally) -> None:
        """Counts a tally, also one that could not be written."""
        held = self.tallies.setdefault(of, tally)
        if held is not tally:
            held.since = min(held.since, tally.since)
            held.add(tally.until, tally.requests, tally.paths)

    def take(self) -> dict[AccessOf, AccessTally]:
        """All of it, to be written."""
        taken, self.tallies = self.tallies, {}
        return taken


encode_access = msgspec.json.Encoder().encode
decode_access = msgspec.json.Decoder(DataAccess).decode


def access_of(of: AccessOf, tally: AccessTally) -> DataAccess:
    """The body of the tally's entry."""
    return DataAccess(of[1], tally.since, tally.requests, tuple(sorted(tally.paths)))
