"""What was staged for a list and never swapped in goes, and nothing that an import needs."""

from __future__ import annotations

from contextlib import closing

import pytest

from tollkeeper.engine.journal import list_contents, schema, staging
from tollkeeper.engine.journal.entries import Kind, ListEntry, Replacement
from tollkeeper.engine.journal.lock import mark_import

pytestmark = pytest.mark.anyio


@pytest.fixture
def command(place, journal):
    with place.connect() as connection:
        yield connection


@pytest.fixture
def sqlite_command(folder, sqlite_journal):
    with closing(schema.connect(folder)) as connection:
        yield connection


def stage(connection, count, list_name="blocked"):
    content = list_contents.stage_content(connection, 1, list_name, now=1)
    list(list_contents.fill_content(connection, content, (ListEntry(str(n)) for n in range(count))))
    return content


def rows(connection):
    return [
        connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("list_contents", "list_entries")
    ]


async def swap(journal, make, content):
    entry = make(journal.last_sequence() + 1, kind=Kind.CHANGE)
    await journal.append(entry, contents=(Replacement("blocked", content),))


async def test_staged_entries_are_counted_and_read_until_they_are_swapped_in(
    journal, command, make
):
    content = stage(command, 1200)
    assert journal.count_staged(1, "blocked", content) == 1200
    assert len(list(journal.staged_entries(content))) == 1200
    assert journal.count_staged(1, "trusted", content) is None
    assert journal.count_staged(2, "blocked", content) is None
    await swap(journal, make, content)
    assert journal.count_staged(1, "blocked", content) is None


async def test_what_killed_imports_left_is_taken_away_and_what_lists_hold_stays(
    journal, command, make
):
    await swap(journal, make, stage(command, 3))
    stage(command, 1200)
    stage(command, 700, "trusted")
    journal.discard_abandoned()
    assert rows(command) == [1, 3]


async def test_nothing_is_taken_away_while_an_import_runs(sqlite_journal, sqlite_command, folder):
    content = stage(sqlite_command, 1200)
    with mark_import(folder):
        sqlite_journal.discard_abandoned()
    assert sqlite_journal.count_staged(1, "blocked", content) == 1200


async def test_what_is_being_taken_away_can_be_swapped_in_no_more(
    sqlite_journal, sqlite_command, folder, make, monkeypatch
):
    content = stage(sqlite_command, 1200)

    def cut_off(_connection, _content):
        raise KeyboardInterrupt

    monkeypatch.setattr(list_contents, "purge_content_step", cut_off)
    with pytest.raises(KeyboardInterrupt):
        sqlite_journal.discard_abandoned()
    monkeypatch.undo()
    assert sqlite_journal.count_staged(1, "blocked", content) is None
    await swap(sqlite_journal, make, content)
    assert [*sqlite_journal.list_entries(1, "blocked")] == []
    with mark_import(folder):
        sqlite_journal.discard_abandoned()
    assert rows(sqlite_command) == [0, 0]


async def test_one_content_is_taken_away_unless_a_list_holds_it(journal, command, make):
    kept, gone = stage(command, 3), stage(command, 1200)
    await swap(journal, make, kept)
    staging.discard(command, kept)
    staging.discard(command, gone)
    assert rows(command) == [1, 3]
