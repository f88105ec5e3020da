"""An append is done when it is on disk, all or nothing, in order, and never without bound."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.journal.checksums import checksum
from tollkeeper.engine.journal.contract import JournalError, Overloaded, Taken, Unavailable
from tollkeeper.engine.journal.entries import Addition, Idempotency, Kind, ListEntry

pytestmark = pytest.mark.anyio

DAY = 24 * 3600 * 1_000_000


@asynccontextmanager
async def held_up(journal):
    """Nothing is written while the block runs, or until it sets what it is given."""
    held, go = threading.Event(), threading.Event()

    def wait(_connection):
        held.set()
        go.wait()

    step = asyncio.ensure_future(journal.run(wait))
    await asyncio.to_thread(held.wait)
    try:
        yield go
    finally:
        go.set()
        await step


async def test_an_acknowledged_entry_is_read_by_another_connection(journal, place, make):
    await journal.append(make(1))
    with place.connect() as other:
        rows = other.execute("SELECT * FROM journal").fetchall()
        assert rows == [(*make(1), checksum(make(1)))]


async def test_all_that_waits_is_written_in_one_commit(sqlite_journal, make):
    statements = []
    await sqlite_journal.run(lambda connection: connection.set_trace_callback(statements.append))
    async with held_up(sqlite_journal):
        appends = [sqlite_journal.append(make(sequence)) for sequence in range(1, 101)]
        assert sqlite_journal.last_sequence() == 0
        statements.clear()
    await asyncio.gather(*appends)
    assert sqlite_journal.last_sequence() == 100
    # The commit of the step that held the writer up, and one for a hundred entries.
    assert statements.count("COMMIT") == 2


async def test_every_commit_is_synchronised_in_full(sqlite_journal):
    def modes(connection):
        return [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "secure_delete")
        ]

    assert await sqlite_journal.run(modes) == ["wal", 2, 1]


async def test_sequence_numbers_may_have_gaps_but_never_go_back(journal, make):
    await journal.append(make(5))
    await journal.append(make(9))
    for sequence in (9, 7):
        with pytest.raises(ValueError, match=f"sequence number {sequence} is not beyond 9"):
            journal.append(make(sequence))
    assert [entry.sequence for batch in journal.replay() for entry in batch] == [5, 9]


async def test_sequence_numbers_go_on_where_they_ended_when_the_folder_is_opened_again(place, make):
    async with place.open() as journal:
        await journal.append(make(7))
    async with place.open() as journal:
        assert journal.last_sequence() == 7
        with pytest.raises(ValueError, match="not beyond 7"):
            journal.append(make(7))


@pytest.mark.parametrize("kind", [Kind.PAYMENT, Kind.EVENT])
async def test_an_id_is_used_once_in_an_account_and_its_second_use_fails_alone(journal, make, kind):
    async with held_up(journal):
        appends = [
            journal.append(make(1, kind=kind, id="x")),
            journal.append(make(2, kind=kind, id="x")),
            journal.append(make(3, kind=kind, id="y")),
        ]
    first, second, third = await asyncio.gather(*appends, return_exceptions=True)
    assert (first, third) == (None, None)
    assert isinstance(second, Taken)
    assert str(second) == "the id `x` is already used"
    assert [entry.sequence for batch in journal.replay() for entry in batch] == [1, 3]


async def test_accounts_and_kinds_have_their_ids_apart_and_updates_share_their_payments(
    journal, make
):
    await journal.append(make(1, id="x"))
    await journal.append(make(2, id="x", account=2))
    await journal.append(make(3, id="x", kind=Kind.EVENT))
    await journal.append(make(4, id="x", kind=Kind.UPDATE))
    await journal.append(make(5, id="x", kind=Kind.UPDATE))
    await journal.append(make(6, id="x", kind=Kind.CHANGE))
    await journal.append(make(7, id="x", kind=Kind.CHANGE))
    assert [entry.sequence for entry in await journal.states(1, "x")] == [1, 4, 5]
    assert [entry.sequence for entry in await journal.states(2, "x")] == [2]


async def test_what_cannot_be_stored_fails_alone(journal, make):
    async with held_up(journal):
        appends = [
            journal.append(make(1)),
            journal.append(make(2, id="half a character \ud800")),
            journal.append(make(3, time=2**70)),
            journal.append(make(4)),
        ]
    outcomes = await asyncio.gather(*appends, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [
        type(None),
        JournalError,
        JournalError,
        type(None),
    ]
    assert journal.count() == 2


async def test_a_change_of_a_list_that_cannot_be_stored_fails_alone(journal, make):
    endless = Addition("blocked", (ListEntry("a", expires_at=2**70),))
    broken = Addition("blocked", (ListEntry("half a character \ud800"),))
    held = Addition("blocked", (ListEntry("b"),))
    async with held_up(journal):
        appends = [
            journal.append(make(1)),
            journal.append(make(2, kind=Kind.CHANGE), contents=(endless,)),
            journal.append(make(3, kind=Kind.CHANGE), contents=(broken,)),
            journal.append(make(4, kind=Kind.CHANGE), contents=(held,)),
            journal.append(make(5)),
        ]
    outcomes = await asyncio.gather(*appends, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [
        type(None),
        JournalError,
        JournalError,
        type(None),
        type(None),
    ]
    assert list(journal.list_entries(1, "blocked")) == [[ListEntry("b")]]
    assert journal.count() == 3


async def test_more_than_the_limit_is_refused_at_once_and_leaves_nothing_behind(place, make):
    async with place.open(waiting_limit=3) as journal:
        async with held_up(journal):
            appends = [journal.append(make(sequence)) for sequence in (1, 2, 3)]
            with pytest.raises(Overloaded, match="3 entries already wait to be written"):
                journal.append(make(4))
            assert not await journal.exists(1, Kind.PAYMENT, "p4")
        await asyncio.gather(*appends)
        await journal.append(make(4))
        assert journal.count() == 4


async def test_closing_writes_what_was_accepted_and_then_refuses(place, make):
    async with place.open() as journal:
        async with held_up(journal):
            appends = [journal.append(make(sequence)) for sequence in range(1, 1001)]
            closing_journal = asyncio.ensure_future(journal.close())
            await asyncio.sleep(0)
            with pytest.raises(Unavailable, match="the journal is closed"):
                journal.append(make(1001))
        await closing_journal
        assert all(append.done() and append.exception() is None for append in appends)
    async with place.open() as journal:
        assert journal.count() == 1000


async def test_one_who_stops_waiting_disturbs_nobody(journal, make):
    async with held_up(journal):
        appends = [journal.append(make(sequence)) for sequence in (1, 2)]
        appends[0].cancel()
    await appends[1]
    assert journal.count() == 2
    assert not await journal.exists(1, Kind.PAYMENT, "p3")


async def test_a_payment_being_written_is_already_known_and_never_counted_twice(journal, make):
    await journal.append(make(1, id="x"))
    async with held_up(journal) as go:
        appends = [
            journal.append(make(2, id="x", kind=Kind.UPDATE)),
            journal.append(make(3, id="y")),
        ]
        known = asyncio.ensure_future(journal.exists(1, Kind.PAYMENT, "y"))
        assert not await journal.exists(1, Kind.EVENT, "y")
        assert not await journal.exists(2, Kind.PAYMENT, "y")
        assert [entry.sequence for entry in await journal.states(1, "x")] == [1, 2]
        await asyncio.sleep(0)
        go.set()
        while journal.last_sequence() < 3:
            time.sleep(0.001)
        # On disk by now, though the loop was not told yet.
        assert [entry.sequence for entry in await journal.states(1, "x")] == [1, 2]
    await asyncio.gather(*appends)
    assert await known
    assert [entry.sequence for entry in await journal.states(1, "x")] == [1, 2]


async def test_a_key_is_kept_with_its_response_for_a_day(journal, make):
    used = Idempotency("key", b"digest", b"response")
    await journal.append(make(1), used)
    arrived = make(1).arrived
    assert await journal.find_idempotency(1, "key", arrived + DAY - 1) == used
    assert await journal.find_idempotency(1, "key", arrived + DAY) is None
    assert await journal.find_idempotency(2, "key", arrived) is None
    assert await journal.find_idempotency(1, "other", arrived) is None


async def test_a_key_can_be_used_again_after_its_day(journal, make):
    await journal.append(make(1), Idempotency("key", b"1", b"first"))
    later = make(2, arrived=make(1).arrived + 2 * DAY)
    await journal.append(later, Idempotency("key", b"2", b"second"))
    assert (await journal.find_idempotency(1, "key", later.arrived)).response == b"second"


async def test_the_second_use_of_a_key_waits_for_the_first(journal, make):
    used = Idempotency("key", b"digest", b"response")
    async with held_up(journal):
        append = journal.append(make(1), used)
        second = asyncio.ensure_future(journal.find_idempotency(1, "key", make(1).arrived))
        await asyncio.sleep(0)
        assert not second.done()
    assert await second == used
    await append


async def test_the_second_use_of_a_key_waits_though_who_sent_the_first_has_gone(journal, make):
    used = Idempotency("key", b"digest", b"response")
    async with held_up(journal):
        journal.append(make(1), used).cancel()
        second = asyncio.ensure_future(journal.find_idempotency(1, "key", make(1).arrived))
        await asyncio.sleep(0)
        assert not second.done()
    assert await second == used


async def test_a_key_whose_entry_was_refused_was_not_used(journal, make):
    await journal.append(make(1, id="x"))
    async with held_up(journal):
        append = journal.append(make(2, id="x"), Idempotency("key", b"digest", b"response"))
        second = asyncio.ensure_future(journal.find_idempotency(1, "key", make(1).arrived))
    with pytest.raises(Taken):
        await append
    assert await second is None


async def test_a_change_and_what_it_does_to_a_list_are_written_together_or_not_at_all(
    journal, make
):
    await journal.append(make(1, id="x"))
    put = Addition("blocked", (ListEntry("a"),))
    with pytest.raises(Taken):
        await journal.append(make(2, id="x"), contents=(put,))
    assert list(journal.list_entries(1, "blocked")) == []
    await journal.append(make(3, kind=Kind.CHANGE), contents=(put,))
    assert list(journal.list_entries(1, "blocked")) == [[ListEntry("a")]]


async def test_what_a_step_raises_reaches_who_asked_and_changes_nothing(journal, make):
    def work(connection):
        connection.execute("DELETE FROM journal")
        raise KeyError("mine")

    await journal.append(make(1))
    with pytest.raises(KeyError, match="mine"):
        await journal.run(work)
    await journal.append(make(2))
    assert journal.count() == 2


@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=20, unique=True))
def test_an_id_may_always_hold_any_character(make, place, ids):
    fresh = place.fresh()

    async def write_and_read():
        async with fresh.open() as journal:
            entries = [make(sequence, id=name) for sequence, name in enumerate(ids, start=1)]
            await asyncio.gather(*map(journal.append, entries))
            for entry in entries:
                assert await journal.states(1, entry.id) == [entry]

    asyncio.run(write_and_read())
