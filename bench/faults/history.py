"""What clients asked and were told, and what the journal has: all that the checker knows.

It is kept as lines of JSON, so that a history in which something was found can be checked again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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


def write(folder: Path, operations: Sequence[Operation], journal: Sequence[Line]) -> None:
    """Keeps a history in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in (("operations", operations), ("journal", journal)):
        lines = (json.dumps(asdict(each)) for each in found)
        (folder / f"{name}.jsonl").write_text("\n".join(lines))


def read(folder: Path) -> tuple[list[Operation], list[Line]]:
    """A history that was kept."""
    told = [json.loads(line) for line in (folder / "operations.jsonl").read_text().splitlines()]
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    operations = [
        Operation(**{**each, "attempts": tuple(Attempt(**one) for one in each["attempts"])})
        for each in told
    ]
    return operations, [Line(**each) for each in lines]
