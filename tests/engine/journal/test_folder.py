"""A data folder: one process at a time, for its owner alone, and never a file that isn't ours."""

from __future__ import annotations

import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest

from tollkeeper.engine.journal import lock as folder_lock
from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.contract import JournalError, Locked
from tollkeeper.engine.journal.lock import holder, lock
from tollkeeper.engine.journal.sqlite import open_journal

pytestmark = pytest.mark.anyio

HOLD = """
import sys, time
from pathlib import Path
from tollkeeper.engine.journal.lock import lock
with lock(Path(sys.argv[1]), "serve"):
    print("held", flush=True)
    time.sleep(60)
"""


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def other_process(folder):
    """A process that holds the folder."""
    with subprocess.Popen([sys.executable, "-c", HOLD, folder], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


async def test_a_second_service_is_refused_and_told_who_holds_the_folder(folder, other_process):
    with pytest.raises(Locked) as refused:
        async with open_journal(folder, "serve"):
            pass
    assert str(refused.value) == (
        f"the folder `{folder}` is in use by `toll serve`, process {other_process.pid}"
    )
    assert holder(folder) == "serve"


async def test_a_second_service_is_refused_though_the_lock_file_was_deleted(folder, other_process):
    (folder / "tollkeeper.lock").unlink()
    with pytest.raises(Locked, match="is in use by `toll serve`"):
        async with open_journal(folder, "serve"):
            pass
    assert holder(folder) == "serve"


@pytest.mark.parametrize("is_empty", [False, True])
async def test_a_journal_that_is_gone_from_a_folder_in_use_is_not_begun_anew(
    folder, make, is_empty
):
    async with open_journal(folder, "serve") as journal:
        await journal.append(make(1))
    (folder / "alerts.db").write_bytes(b"something")
    (folder / "tollkeeper.db").unlink()
    if is_empty:
        (folder / "tollkeeper.db").touch()
    with pytest.raises(JournalError) as refused:
        async with open_journal(folder, "serve"):
            pass
    state = "is empty" if is_empty else "is missing"
    assert str(refused.value).startswith(f"`{folder / 'tollkeeper.db'}` {state}, but `alerts.db`")


async def test_a_killed_process_leaves_nothing_held(folder, other_process):
    other_process.send_signal(signal.SIGKILL)
    other_process.wait()
    assert holder(folder) is None
    async with open_journal(folder, "serve"):
        assert holder(folder) == "serve"
    assert holder(folder) is None


def test_a_command_waits_for_another_to_finish(folder, other_process):
    other_process.kill()
    with lock(folder, "publish", patience_s=30):
        assert holder(folder) == "publish"


async def test_a_service_that_starts_beside_a_command_waits_for_its_end(folder, monkeypatch):
    hold = HOLD.replace("serve", "command")
    with subprocess.Popen([sys.executable, "-c", hold, folder], stdout=subprocess.PIPE) as command:
        assert command.stdout.readline() == b"held\n"
        read = folder_lock._read_holder

        def end_when_met(held):
            found = read(held)
            command.kill()
            command.wait()
            return found

        monkeypatch.setattr(folder_lock, "_read_holder", end_when_met)
        async with open_journal(folder, "serve", patience_s=0.0):
            assert holder(folder) == "serve"


def test_nobody_holds_a_folder_that_is_not_there(folder):
    assert holder(folder) is None


async def test_only_the_owner_may_look_into_the_folder(folder, make):
    async with open_journal(folder, "serve") as journal:
        await journal.append(make(1))
        assert permissions(folder) == 0o700
        names = {path.name: permissions(path) for path in folder.iterdir()}
    assert {"tollkeeper.db", "tollkeeper.db-wal", "tollkeeper.lock"} <= names.keys()
    assert set(names.values()) == {0o600}


async def test_closing_leaves_one_file_with_everything_in_it(folder, make):
    async with open_journal(folder, "serve") as journal:
        await journal.append(make(1))
    assert sorted(path.name for path in folder.iterdir()) == ["tollkeeper.db", "tollkeeper.lock"]


async def test_preparing_a_folder_again_changes_nothing(folder, make):
    async with open_journal(folder, "serve") as journal:
        await journal.append(make(1))
    before = (folder / "tollkeeper.db").read_bytes()
    async with open_journal(folder, "serve") as journal:
        assert journal.count() == 1
    assert (folder / "tollkeeper.db").read_bytes() == before


def test_the_tables_are_these(folder, snapshot):
    schema.prepare(folder)
    with closing(sqlite3.connect(folder / "tollkeeper.db")) as connection:
        statements = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE '%sqlite%'"
            " ORDER BY tbl_name, type DESC, name"
        )
        assert "\n\n".join(sql for (sql,) in statements) == snapshot


def test_every_migration_has_its_number_and_the_newest_is_known(folder):
    schema.prepare(folder)
    with closing(schema.connect_for_reading(folder)) as connection:
        names = connection.execute("SELECT name FROM _sqlite_migrations").fetchall()
    assert sorted(int(name) for (name,) in names) == [*range(1, schema.NEWEST + 1)]


def test_tables_of_a_newer_version_are_refused(folder):
    schema.prepare(folder)
    with closing(schema.connect(folder)) as connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES ('tollkeeper', '99', '')"
        )
    with pytest.raises(JournalError) as refused:
        schema.prepare(folder)
    assert str(refused.value) == (
        f"`{folder / 'tollkeeper.db'}` was written by a newer version: its tables are at 99,"
        f" this one knows {schema.NEWEST}"
    )


def test_a_command_newer_than_the_running_service_is_refused(folder, monkeypatch):
    schema.prepare(folder)
    schema.require_current(folder)
    with closing(schema.connect(folder)) as connection:
        connection.execute("DELETE FROM _sqlite_migrations WHERE name = '4'")
    with pytest.raises(JournalError, match="is older than this command: restart it first"):
        schema.require_current(folder)


def test_a_command_on_a_folder_without_data_is_told_how_to_name_one_and_makes_none(folder):
    with pytest.raises(JournalError, match=r"no service's data in `.*`: say where with --data"):
        schema.require_current(folder)
    assert not folder.exists()


def test_another_programs_database_is_refused_and_left_as_it_was(folder):
    folder.mkdir()
    with closing(sqlite3.connect(folder / "tollkeeper.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = (folder / "tollkeeper.db").read_bytes()
    with pytest.raises(JournalError, match="is not a Tollkeeper database"):
        schema.prepare(folder)
    assert (folder / "tollkeeper.db").read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database" * 100, bytes(range(256)) * 64])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(folder, content):
    folder.mkdir()
    (folder / "tollkeeper.db").write_bytes(content)
    with pytest.raises(JournalError, match=r"cannot open .* file is not a database"):
        schema.prepare(folder)
    assert (folder / "tollkeeper.db").read_bytes() == content


def test_a_damaged_file_is_refused(folder):
    schema.prepare(folder)
    path = folder / "tollkeeper.db"
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 4096)
    with pytest.raises(JournalError, match="malformed"):
        schema.prepare(folder)


def test_a_folder_whose_name_needs_escaping_works(tmp_path):
    folder = tmp_path / "a folder? 100% #1"
    schema.prepare(folder)
    assert (folder / "tollkeeper.db").stat().st_size > 0


def test_a_file_where_the_folder_should_be_is_refused_in_one_line(tmp_path):
    (tmp_path / "data").write_text("")
    with (
        pytest.raises(JournalError, match=r"cannot use the data folder .*: File exists"),
        lock(tmp_path / "data", "serve"),
    ):
        pass
