"""Damage is found, named by its entry and file, and nothing is changed by looking."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tollkeeper.engine.backup.verify import verify
from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.tests.engine.backup.conftest import Fill


def change(folder: Path, statement: str) -> None:
    with closing(schema.connect(folder)) as connection:
        connection.execute(statement)


def last_payment(folder: Path) -> int:
    with closing(schema.connect_for_reading(folder)) as connection:
        return int(
            connection.execute("SELECT max(place) FROM journal WHERE kind = 1").fetchone()[0]
        )


def test_a_folder_as_it_was_written_has_no_fault(folder: Path, fill: Fill) -> None:
    fill(folder, 3)
    report = verify(folder)
    assert (report.faults, report.entries["payment"]) == ([], 3)
    assert report.sealed == report.entries.total()
    assert {path.name for path in report.files} >= {"tollkeeper.db", "alerts.db", "ages.db"}


def test_a_changed_entry_is_named(folder: Path, fill: Fill) -> None:
    fill(folder, 3)
    place = last_payment(folder)
    change(folder, f"UPDATE journal SET body = x'00ff' WHERE place = {place}")
    assert [fault.text for fault in verify(folder).faults] == [
        f"entry {place} (payment, account 1) is not as it was written: its checksum differs"
    ]


def test_an_entry_without_a_checksum_that_can_t_be_read_is_named(folder: Path, fill: Fill) -> None:
    fill(folder, 3)
    place = last_payment(folder)
    change(
        folder,
        f"UPDATE journal SET body = x'00ff', checksum = NULL WHERE place = {place}",
    )
    told = [fault.text for fault in verify(folder).faults]
    assert told[0].startswith(f"entry {place} (payment, account 1) can't be read: ")


def test_a_corrupt_page_is_found_and_what_can_be_read_is(folder: Path, fill: Fill) -> None:
    fill(folder, 300)
    path = folder / "tollkeeper.db"
    with closing(schema.connect_for_reading(folder)) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'journal' AND pagetype = 'leaf'"
        ).fetchall()
    page = pages[len(pages) // 2][0]
    content = bytearray(path.read_bytes())
    content[(page - 1) * schema.PAGE_BYTES : page * schema.PAGE_BYTES] = b"\xff" * schema.PAGE_BYTES
    path.write_bytes(content)
    report = verify(folder)
    told = "\n".join(fault.text for fault in report.faults)
    assert f"`{path}`" in told
    assert "can't be read: database disk image is malformed" in told
    assert 250 < report.entries["payment"] < 300


def test_a_folder_without_a_journal_is_refused(folder: Path) -> None:
    with pytest.raises(JournalError, match="there is no"):
        verify(folder)
