"""Run a saved file's tests with `toll`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tollkeeper.api.terminal.subcommand import toll


class MissedPart(Struct, frozen=True):
    """A part that no test covered; lines count from 1."""

    line: int
    missed: str
    text: str
    name: str = msgspec.field(name="in")


class TestedFile(Struct, frozen=True):
    """The coverage of one file."""

    __test__ = False

    file: str
    percent: float
    missed: tuple[MissedPart, ...]


class Outcome(Struct, frozen=True):
    """The result of one test; `text` says why it failed."""

    file: str
    line: int | None
    title: str
    outcome: str
    text: str


class FolderCoverage(Struct, frozen=True):
    files: tuple[TestedFile, ...]


class LastRun(Struct, frozen=True):
    """The last run of a file's tests; `tested` is the text that was tested."""

    tests: int
    results: tuple[Outcome, ...]
    coverage: FolderCoverage
    tested: str = ""

    def outcomes(self) -> Mapping[str, Outcome]:
        """The results by title."""
        return {each.title: each for each in self.results}

    def after(self, earlier: LastRun | None) -> LastRun:
        """Return an earlier run of the same text, updated with this run's results."""
        if earlier is None or earlier.tested != self.tested:
            return self
        again = self.outcomes()
        others = [each for each in earlier.results if each.title not in again]
        return msgspec.structs.replace(earlier, results=(*others, *self.results))

    def of_file(self, path: Path) -> TestedFile | None:
        found = (each for each in self.coverage.files if Path(each.file).name == path.name)
        return next(found, None)


async def run_file(path: Path, only: str | None) -> tuple[LastRun | None, Any]:
    """Run a file's tests, or the one with a title; if they couldn't run, return None and the
    reason.
    """
    chosen = () if only is None else ("--only", only)
    arguments = ("test", "--json", *chosen, "--", path.name)
    _, out, err = await toll(*arguments, folder=path.parent)
    try:
        run = msgspec.json.decode(out, type=LastRun)
    except msgspec.MsgspecError:
        return None, err or out
    text = path.read_bytes().decode("utf-8", "replace")
    return msgspec.structs.replace(run, tested=text), err
