"""What is old goes, what a person wants erased goes, and traffic goes on meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import closing
from itertools import chain

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.journal import retention, schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Idempotency, Kind
from tollkeeper.engine.privacy.person import Person

pytestmark = pytest.mark.anyio

HOUR = 3600 * 1_000_000
DAY = 24 * HOUR


async def write(journal, entries):
    await asyncio.gather(*map(journal.append, entries))


def kept(journal):
    return [entry.sequence for batch in journal.replay() for entry in batch]


async def test_old_payments_go_with_their_updates_and_changes_stay(journal, make):
    await write(
        journal,
        [
            make(1, id="old"),
            make(2, id="old", kind=Kind.EVENT),
            make(3, id="rule", kind=Kind.CHANGE),
            make(4, id="other account's", account=2),
            make(5, id="young"),
            make(6, id="old", kind=Kind.UPDATE),
            make(7, id="young", kind=Kind.UPDATE),
        ],
    )
    assert await journal.purge(1, make(5).time) == 3
    assert kept(journal) == [3, 4, 5, 7]
    assert await journal.purge(1, make(5).time) == 0


async def test_what_arrived_late_goes_by_its_event_time(journal, make):
    await write(journal, [make(1), make(2, time=make(2).time - DAY), make(3)])
    assert await journal.purge(1, make(1).time) == 1
    assert kept(journal) == [1, 3]


async def test_a_purged_id_may_be_used_again(journal, make):
    await journal.append(make(1, id="x"))
    await journal.purge(1, make(2).time)
    assert not await journal.exists(1, Kind.PAYMENT, "x")
    await journal.append(make(2, id="x"))


@pytest.mark.parametrize("step_s", [0.0, 1.0])
async def test_purging_and_rewriting_reach_every_entry_however_short_a_step_is(
    journal, make, monkeypatch, step_s
):
    monkeypatch.setattr(retention, "STEP_S", step_s)
    monkeypatch.setattr(retention.reads, "BATCH", 70)
    await write(journal, [make(sequence) for sequence in range(1, 201)])
    assert await journal.rewrite(1, lambda entry: entry._replace(body=b"erased")) == 200
    assert {entry.body for batch in journal.replay() for entry in batch} == {b"erased"}
    assert await journal.purge(1, make(201).time) == 200
    assert kept(journal) == []


async def test_appends_go_on_while_a_purge_runs(journal, make):
    await write(journal, [make(sequence) for sequence in range(1, 1001)])
    purging = asyncio.ensure_future(journal.purge(1, make(1000).time))
    sequence = 10_000
    while not purging.done():
        sequence += 1
        await journal.append(make(sequence))
    assert await purging == 999
    assert kept(journal) == [1000, *range(10_001, sequence + 1)]


async def test_a_rewrite_changes_bodies_and_outcomes_of_one_account_and_no_changes(journal, make):
    await write(
        journal,
        [
            make(1, body=b"ana"),
            make(2, body=b"ana", kind=Kind.UPDATE),
            make(3, body=b"bob", kind=Kind.EVENT),
            make(4, body=b"ana", kind=Kind.CHANGE),
            make(5, body=b"ana", account=2),
        ],
    )

    def erase(entry):
        return entry._replace(body=b"-", outcome=None) if entry.body == b"ana" else entry

    assert await journal.rewrite(1, erase) == 2
    entries = [entry for batch in journal.replay() for entry in batch]
    assert [entry.body for entry in entries] == [b"-", b"-", b"bob", b"ana", b"ana"]
    assert [entry.outcome for entry in entries[:3]] == [None, None, b"outcome"]
    assert await journal.rewrite(1, erase) == 0


async def test_nothing_of_what_was_erased_is_left_in_the_folder(sqlite_journal, folder, make):
    secret = b"ana@example.org"
    # Longer than a page, so that the bytes also lie on pages that the shorter body gives back.
    await write(sqlite_journal, [make(sequence, body=secret * 500) for sequence in range(1, 31)])
    await sqlite_journal.run(lambda _: None)
    assert any(secret in path.read_bytes() for path in folder.iterdir())
    await sqlite_journal.rewrite(1, lambda entry: entry._replace(body=b"-"))
    assert not any(secret in path.read_bytes() for path in folder.iterdir())


async def test_an_erasure_says_when_a_read_keeps_the_log_from_being_emptied(
    sqlite_journal, folder, make, monkeypatch
):
    monkeypatch.setattr(schema, "PATIENCE_S", 0.01)
    await write(sqlite_journal, [make(1), make(2)])
    with closing(schema.connect_for_reading(folder)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM journal").fetchall()
        with pytest.raises(JournalError, match="run this again"):
            await sqlite_journal.rewrite(1, lambda entry: entry._replace(body=b"-"))


async def test_keys_are_kept_for_a_day_and_then_removed(journal, make):
    for sequence in range(1, 4):
        await journal.append(make(sequence), Idempotency(f"k{sequence}", b"digest", b"response"))

    def keys(connection):
        return [key for (key,) in connection.execute("SELECT key FROM idempotency ORDER BY place")]

    await journal.expire(make(3).arrived + DAY)
    assert await journal.run(keys) == ["k3"]


some_entries = st.lists(
    st.tuples(
        st.integers(1, 2),
        st.sampled_from([Kind.PAYMENT, Kind.UPDATE, Kind.EVENT, Kind.CHANGE]),
        st.sampled_from("abc"),
        st.integers(0, 24),
    ),
    max_size=15,
)


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(some_entries, st.integers(70, 160))
def test_a_purge_always_removes_what_a_plain_filter_would(make, place, fields, before):
    """One sequence number is one hour; an update is of the payment with its id."""
    entries, used = [], set()
    for sequence, (account, kind, record_id, late) in enumerate(fields, start=1):
        if kind in (Kind.PAYMENT, Kind.EVENT):
            if (account, kind, record_id) in used:
                continue
            used.add((account, kind, record_id))
        fields_of = {"account": account, "kind": kind, "id": record_id}
        times = {"arrived": (100 + sequence) * HOUR, "time": (100 + sequence - late) * HOUR}
        entries.append(make(sequence, **fields_of, **times))
    old = {
        (e.kind, e.id)
        for e in entries
        if e.account == 1 and e.kind in (Kind.PAYMENT, Kind.EVENT) and e.time < before * HOUR
    }

    def stays(entry):
        owner = Kind.PAYMENT if entry.kind == Kind.UPDATE else entry.kind
        return entry.account != 1 or (owner, entry.id) not in old

    async def write_and_purge():
        async with place.fresh().open() as journal:
            await write(journal, entries)
            removed = await journal.purge(1, before * HOUR)
            return removed, kept(journal)

    expected = [entry.sequence for entry in entries if stays(entry)]
    assert asyncio.run(write_and_purge()) == (len(entries) - len(expected), expected)


WRITTEN = ["ana@x.org", "é", "\\u2028", "a%b_c"]


@pytest.mark.parametrize("text", WRITTEN)
async def test_a_replay_of_what_contains_a_text_passes_over_the_rest_and_no_more(
    journal, make, text
):
    bodies = [f'{{"user":"{each}"}}'.encode() for each in (*WRITTEN, "ANA@X.ORG", "É", "axbyc")]
    await write(
        journal,
        [
            *(make(number, body=body, outcome=None) for number, body in enumerate(bodies, 1)),
            *(make(number, body=b"-", outcome=body) for number, body in enumerate(bodies, 11)),
            make(21, body=b"\xff\xfe" + text.encode()),
            make(22, body=text.encode(), account=2),
        ],
    )
    found = journal.replay(1, containing=[text, "nobody"])
    expected = [
        entry
        for batch in journal.replay(1)
        for entry in batch
        if text.encode() in entry.body.lower() + (entry.outcome or b"").lower()
    ]
    assert list(chain.from_iterable(found)) == expected
    assert await journal.rewrite(
        1, lambda entry: entry._replace(body=b"erased", outcome=None), containing=[text]
    ) == len(expected)


async def test_a_query_takes_as_many_names_as_an_erasure_asks_for_at_once(journal, make):
    await write(journal, [make(1, body=b"user-1999"), make(2, body=b"nobody")])
    person = Person("user", frozenset(f"user-{number}" for number in range(2000)))
    found = [
        entry.sequence
        for names in person.written()
        for batch in journal.replay(1, containing=names)
        for entry in batch
    ]
    assert {*found} == {1}
