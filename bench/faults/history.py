"""What clients sent and were answered, and what the journal holds: the checker's only input.

Stored as JSON lines, so that a history with findings can be checked again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

NO_ANSWER = 0
"""The status of an unanswered attempt."""


@dataclass(frozen=True)
class Attempt:
    """One request to a node and its answer; times are seconds from the beginning of the run."""

    node: int
    begun: float
    ended: float
    status: int
    answer: Any


@dataclass(frozen=True)
class Operation:
    """What a client of an account requested for a `subject` (an id, a value of a list, a person),
    with all attempts. `sent` is the content of its requests.
    """

    kind: str
    account: str
    subject: str
    sent: Any
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class Line:
    """One entry of the journal as SQL reads it: times in µs since 1970, JSON texts decoded."""

    place: int
    account: int
    kind: int
    id: str
    time: int
    body: Any
    outcome: Any


@dataclass(frozen=True)
class Notice:
    """A notice that a webhook received for an account: its subject, and the id that repetitions
    share.
    """

    account: str
    kind: str
    subject: str
    delivery: str


class History(NamedTuple):
    """What clients requested, what the journal holds, and what webhooks received."""

    operations: Sequence[Operation]
    journal: Sequence[Line]
    notices: Sequence[Notice]


def write(folder: Path, history: History) -> None:
    """Store a history in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in history._asdict().items():
        lines = (json.dumps(asdict(each)) for each in found)
        (folder / f"{name}.jsonl").write_text("\n".join(lines))


def read(folder: Path) -> History:
    """Read a stored history."""
    operations, lines, notices = (
        [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        for name in History._fields
    )
    operations = [
        Operation(**{**each, "attempts": tuple(Attempt(**one) for one in each["attempts"])})
        for each in operations
    ]
    return History(
        operations, [Line(**each) for each in lines], [Notice(**each) for each in notices]
    )
