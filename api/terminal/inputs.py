"""Inputs of backtests, fits and suggestions: the program, labels, and the beginning of the period."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.offline.backtest.compare import Labels
from tollkeeper.engine.offline.backtest.stored import account_now
from tollkeeper.engine.offline.testing.files import library_of, load_file
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.versions import find_version
from tollkeeper.grammar.program import EventType, Program, Rule, Scorecard

_AGO = re.compile(r"([0-9]{1,6})([mhd])")
_UNITS = {"m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


class InputError(Exception):
    """An input that can't be read; the message is one line."""


class _LabelledPayment(Struct):
    id: str
    label: str | int


class CandidateFiles(NamedTuple):
    """The candidate, and the event types declared near it."""

    program: Rule | Scorecard
    events: Mapping[str, EventType | None]


def read_candidate(given: str, account: str | None, source: JournalSource) -> CandidateFiles:
    """Read the program from a file or, with an account, from a stored version `NAME@VERSION`.

    Raises `InputError`, `BrokenFileError`; `NotFound` and `JournalError` for a stored version.
    """
    name, _, version = given.rpartition("@")
    program: Program
    events: Mapping[str, EventType | None] = {}
    if name and account and version.isdecimal():
        stored = find_version(account_now(source, account), "rule", name, int(version))
        program = decode_program(stored.program)
    else:
        path = Path(given)
        if not path.is_file():
            raise InputError(f"there is no file `{given}`")
        file = load_file(path, library_of([path.parent]))
        program, events = file.program, file.events
    if not isinstance(program, Rule | Scorecard):
        raise InputError("a backtest takes a rule or a scorecard")
    return CandidateFiles(program, events)


_labelled = msgspec.json.Decoder(_LabelledPayment).decode


def read_labels(path: Path) -> Labels:
    """Read labels by payment id, from CSV with the columns `id` and `label` or from JSON lines of
    the same.

    The later of two labels for a payment counts. Raises `InputError`.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix == ".csv":
                rows = csv.DictReader(file)
                if not {"id", "label"} <= set(rows.fieldnames or ()):
                    raise InputError(f"{path}: a label file has the columns `id` and `label`")
                return {row["id"]: row["label"] for row in rows if row["label"]}
            read = (_line(path, number, line) for number, line in enumerate(file, start=1))
            return {each.id: str(each.label) for each in read if each is not None}
    except UnicodeDecodeError:
        place = f"{path}:{_first_foreign_line(path)}"
        raise InputError(f"{place}: not UTF-8: save the file in that encoding") from None
    except (OSError, csv.Error) as error:
        raise InputError(f"{path} can't be read: {error}") from None


def _first_foreign_line(path: Path) -> int:
    """The number of the first line that is not UTF-8."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def _line(path: Path, number: int, line: str) -> _LabelledPayment | None:
    if not line.strip():
        return None
    try:
        return _labelled(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"{path}:{number}: {error}") from None


def read_since(text: str, now: int) -> int:
    """Read `30d`, `12h`, `90m` before `now`, a day or an instant, as µs. Raises `InputError`."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(0, now - int(ago[1]) * _UNITS[ago[2]])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = f"`{text}` is neither a time ago such as `30d` nor a day such as `2026-03-01`"
        raise InputError(message) from None
    return to_microseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
