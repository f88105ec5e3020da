"""Where an export keeps what: folders by table, account and day, and how far each account has come."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from shutil import rmtree
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from tollkeeper.engine.columns.files import placed_at_once
from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal.contract import JournalError

COLUMNS_FORMAT = 3
"""Of the tables, their columns and files; it grows whenever one of them means something else."""
PART_NUMBERS = 65_536
"""A file of a day has the payments of so many sequence numbers, from a multiple of it on."""
DayTable: TypeAlias = Literal["payments", "states", "labels"]
DAY_TABLES: tuple[DayTable, ...] = get_args(DayTable)
WholeTable: TypeAlias = Literal["windows", "lists", "changes"]
PROGRESS = "_progress"
"""A folder that readers of Parquet pass over, as its name begins so."""


class WrittenPart(Struct, frozen=True):
    """Payments that arrived on a day, of sequence numbers from `first` to before `beyond`.

    They were written as known at sequence number `up_to`. `removed` and `changed` are what
    retention and erasure had done in these numbers by then (journal/checksums.py), None where that
    is not yet told of all of them; these are known by the `amendment`, the last by then.
    """

    first: int
    beyond: int
    up_to: int
    payments: int
    altered: tuple[int, int] | None
    amendment: int = 0


class ExportProgress(Struct, frozen=True):
    """How far an account's export has come: whole up to `sequence`, under way up to `target`.

    `parts` are what was written, by their names (`part_name`).
    """

    format: int
    journal: str
    sequence: int = 0
    target: int = 0
    parts: dict[str, WrittenPart] = {}


_read_progress = msgspec.json.Decoder(ExportProgress).decode


def day_name(day: int) -> str:
    """Such as `2026-03-02`; `day` counts from 1970-01-01 in UTC."""
    return datetime.fromtimestamp(day * DAY // 1_000_000, UTC).date().isoformat()


def part_name(day: int, number: int) -> str:
    """Such as `2026-03-02/0000012`: names are in the order of their sequence numbers."""
    return f"{day_name(day)}/{number:07}"


def day_of(part: str) -> str:
    return part.partition("/")[0]


def day_number(part: str) -> int:
    return (date.fromisoformat(day_of(part)) - date(1970, 1, 1)).days


def table_folder(target: Path, table: DayTable | WholeTable, account: str) -> Path:
    return target / table / f"account={account}"


def part_file(target: Path, table: DayTable, account: str, part: str) -> Path:
    day, _, number = part.partition("/")
    return table_folder(target, table, account) / f"day={day}" / f"part-{number}.parquet"


def whole_file(target: Path, table: WholeTable, account: str) -> Path:
    return table_folder(target, table, account) / "data.parquet"


def exported_accounts(target: Path) -> list[str]:
    """The accounts that the folder has anything of."""
    names = {path.stem for path in (target / PROGRESS).glob("*.json")}
    folders = (path for path in target.glob("*/account=*") if path.is_dir())
    return sorted(names | {path.name.removeprefix("account=") for path in folders})


def read_progress(target: Path, account: str) -> ExportProgress | None:
    """Raises `JournalError` for what can't be read, or is of another version."""
    path = _progress_file(target, account)
    try:
        progress = _read_progress(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise JournalError(f"`{path}` can't be read: {error}") from error
    if progress.format != COLUMNS_FORMAT:
        raise JournalError(
            f"`{target}` has tables of version {progress.format}, this release writes version"
            f" {COLUMNS_FORMAT}: choose another folder"
        )
    return progress


def write_progress(target: Path, account: str, progress: ExportProgress) -> None:
    """Raises `OSError`."""
    path = _progress_file(target, account)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with placed_at_once(path) as unfinished:
        unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(progress)))


def forget_exported(target: Path, account: str) -> None:
    """Removes all that the folder has of an account."""
    for folder in target.glob(f"*/account={account}"):
        rmtree(folder)
    _progress_file(target, account).unlink(missing_ok=True)


def _progress_file(target: Path, account: str) -> Path:
    return target / PROGRESS / f"{account}.json"
