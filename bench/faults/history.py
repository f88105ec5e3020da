"""What clients asked and were told, and what the journal has: all that the checker knows.

It is kept as lines of JSON, so that a history in which something was found can be checked again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

NO_ANSWER = 0
"""The status of an attempt that nobody answered."""


@dataclass(frozen=True)
class Attempt:
    """One request to a node and its answer: seconds from the beginning of the run."""

    node: int
    begun: float
    ended: float
    status: int
    answer: Any


@dataclass(frozen=True)
class Operation:
    """What a client of an account wanted of a `subject` (an id, a value of a list, a person), with
    as many attempts as it took. `sent` is what its requests said.
    """

    kind: str
    account: str
    subject: str
    sent: Any
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class Line:
    """One entry of the journal, as SQL reads it: times in µs since 1970, texts of JSON decoded."""

    place: int
    account: int
    kind: int
    id: str
    time: int
    body: Any
    outcome: Any


@dataclass(frozen=True)
class Notice:
    """What a webhook was sent for an account: what it tells of, and the id that stays when it is sent
    again."""

    account: str
    kind: str
    subject: str
    delivery: str


class History(NamedTuple):
    """What clients asked, what the journal has, and what webhooks were sent."""

    operations: Sequence[Operation]
    journal: Sequence[Line]
    notices: Sequence[Notice]


def write(folder: Path, history: History) -> None:
    """Keeps a history in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in history._asdict().items():
        lines = (json.dumps(asdict(each)) for each in found)
        (folder / f"{name}.jsonl").write_text("\n".join(lines))


def read(folder: Path) -> History:
    """A history that was kept."""
    told, lines, notices = (
        [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        for name in History._fields
    )
    operations = [
        Operation(**{**each, "attempts": tuple(Attempt(**one) for one in each["attempts"])})
        for each in told
    ]
    return History(
        operations, [Line(**each) for each in lines], [Notice(**each) for each in notices]
    )
