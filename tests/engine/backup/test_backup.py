"""A backup is whole, of one moment, cheap to repeat, and what is restored is what was there."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import shutil
import sqlite3
import struct
import threading
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.backup import backup as backup_module
from tollkeeper.engine.backup.backup import MANIFEST, PENDING, back_up, read_manifest, settle
from tollkeeper.engine.backup.pages import PAGE_BLOCK, changes_of, finish_copy, prepare_copy
from tollkeeper.engine.backup.restore import restore
from tollkeeper.engine.backup.verify import verify
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.tests.api.http.service import make_shop
from tollkeeper.tests.engine.backup.conftest import Fill


def payments(folder: Path) -> list[str]:
    with closing(schema.connect_for_reading(folder)) as connection:
        return [
            id_
            for (id_,) in connection.execute("SELECT id FROM journal WHERE kind = 1 ORDER BY place")
        ]


def identity(folder: Path) -> str:
    with closing(schema.connect_for_reading(folder)) as connection:
        return reads.identity(connection)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def test_what_is_restored_holds_all_that_was_backed_up_and_goes_on(
    folder: Path, target: Path, tmp_path: Path, fill: Fill
) -> None:
    made = fill(folder, 5)
    back_up(folder, target)
    later = fill(folder, 2)
    restore(target, tmp_path / "restored")
    assert payments(tmp_path / "restored") == made
    assert verify(tmp_path / "restored").faults == []
    more = fill(tmp_path / "restored", 3)
    assert payments(tmp_path / "restored") == made + more
    assert payments(folder) == made + later
    assert identity(tmp_path / "restored") != identity(folder)


def test_a_backup_again_writes_only_what_has_changed(
    folder: Path, target: Path, fill: Fill
) -> None:
    fill(folder, 200)
    first = back_up(folder, target)
    assert first.written == first.bytes
    assert back_up(folder, target).written == 0
    made = fill(folder, 1)
    again = back_up(folder, target)
    assert 0 < again.written < first.bytes / 2
    assert made[0] in payments(target)
    assert verify(target).faults == []


def test_a_backup_beside_a_writer_is_of_one_moment(folder: Path, target: Path, fill: Fill) -> None:
    """Transactions that each move one unit between two rows: in no backup one is lost or doubled."""
    fill(folder, 1)
    path = folder / "accounts.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE held (id INTEGER PRIMARY KEY, units INTEGER, filler BLOB)")
        connection.executemany(
            "INSERT INTO held VALUES (?, 10, zeroblob(3000))", [(n,) for n in range(500)]
        )
        connection.commit()
    over = threading.Event()

    def move() -> None:
        chance = random.Random(1)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
            connection.execute("PRAGMA wal_autocheckpoint = 8")
            while not over.is_set():
                connection.execute("BEGIN IMMEDIATE")
                for units in (-1, 1):
                    connection.execute(
                        "UPDATE held SET units = units + ? WHERE id = ?",
                        (units, chance.randrange(500)),
                    )
                connection.execute("COMMIT")

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for _ in range(5):
            back_up(folder, target)
            with closing(sqlite3.connect(target / "accounts.db")) as connection:
                assert connection.execute("SELECT sum(units) FROM held").fetchone() == (5000,)
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        over.set()
        mover.join()


def test_a_backup_that_was_cut_off_leaves_the_one_before(
    folder: Path, target: Path, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fill(folder, 3)
    before = back_up(folder, target)
    fill(folder, 3)

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(backup_module, "_write", cut)
        with pytest.raises(KeyboardInterrupt):
            back_up(folder, target)
    settle(target)
    assert read_manifest(target) == before
    assert payments(target) == made
    assert verify(target).faults == []


def test_a_backup_that_was_cut_off_while_it_was_put_in_place_is_finished_by_the_next_command(
    folder: Path, target: Path, tmp_path: Path, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, 3)
    back_up(folder, target)
    made = fill(folder, 3)
    finished: list[str] = []

    def cut(path: Path, size: int) -> None:
        if finished:
            raise KeyboardInterrupt
        finish_copy(path, size)
        finished.append(path.name)

    with monkeypatch.context() as patched:
        patched.setattr(backup_module, "finish_copy", cut)
        with pytest.raises(KeyboardInterrupt):
            back_up(folder, target)
    restore(target, tmp_path / "restored")
    assert set(made) < set(payments(tmp_path / "restored"))
    assert verify(tmp_path / "restored").faults == []


blocks = st.lists(st.sampled_from([b"\0", b"\1", b"\2"]), max_size=6)


@given(blocks, blocks, st.integers(0, PAGE_BLOCK - 1))
def test_a_copy_always_becomes_its_source(
    tmp_path_factory: pytest.TempPathFactory, old: list[bytes], new: list[bytes], extra: int
) -> None:
    target = tmp_path_factory.mktemp("copy") / "file"
    source = b"".join(part * PAGE_BLOCK for part in new) + b"x" * extra
    target.write_bytes(b"".join(part * PAGE_BLOCK for part in old))
    copy = prepare_copy(BytesIO(source), len(source), target, lambda _read: None)
    for _ in range(2):
        finish_copy(target, copy.bytes)
        assert target.read_bytes() == source


def test_a_damaged_backup_is_not_restored(
    folder: Path, target: Path, tmp_path: Path, fill: Fill
) -> None:
    fill(folder, 3)
    back_up(folder, target)
    path = target / "tollkeeper.db"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(JournalError, match="is not as it was backed up"):
        restore(target, tmp_path / "restored")
    assert "is not as it was backed up" in verify(target).faults[0].text


@pytest.mark.parametrize("listed", [MANIFEST, PENDING])
@pytest.mark.parametrize("outside", ["../outside.db", "{}/outside.db", "part/../../outside.db"])
def test_a_backup_that_was_tampered_with_writes_nothing_outside_its_folder(
    folder: Path, target: Path, tmp_path: Path, fill: Fill, listed: str, outside: str
) -> None:
    fill(folder, 1)
    back_up(folder, target)
    name = outside.format(tmp_path)
    path = target / name
    (target / "part").mkdir()
    path.write_bytes(b"as it was")
    changes_of(path).write_bytes(struct.pack("<QI", 0, 3) + b"bad")
    manifest = json.loads((target / MANIFEST).read_bytes())
    manifest["files"][name] = {
        "bytes": 9,
        "sha256": hashlib.sha256(b"as it was").hexdigest(),
        "written": 3,
    }
    (target / listed).write_text(json.dumps(manifest))
    with pytest.raises(JournalError, match="can't be read"):
        restore(target, tmp_path / "restored")
    assert path.read_bytes() == b"as it was"


def test_an_interrupted_backup_is_not_finished_through_a_link(
    folder: Path, target: Path, tmp_path: Path, fill: Fill
) -> None:
    fill(folder, 1)
    back_up(folder, target)
    outside = tmp_path / "outside"
    (target / "tollkeeper.db").rename(outside)
    (target / "tollkeeper.db").symlink_to(outside)
    before = outside.read_bytes()
    changes_of(target / "tollkeeper.db").write_bytes(struct.pack("<QI", 0, 3) + b"bad")
    (target / MANIFEST).rename(target / PENDING)
    with pytest.raises(JournalError, match="can't be written"):
        restore(target, tmp_path / "restored")
    assert outside.read_bytes() == before


def test_nothing_is_restored_over_data(folder: Path, target: Path, fill: Fill) -> None:
    fill(folder, 1)
    back_up(folder, target)
    with pytest.raises(JournalError, match="restore into an empty folder"):
        restore(target, folder)


def test_no_backup_goes_over_another_journals_or_over_something_else(
    folder: Path, target: Path, tmp_path: Path, fill: Fill
) -> None:
    fill(folder, 1)
    asyncio.run(make_shop(tmp_path / "other"))
    back_up(folder, target)
    with pytest.raises(JournalError, match="is a backup of another journal"):
        back_up(tmp_path / "other", target)
    with pytest.raises(JournalError, match="is no backup"):
        back_up(folder, tmp_path / "other")


def test_a_folder_that_is_no_backup_is_not_restored(target: Path, tmp_path: Path) -> None:
    target.mkdir()
    with pytest.raises(JournalError, match="is no backup"):
        restore(target, tmp_path / "restored")
    (target / MANIFEST).write_text("{}")
    with pytest.raises(JournalError, match="can't be read"):
        restore(target, tmp_path / "restored")


def test_files_of_two_journals_are_told_apart(folder: Path, tmp_path: Path, fill: Fill) -> None:
    fill(folder, 1)
    asyncio.run(make_shop(tmp_path / "other"))
    shutil.copy(tmp_path / "other" / "alerts.db", folder / "alerts.db")
    assert [fault.text for fault in verify(folder).faults] == [
        f"`{folder / 'alerts.db'}` belongs to another journal"
    ]
    with pytest.raises(JournalError, match=r"alerts.db` belongs to another journal: restore"):
        fill(folder, 1)


def test_an_older_journal_beside_newer_alerts_is_refused(
    folder: Path, tmp_path: Path, fill: Fill
) -> None:
    fill(folder, 1)
    shutil.copy(folder / "tollkeeper.db", tmp_path / "older.db")
    fill(folder, 5)
    with closing(sqlite3.connect(folder / "alerts.db")) as connection, connection:
        # As an alert of the last payment leaves it.
        connection.execute("UPDATE noted SET place = ?", (len(payments(folder)) + 3,))
    shutil.copy(tmp_path / "older.db", folder / "tollkeeper.db")
    with pytest.raises(JournalError, match="it is an older copy, or one without its `-wal` file"):
        fill(folder, 1)


def test_first_seen_times_of_another_journal_are_made_again(
    folder: Path, tmp_path: Path, fill: Fill
) -> None:
    fill(folder, 1)
    asyncio.run(make_shop(tmp_path / "other"))
    shutil.copy(tmp_path / "other" / "ages.db", folder / "ages.db")
    fill(folder, 1)
    assert verify(folder).faults == []
