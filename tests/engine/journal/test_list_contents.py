"""What a list holds: added, renewed, removed, and replaced as a whole or not at all."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlite_utils import Database

from tollkeeper.engine.journal import list_contents
from tollkeeper.engine.journal.entries import Addition, Kind, ListEntry, Removal, Replacement
from tollkeeper.engine.journal.migrations import migrations

pytestmark = pytest.mark.anyio


async def change(journal, make, *changes, account=1):
    sequence = journal.last_sequence() + 1
    entry = make(sequence, kind=Kind.CHANGE, id="list", account=account)
    await journal.append(entry, contents=changes)
    return sequence


def stage(place, values, list_name="blocked", account=1):
    with place.connect() as connection:
        content = list_contents.stage_content(connection, account, list_name, now=1)
        entries = (ListEntry(value) for value in values)
        steps = list(list_contents.fill_content(connection, content, entries))
    return content, steps


def values(journal, list_name="blocked", account=1, **query):
    return [e.value for batch in journal.list_entries(account, list_name, **query) for e in batch]


def rows(place, table):
    with place.connect() as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


async def test_an_entry_is_read_back_with_all_that_was_said_of_it(journal, make):
    entry = ListEntry("41111111", '{"country": "BR"}', 1_800_000_000_000_000, "seen twice", "ana")
    await change(journal, make, Addition("bins", (entry,)))
    assert list(journal.list_entries(1, "bins")) == [[entry]]


async def test_an_entry_put_again_is_renewed(journal, make):
    await change(journal, make, Addition("blocked", (ListEntry("a", note="old"),)))
    await change(journal, make, Addition("blocked", (ListEntry("a", note="new"),)))
    assert list(journal.list_entries(1, "blocked")) == [[ListEntry("a", note="new")]]


def steps_of_a_renewal(times):
    """Hundreds of steps that SQLite takes to renew 50 entries that were renewed so often."""
    entries = tuple(ListEntry(f"{number}") for number in range(50))
    taken = 0

    def count():
        nonlocal taken
        taken += 1
        return 0

    with closing(Database(memory=True)) as tables:
        migrations.apply(tables)
        connection = tables.conn
        for sequence in range(1, times + 2):
            connection.set_progress_handler(count if sequence > times else None, 100)
            list_contents.change_list(connection, 1, sequence, Addition("blocked", entries))
    return taken


def test_a_renewal_costs_the_same_however_often_an_entry_was_renewed():
    assert steps_of_a_renewal(300) < 2 * steps_of_a_renewal(1)


async def test_an_entry_is_kept_with_the_span_in_which_it_held(journal, place, make):
    first = await change(journal, make, Addition("blocked", (ListEntry("a"),)))
    second = await change(journal, make, Addition("blocked", (ListEntry("a", note="renewed"),)))
    third = await change(journal, make, Removal("blocked", ("a", "never there")))
    with place.connect() as connection:
        spans = connection.execute("SELECT note, from_place, to_place FROM list_entries").fetchall()
    assert spans == [(None, first, second), ("renewed", second, third)]


async def test_lists_and_accounts_have_their_entries_apart(journal, make):
    await change(journal, make, Addition("blocked", (ListEntry("a"),)))
    await change(journal, make, Addition("trusted", (ListEntry("b"),)))
    await change(journal, make, Addition("blocked", (ListEntry("c"),)), account=2)
    assert values(journal) == ["a"]
    assert values(journal, "trusted") == ["b"]
    assert values(journal, account=2) == ["c"]
    await change(journal, make, Removal("blocked", ("a",)), account=2)
    assert values(journal) == ["a"]


async def test_an_import_shows_nothing_until_it_is_swapped_in_and_then_everything(
    journal, place, make
):
    await change(journal, make, Addition("blocked", (ListEntry("old"),)))
    content, steps = stage(place, [str(number) for number in range(2500)])
    assert steps == [500, 1000, 1500, 2000, 2500]
    assert values(journal) == ["old"]
    await change(journal, make, Replacement("blocked", content))
    assert values(journal) == sorted(str(number) for number in range(2500))
    await change(journal, make, Removal("blocked", ("7",)))
    assert "7" not in values(journal)


async def test_the_last_of_a_value_sent_twice_in_an_import_stays(journal, place, make):
    with place.connect() as connection:
        content = list_contents.stage_content(connection, 1, "blocked", now=1)
        twice = [ListEntry("a", note="first"), ListEntry("a", note="last")]
        assert list(list_contents.fill_content(connection, content, twice)) == [2]
    await change(journal, make, Replacement("blocked", content))
    assert list(journal.list_entries(1, "blocked")) == [[ListEntry("a", note="last")]]


async def test_another_accounts_staged_content_cannot_be_swapped_in(journal, place, make):
    await change(journal, make, Addition("blocked", (ListEntry("mine"),)))
    content, _ = stage(place, ["theirs"], account=2)
    await change(journal, make, Replacement("blocked", content))
    assert "theirs" not in values(journal)


async def test_a_listing_goes_on_beyond_a_value(journal, make):
    await change(journal, make, Addition("blocked", tuple(map(ListEntry, "abcd"))))
    assert values(journal, beyond="b") == ["c", "d"]
    assert values(journal, beyond="d") == []


async def test_purging_removes_what_no_longer_held_and_only_of_that_account(journal, place, make):
    await change(journal, make, Addition("blocked", tuple(map(ListEntry, "abc"))))
    await change(journal, make, Addition("blocked", tuple(map(ListEntry, "xyz"))), account=2)
    await change(journal, make, Removal("blocked", ("a",)))
    await change(journal, make, Removal("blocked", ("x",)), account=2)
    content, _ = stage(place, ["d", "e"])
    last = await change(journal, make, Replacement("blocked", content))
    assert rows(place, "list_entries") == 8
    await journal.purge_lists(1, make(last).arrived)
    assert values(journal) == ["d", "e"]
    assert values(journal, account=2) == ["y", "z"]
    assert rows(place, "list_entries") == 5
    assert rows(place, "list_contents") == 2


async def test_a_forgotten_value_is_gone_from_the_past_too(journal, place, make):
    await change(journal, make, Addition("blocked", (ListEntry("ana@example.org"),)))
    await change(journal, make, Removal("blocked", ("ana@example.org",)))
    await change(journal, make, Addition("blocked", (ListEntry("ana@example.org"),)), account=2)
    assert await journal.forget_values(1, ["ana@example.org"]) == 1
    assert values(journal, account=2) == ["ana@example.org"]
    assert rows(place, "list_entries") == 1


some_values = st.lists(st.sampled_from("abcdef"), max_size=6)
some_changes = st.tuples(st.sampled_from(["put", "remove", "import"]), some_values)


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(some_changes, max_size=8))
def test_a_list_always_holds_what_a_plain_set_would_and_did_at_every_sequence_number(
    make, place, changes
):
    place = place.fresh()

    async def apply():
        held, past = set(), {}
        async with place.open() as journal:
            for verb, names in changes:
                if verb == "put":
                    held = held | set(names)
                    what = Addition("blocked", tuple(map(ListEntry, names)))
                elif verb == "remove":
                    held = held - set(names)
                    what = Removal("blocked", tuple(names))
                else:
                    held = set(names)
                    what = Replacement("blocked", stage(place, names)[0])
                past[await change(journal, make, what)] = held
                assert values(journal) == sorted(held)
        return past

    for sequence, held in asyncio.run(apply()).items():
        with place.connect() as connection:
            found = connection.execute(
                "SELECT value FROM list_entries e JOIN list_contents c ON c.id = e.content"
                " WHERE c.from_place <= ? AND e.from_place <= ?"
                " AND coalesce(c.to_place > ?, TRUE) AND coalesce(e.to_place > ?, TRUE)",
                4 * (sequence,),
            ).fetchall()
        assert sorted(value for (value,) in found) == sorted(held)
