from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.side_file import SideFile, connect, create_file

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "notes.db"
    create_file(found)
    connection = connect(found, "FULL")
    connection.execute("CREATE TABLE notes (text TEXT UNIQUE)")
    connection.close()
    return found


@pytest.fixture
def file(path: Path) -> Iterator[SideFile]:
    opened = SideFile(path, "FULL")
    yield opened
    opened.close()


def notes(connection: sqlite3.Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM notes")]


def note(connection: sqlite3.Connection, *texts: str) -> None:
    connection.executemany("INSERT INTO notes VALUES (?)", [(text,) for text in texts])


async def test_what_was_written_is_read(file: SideFile) -> None:
    await file.write(lambda connection: note(connection, "first"))
    assert file.read(notes) == ["first"]


async def test_a_write_that_fails_leaves_nothing(file: SideFile) -> None:
    with pytest.raises(Unavailable, match=r"notes\.db` can't be used: UNIQUE"):
        await file.write(lambda connection: note(connection, "first", "first"))
    assert file.read(notes) == []


def test_a_reader_cannot_write(file: SideFile) -> None:
    with pytest.raises(Unavailable, match="readonly"):
        file.read(lambda connection: note(connection, "first"))


async def test_what_was_deleted_stands_in_no_file_once_the_log_is_empty(
    file: SideFile, path: Path
) -> None:
    await file.write(lambda connection: note(connection, "a very private text"))
    await file.write(lambda connection: connection.execute("DELETE FROM notes").rowcount)
    await file.empty_log()
    for each in path.parent.iterdir():
        assert b"private" not in each.read_bytes()


def test_only_the_owner_reads_the_file(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_was_closed_says_so_to_who_still_writes(path: Path) -> None:
    opened = SideFile(path, "FULL")
    opened.close()
    with pytest.raises(Unavailable, match="the journal was left"):
        await opened.write(lambda connection: note(connection, "late"))
