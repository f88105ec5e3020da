"""Reads give what a plain look at all entries would, in order and in bounded pieces."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.entries import Kind

pytestmark = pytest.mark.anyio

HOUR = 3600 * 1_000_000


async def write(journal, entries):
    await asyncio.gather(*map(journal.append, entries))


def sequences(batches):
    return [entry.sequence for batch in batches for entry in batch]


async def changes(journal, after=0):
    return await journal.query(lambda connection: list(reads.changes(connection, after)))


async def test_an_empty_journal_has_nothing_to_tell(journal):
    assert journal.last_sequence() == 0
    assert journal.count() == 0
    assert list(journal.replay()) == []
    assert await journal.entry(1) is None
    assert await journal.states(1, "x") == []
    assert await changes(journal) == []
    assert (await journal.latest(1, Kind.PAYMENT)).entries == []


async def test_an_entry_is_read_back_as_it_was_written(journal, make):
    entry = make(3, outcome=None)
    await journal.append(entry)
    assert await journal.entry(3) == entry


async def test_the_first_to_arrive_is_found_also_once_the_last_entries_were_purged(journal, make):
    entries = [make(sequence, account=1 + sequence // 3) for sequence in range(1, 5)]
    await write(journal, entries)
    await journal.seal(at_least=1)
    assert await journal.purge(2, entries[-1].time + 1) == 2
    times = [each.arrived for each in entries]
    found = await journal.query(
        lambda connection: [reads.sequence_at(connection, time) for time in times]
    )
    assert found == [1, 2, 3, 3]


async def test_latest_goes_back_page_by_page(journal, make):
    await write(journal, [make(sequence) for sequence in range(1, 8)])
    seen, cursor = [], None
    while True:
        page = await journal.latest(1, Kind.PAYMENT, cursor=cursor, limit=3)
        seen.append([entry.sequence for entry in page.entries])
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == [[7, 6, 5], [4, 3, 2], [1]]


async def test_latest_shows_one_account_one_kind_what_is_wanted_and_nothing_older(journal, make):
    await write(
        journal,
        [
            make(1),
            make(2, outcome=b"deny"),
            make(3, outcome=b"deny"),
            make(4, account=2, outcome=b"deny"),
            make(5, kind=Kind.EVENT, outcome=b"deny"),
            make(6, outcome=b"allow"),
            make(7, outcome=b"deny"),
        ],
    )
    page = await journal.latest(
        1, Kind.PAYMENT, since=make(3).arrived, wanted=lambda entry: entry.outcome == b"deny"
    )
    assert [entry.sequence for entry in page.entries] == [7, 3]
    assert page.cursor is None


async def test_a_page_looks_at_a_bounded_number_of_entries(journal, make, monkeypatch):
    monkeypatch.setattr(reads, "PAGE_SCAN", 4)
    await write(journal, [make(sequence) for sequence in range(1, 11)])
    page = await journal.latest(1, Kind.PAYMENT, wanted=lambda entry: entry.sequence == 1)
    assert (page.entries, page.cursor) == ([], 7)
    page = await journal.latest(1, Kind.PAYMENT, wanted=lambda entry: entry.sequence == 4, cursor=7)
    assert ([entry.sequence for entry in page.entries], page.cursor) == ([4], 3)


async def test_changes_are_read_across_accounts_and_by_account(journal, make, monkeypatch):
    monkeypatch.setattr(reads, "BATCH", 2)
    change = {"kind": Kind.CHANGE, "id": "rule"}
    await write(
        journal, [make(1, **change), make(2), make(3, account=2, **change), make(4, **change)]
    )
    assert [entry.sequence for entry in await changes(journal)] == [1, 3, 4]
    assert [entry.sequence for entry in await changes(journal, after=1)] == [3, 4]
    audit = await journal.latest(1, Kind.CHANGE)
    assert [entry.sequence for entry in audit.entries] == [4, 1]


async def test_a_replay_shows_what_was_there_when_it_began(journal, make):
    await write(journal, [make(sequence) for sequence in range(1, 4)])
    replay = journal.replay(up_to=journal.last_sequence())
    await journal.append(make(4))
    assert sequences(replay) == [1, 2, 3]


async def test_a_replay_finds_an_event_time_ahead_of_its_arrival(journal, make):
    await journal.append(make(1, time=make(1).arrived + 5))
    assert sequences(journal.replay(since=make(1).arrived + 5)) == [1]
    assert sequences(journal.replay(since=make(1).arrived + 6)) == []


async def test_a_replay_holds_no_snapshot_between_its_batches(sqlite_journal, make, monkeypatch):
    monkeypatch.setattr(reads, "BATCH", 2)
    await write(sqlite_journal, [make(sequence) for sequence in range(1, 6)])
    replay = sqlite_journal.replay()
    next(replay)
    with closing(schema.connect(sqlite_journal._folder)) as connection:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0
    assert sequences(replay) == [3, 4, 5]


@pytest.mark.parametrize(
    ("query", "search"),
    [
        (reads.EXISTS, "INDEX by_id (account=? AND id=? AND kind=?)"),
        (reads.STATES, "INDEX by_id (account=? AND id=? AND kind=?)"),
        (reads.IDEMPOTENT, "INDEX idx_idempotency_account_key (account=? AND key=?)"),
    ],
)
async def test_point_reads_search_an_index_by_all_they_know(sqlite_journal, query, search):
    with closing(schema.connect_for_reading(sqlite_journal._folder)) as connection:
        values = [1] * query.count("?")
        plan = connection.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
    assert any(search in step[3] for step in plan)


entry_fields = st.fixed_dictionaries(
    {
        "account": st.integers(1, 2),
        "kind": st.sampled_from(sorted(Kind)),
        "late": st.integers(-5, 24),
        "gap": st.integers(1, 3),
    }
)


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    fields=st.lists(entry_fields, max_size=30),
    account=st.sampled_from([None, 1, 2]),
    since=st.integers(0, 80),
    after=st.integers(0, 60),
    up_to=st.none() | st.integers(0, 90),
    kinds=st.sets(st.sampled_from(sorted(Kind))),
)
def test_a_replay_always_gives_what_filtering_all_entries_gives(
    make, place, fields, account, since, after, up_to, kinds
):
    """One sequence number is one hour here; event times lie up to 24 back or, by a clock ahead of
    ours, 5 on.
    """
    entries, sequence = [], 0
    for field in fields:
        sequence += field["gap"]
        entries.append(
            make(
                sequence,
                account=field["account"],
                kind=field["kind"],
                arrived=sequence * HOUR,
                time=(sequence - field["late"]) * HOUR,
            )
        )

    def asked(entry):
        return (
            account in (None, entry.account)
            and entry.time >= since * HOUR
            and after < entry.sequence <= (sequence if up_to is None else up_to)
            and entry.kind in kinds
        )

    async def write_and_replay():
        async with place.fresh().open() as journal:
            await write(journal, entries)
            batches = journal.replay(
                account, since=since * HOUR, after=after, up_to=up_to, kinds=kinds
            )
            return (
                [entry for batch in batches for entry in batch],
                journal.count(account, since=since * HOUR, after=after),
            )

    replayed, count = asyncio.run(write_and_replay())
    assert replayed == list(filter(asked, entries))
    assert count >= len(replayed)


async def test_what_is_known_of_a_payment_is_its_creation_and_its_last_update(journal, make):
    assert await journal.first_and_last(1, "p1") is None
    created = make(1)
    writing = journal.append(created)
    assert await journal.first_and_last(1, "p1") == (created, created)
    await writing
    updates = [make(sequence, id="p1", kind=Kind.UPDATE, outcome=None) for sequence in (2, 3, 4)]
    await write(journal, updates)
    assert await journal.first_and_last(1, "p1") == (created, updates[-1])


async def test_a_payment_that_is_being_written_is_known_only_once_it_is(journal, place, make):
    await place.break_writer(journal)
    lost = journal.append(make(1, body=bytes(10_000)))
    assert await journal.first_and_last(1, "p1") is None
    assert isinstance(lost.exception(), Unavailable)


async def test_updates_are_counted_up_to_a_bound(journal, make):
    await write(journal, [make(1), make(2, id="p2")])
    assert await journal.count_updates(1, "p1", 3) == 0
    for sequence, counted in ((3, 1), (4, 2), (5, 3), (6, 3)):
        await write(journal, [make(sequence, id="p1", kind=Kind.UPDATE, outcome=None)])
        assert await journal.count_updates(1, "p1", 3) == counted
    assert await journal.count_updates(1, "p2", 3) == await journal.count_updates(2, "p1", 3) == 0


async def test_replaying_the_latest_gives_each_payment_once_as_known_by_then(journal, make):
    await write(journal, updated_twice(make))
    (stretch,) = journal.replay_latest(1, up_to=4)
    assert [(entry.sequence, entry.body) for entry in stretch.fresh] == [
        (1, b"first"),
        (2, b"body"),
        (4, b"body"),
    ]
    assert (stretch.amended, stretch.after, stretch.sequence) == ([], 0, 4)
    (stretch,) = journal.replay_latest(1, up_to=6, kinds={Kind.PAYMENT})
    assert stretch.fresh == [make(1, body=b"second"), make(2)]


async def test_a_later_stretch_tells_what_was_known_before_it(journal, make, monkeypatch):
    await write(journal, updated_twice(make))
    (stretch,) = journal.replay_latest(1, after=2, up_to=6)
    assert stretch.fresh == [make(4, kind=Kind.EVENT)]
    assert stretch.amended == [(make(1), make(1, body=b"second"))]
    monkeypatch.setattr(reads, "STRETCH", 2)
    stretches = list(journal.replay_latest(1, up_to=6))
    assert [[entry.sequence for entry in each.fresh] for each in stretches] == [[1, 2], [4], []]
    assert [each.amended for each in stretches] == [
        [],
        [(make(1), make(1, body=b"first"))],
        [(make(1, body=b"first"), make(1, body=b"second"))],
    ]


async def test_a_stretch_of_large_bodies_ends_early(journal, make, monkeypatch):
    monkeypatch.setattr(reads, "STRETCH_BYTES", 10)
    await write(journal, [make(1, body=b"x" * 20), make(2), make(3)])
    stretches = list(journal.replay_latest(1, up_to=3))
    assert [[entry.sequence for entry in each.fresh] for each in stretches] == [[1], [2, 3]]


def updated_twice(make):
    return [
        make(1),
        make(2),
        make(3, id="p1", kind=Kind.UPDATE, body=b"first", outcome=None),
        make(4, kind=Kind.EVENT),
        make(5, id="p1", kind=Kind.UPDATE, body=b"second", outcome=None),
        make(6, account=2),
    ]
