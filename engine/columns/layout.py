"""The layout of an export: folders by table, account and day, and each account's progress."""

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
"""The version of the format; it grows whenever the meaning of a table, column or file changes."""
PART_NUMBERS = 65_536
"""A file has the payments of this many sequence numbers, beginning at a multiple of it."""
DayTable: TypeAlias = Literal["payments", "states", "labels"]
DAY_TABLES: tuple[DayTable, ...] = get_args(DayTable)
WholeTable: TypeAlias = Literal["windows", "lists", "changes"]
PROGRESS = "_progress"
"""The folder of the progress files; Parquet readers ignore it, as its name begins with `_`."""


class WrittenPart(Struct, frozen=True):
    """Payments that arrived on a day, of sequence numbers from `first` to before `beyond`.

    They were written as of sequence number `up_to`. `altered` is the mark of what retention and
    erasure had altered by then (`days.alterations`), None where not all entries were sealed; for
    these, `amendment` is the number of the last amendment by then.
    """

    first: int
    beyond: int
    up_to: int
    payments: int
    altered: tuple[int, int] | None
    amendment: int = 0


class ExportProgress(Struct, frozen=True):
    """An account's progress: complete up to `sequence`; an export up to `target` has been begun.

    `parts` are the written parts by name (`part_name`).
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
    """The accounts that have data in the folder."""
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
    """Remove an account's data from the folder."""
    for folder in target.glob(f"*/account={account}"):
        rmtree(folder)
    _progress_file(target, account).unlink(missing_ok=True)


def _progress_file(target: Path, account: str) -> Path:
    return target / PROGRESS / f"{account}.json"
