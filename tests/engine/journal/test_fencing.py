"""Whose journal in PostgreSQL it is: a former owner changes nothing and says nothing that isn't so.

Answers are held back and connections cut where it matters; nothing depends on how long that takes.
"""

from __future__ import annotations

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import asynccontextmanager, suppress
from functools import partial
from threading import Barrier

import psycopg
import pytest

from tollkeeper.engine.journal.contract import Fenced, JournalError, Locked, Taken, Unavailable
from tollkeeper.engine.journal.entries import Idempotency, Kind
from tollkeeper.engine.journal.postgres import journal as postgres_journal
from tollkeeper.engine.journal.postgres import schema
from tollkeeper.engine.journal.postgres.journal import follow_database, open_database
from tollkeeper.engine.journal.postgres.nodes import (
    Heartbeat,
    has_successor,
    is_followed,
    nodes_of,
    remove_node,
    successors,
    write_heartbeat,
)
from tollkeeper.engine.journal.postgres.schema import Migration
from tollkeeper.tests.engine.journal.proxy import proxy_to

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """No renewal of a lease comes between what a test holds back."""
    monkeypatch.setattr(postgres_journal, "_RENEW_S", 3600.0)


def do(url, statement, *values):
    with psycopg.connect(url, autocommit=True) as connection:
        done = connection.execute(statement, values)
        return done.fetchall() if done.description else []


def expire(url):
    do(url, "UPDATE shards SET lease_until = '-infinity'")


def without_standby(url, table):
    """PostgreSQL tells it by a warning, while the commit itself succeeds."""
    do(
        url,
        "CREATE OR REPLACE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE WARNING 'the transaction might not have been replicated'; RETURN NULL; END $$;"
        f" CREATE TRIGGER warn AFTER UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION warn()",
    )


def with_standby(url, table):
    do(url, f"DROP TRIGGER warn ON {table}")


def places(url):
    return [place for (place,) in do(url, "SELECT place FROM journal ORDER BY place")]


@asynccontextmanager
async def owned_through_proxy(database):
    async with proxy_to(database) as (proxy, url), open_database(url, "serve") as journal:
        yield proxy, journal


async def test_a_second_owner_is_kept_out_while_the_lease_lasts_and_let_in_when_it_is_given_back(
    database, make
):
    async with open_database(database, "serve") as first:
        await first.append(make(1))
        with pytest.raises(Locked, match=r"in use by `toll serve`, process \d+ on "):
            async with open_database(database, "serve"):
                pass
    async with open_database(database, "command") as second:
        assert second.last_sequence() == 1
        await second.append(make(2))


async def test_of_two_appenders_the_former_owner_writes_nothing(database, make):
    async with open_database(database, "serve") as former:
        await former.append(make(1))
        expire(database)
        async with open_database(database, "serve") as owner:
            await owner.append(make(2, id="the owner's"))
            with pytest.raises(Unavailable, match="another process has taken the journal over"):
                await former.append(make(3, id="the former's"))
            with pytest.raises(Fenced):
                await former.run(lambda connection: connection.execute("DELETE FROM journal"))
            await asyncio.wait_for(former.wait_until_lost(), 30)
            assert former.write_failure() == "another process has taken the journal over"
            assert not await owner.exists(1, Kind.PAYMENT, "the former's")
            await owner.append(make(4))
    assert places(database) == [1, 2, 4]


async def test_a_batch_that_arrives_after_a_takeover_is_not_written(database, make):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        proxy.requests.clear()
        late = journal.append(make(2))
        await proxy.held.wait()
        expire(database)
        async with open_database(database, "serve") as owner:
            await owner.append(make(2, id="the owner's"))
            proxy.requests.set()
            with pytest.raises(Unavailable, match="another process has taken the journal over"):
                await late
    assert do(database, "SELECT id FROM journal ORDER BY place") == [("p1",), ("the owner's",)]


async def test_a_service_that_ends_waits_no_more_for_a_database_that_never_answers(database, make):
    async with owned_through_proxy(database) as (proxy, journal):
        proxy.answers.clear()
        waiting = (
            journal.append(make(1)),
            asyncio.ensure_future(journal.standing()),
            asyncio.ensure_future(journal.take_over("serve", "")),
        )
        await proxy.held.wait()
        journal.end_within(0.0)
        ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in ended] == [Unavailable] * 3


async def test_a_service_that_ends_no_longer_finds_out_what_became_of_a_commit(database, make):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        proxy.answers.clear()
        waiting = journal.append(make(2))
        await proxy.held.wait()
        proxy.is_away = True
        proxy.cut()
        while "is not known yet" not in (journal.write_failure() or ""):
            await asyncio.sleep(0.01)
        journal.end_within(0.0)
        await asyncio.wait([waiting], timeout=30)
        assert waiting.done()
        with pytest.raises(Unavailable, match="what became of the last entries is not known yet"):
            await waiting


async def test_nothing_is_acknowledged_before_the_database_has_said_so(database, make):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        proxy.answers.clear()
        append = journal.append(make(2))
        await proxy.held.wait()
        assert places(database) == [1, 2]
        assert not append.done()
        assert journal.last_sequence() == 1
        proxy.answers.set()
        await append


async def test_a_commit_whose_answer_was_lost_is_found_out_and_kept(database, make):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        (epoch,) = do(database, "SELECT epoch FROM shards")
        proxy.answers.clear()
        key = Idempotency("key", b"digest", b"response")
        appends = [journal.append(make(2)), journal.append(make(3), key)]
        await proxy.held.wait()
        proxy.cut()
        await asyncio.gather(*appends)
        # Another epoch has shut out whatever of the former was still under way.
        assert do(database, "SELECT epoch FROM shards") == [(epoch[0] + 1,)]
        assert await journal.find_idempotency(1, "key", make(3).arrived) == key
        await journal.append(make(4))
    assert places(database) == [1, 2, 3, 4]


async def test_a_commit_that_never_arrived_is_lost_with_all_behind_it_and_the_next_is_written(
    database, make
):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        proxy.requests.clear()
        lost = journal.append(make(2))
        await proxy.held.wait()
        behind = journal.append(make(3))
        proxy.cut()
        for outcome in await asyncio.gather(lost, behind, return_exceptions=True):
            assert isinstance(outcome, Unavailable)
        await asyncio.sleep(0)
        assert not await journal.exists(1, Kind.PAYMENT, "p2")
        await journal.append(make(4))
        assert journal.write_failure() is None
    assert places(database) == [1, 4]


@pytest.mark.parametrize("arrives", [True, False])
async def test_what_became_of_a_commit_is_found_out_though_another_has_taken_over(
    database, make, arrives
):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        (proxy.answers if arrives else proxy.requests).clear()
        append = journal.append(make(2))
        await proxy.held.wait()
        expire(database)
        async with open_database(database, "serve") as owner:
            assert owner.last_sequence() == (2 if arrives else 1)
            proxy.cut()
            if arrives:
                await append
            else:
                with pytest.raises(Unavailable):
                    await append
            await asyncio.sleep(0)
            with pytest.raises(Unavailable, match="another process has taken the journal over"):
                await journal.append(make(3))
            await owner.append(make(5))
    assert places(database) == ([1, 2, 5] if arrives else [1, 5])


async def test_a_commit_is_not_taken_for_made_because_the_next_owner_wrote_at_its_place(
    database, make
):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        proxy.requests.clear()
        append = journal.append(make(2))
        await proxy.held.wait()
        expire(database)
        async with open_database(database, "serve") as owner:
            await owner.append(make(2, id="the owner's"))
            proxy.cut()
            with pytest.raises(Unavailable):
                await append
    assert do(database, "SELECT id FROM journal ORDER BY place") == [("p1",), ("the owner's",)]


async def test_what_was_written_beside_a_refused_entry_is_found_though_another_has_taken_over(
    database, make
):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        proxy.unanswered = [b"COMMIT"]
        appends = [journal.append(make(2)), journal.append(make(3, id="p1"))]
        await proxy.held.wait()
        expire(database)
        async with open_database(database, "serve") as owner:
            assert owner.last_sequence() == 3
            proxy.cut()
            outcomes = await asyncio.gather(*appends, return_exceptions=True)
    assert [type(each) for each in outcomes] == [type(None), Taken]
    assert places(database) == [1, 2]


async def test_what_was_found_to_be_written_proves_whose_journal_it_was(database, make):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        begun = time.monotonic()
        proxy.answers.clear()
        append = journal.append(make(2))
        await proxy.held.wait()
        expire(database)
        async with open_database(database, "serve"):
            proxy.cut()
            await append
            # An answer that tells of the entry may be sent: a 503 would say that nothing was done.
            await journal.prove(begun)


async def test_a_commit_that_no_standby_has_is_not_acknowledged(database, make):
    async with open_database(database, "serve") as journal:
        await journal.append(make(1))
        without_standby(database, "shards")
        append = journal.append(make(2))
        while "no standby has it" not in (journal.write_failure() or ""):
            assert not append.done()
            await asyncio.sleep(0.01)
        assert places(database) == [1, 2]
        assert not append.done()
        with_standby(database, "shards")
        await append
        await journal.append(make(3))
        assert journal.write_failure() is None


async def test_a_taking_over_that_no_standby_has_does_not_count(database, make):
    async with open_database(database, "serve") as journal:
        await journal.append(make(1))
    async with follow_database(database) as journal:
        without_standby(database, "shards")
        with pytest.raises(Unavailable, match="no standby has confirmed the takeover"):
            await journal.take_over("serve", "")
        expire(database)
        with pytest.raises(Unavailable, match="no standby has confirmed the takeover"):
            async with open_database(database, "serve"):
                pass
        with_standby(database, "shards")
        expire(database)
        assert await journal.take_over("serve", "")
        await journal.append(make(2))
    assert places(database) == [1, 2]


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_former_owner_says_nothing_of_a_commit_before_a_standby_has_all_up_to_now(
    database, make, arrives
):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        (proxy.answers if arrives else proxy.requests).clear()
        append = journal.append(make(2))
        await proxy.held.wait()
        expire(database)
        async with open_database(database, "serve"):
            without_standby(database, "barrier")
            proxy.cut()
            while not append.done() and "no standby has it" not in (journal.write_failure() or ""):
                await asyncio.sleep(0.01)
            assert not append.done()
            assert not journal.is_lost
            with_standby(database, "barrier")
            if arrives:
                await append
            else:
                with pytest.raises(Unavailable):
                    await append
            assert journal.is_lost


async def test_an_id_being_written_counts_as_used_only_once_it_is(database, make):
    async with owned_through_proxy(database) as (proxy, journal):
        await journal.append(make(1))
        proxy.requests.clear()
        append = journal.append(make(2, id="x"))
        await proxy.held.wait()
        asked = asyncio.ensure_future(journal.exists(1, Kind.PAYMENT, "x"))
        await asyncio.sleep(0)
        assert not asked.done()
        proxy.cut()
        with pytest.raises(Unavailable):
            await append
        # The connection of the read may have been cut with the other.
        with suppress(Unavailable):
            assert await asked is False
        assert await journal.exists(1, Kind.PAYMENT, "x") is False


async def test_an_owner_that_has_not_proved_it_for_long_says_that_it_cannot_write(
    database, make, monkeypatch
):
    async with open_database(database, "serve") as journal:
        await journal.append(make(1))
        assert journal.write_failure() is None
        monkeypatch.setattr(postgres_journal, "LEASE_S", 0.0)
        assert "not confirmed" in journal.write_failure()
        monkeypatch.undo()
        await journal.renew()
        assert journal.write_failure() is None


async def test_a_full_database_takes_nothing_until_an_entry_finds_room_whatever_else_does(
    database, make
):
    async with open_database(database, "serve") as journal:
        await journal.append(make(1))
        do(
            database,
            "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION"
            " 'No space left on device' USING ERRCODE = 'disk_full'; END $$;"
            " CREATE TRIGGER fill BEFORE INSERT ON journal FOR EACH ROW EXECUTE FUNCTION fill()",
        )
        with pytest.raises(Unavailable, match="No space left on device"):
            await journal.append(make(2))
        for _ in range(2):
            # A lease is renewed in place.
            await journal.renew()
            assert "No space left on device" in journal.write_failure()
        do(database, "DROP TRIGGER fill ON journal")
        await journal.renew()
        assert journal.write_failure() is None
        await journal.append(make(3))
    assert places(database) == [1, 3]
    assert do(database, "SELECT count(*) FROM ids") == [(2,)]


@pytest.mark.parametrize("write", ["an entry", "a step"])
async def test_a_database_that_came_back_older_is_noticed(database, make, write):
    async with open_database(database, "serve") as journal:
        await journal.append(make(1))
        await journal.append(make(2))
        do(database, "DELETE FROM journal WHERE place = 2")
        do(database, "UPDATE shards SET last_place = 1")
        with pytest.raises(Unavailable):
            await (journal.append(make(3)) if write == "an entry" else journal.flush())
        await asyncio.wait_for(journal.wait_until_lost(), 30)
    assert places(database) == [1]
    assert do(database, "SELECT safe_place FROM shards") == [(1,)]


PARTS = """
CREATE TABLE journal_0000000000000000000 PARTITION OF journal FOR VALUES FROM (0) TO (10000000);
CREATE TABLE journal_0000000000010000000 PARTITION OF journal
  FOR VALUES FROM (10000000) TO (20000000);
"""


async def test_a_journal_that_was_cut_into_parts_is_one_table_with_all_that_is_known_of_it(
    database, make, monkeypatch
):
    of_parts = schema._MIGRATIONS[:10]
    with monkeypatch.context() as former:
        former.setattr(schema, "_MIGRATIONS", of_parts)
        former.setattr(schema, "NEWEST_TABLES", len(of_parts))
        async with open_database(database, "serve") as journal:
            do(database, PARTS)
            await journal.append(make(1))
            await journal.append(make(10_000_002, kind=Kind.UPDATE, id="p1"))
            await journal.append(make(10_000_003, kind=Kind.CHANGE))
            before = indexes(database)
    async with open_database(database, "serve") as journal:
        assert [entry.sequence for entry in await journal.states(1, "p1")] == [1, 10_000_002]
        with pytest.raises(Taken):
            await journal.append(make(10_000_004, id="p1"))
        assert await journal.purge(1, make(2).time) == 2
        assert not await journal.exists(1, Kind.PAYMENT, "p1")
    assert indexes(database) == [*before, ("shadows_by_account",)]
    assert places(database) == [10_000_003]
    assert do(database, "SELECT number, place FROM amendments") == [(1, 1), (2, 10_000_002)]
    assert do(database, "SELECT count(*) FROM pg_inherits") == [(0,)]


def indexes(url):
    of_table = "SELECT indexname FROM pg_indexes WHERE tablename = 'journal' ORDER BY indexname"
    return do(url, of_table)


async def test_tables_are_changed_only_once_no_older_service_uses_them(database, make, monkeypatch):
    newest = schema.NEWEST_TABLES
    async with open_database(database, "serve") as journal:
        await journal.append(make(1))
        with_next(monkeypatch, Migration("CREATE TABLE next ()"))
        with pytest.raises(Locked, match="used by an older version"):
            async with open_database(database, "serve"):
                pass
    async with open_database(database, "serve") as newer:
        await newer.append(make(2))
    assert do(database, "SELECT version FROM tollkeeper_tables") == [(newest + 1,)]
    monkeypatch.undo()
    with pytest.raises(
        Exception, match=f"written by a newer version: its tables are at {newest + 1}"
    ):
        async with open_database(database, "serve"):
            pass


async def test_whoever_used_tables_before_they_were_changed_can_neither_write_nor_take_them_over(
    database, make, monkeypatch
):
    async with (
        open_database(database, "serve") as paused,
        follow_database(database) as follower,
    ):
        await paused.append(make(1))
        expire(database)
        with monkeypatch.context() as patch:
            with_next(patch, Migration("CREATE TABLE next ()"))
            async with follow_database(database) as newer:
                assert (await newer.standing()).last == 1
        with pytest.raises(Unavailable):
            await paused.append(make(2))
        await asyncio.wait_for(paused.wait_until_lost(), 30)
        with pytest.raises(JournalError, match="written by a newer version"):
            await follower.take_over("serve", "")
    assert places(database) == [1]


async def test_tables_are_changed_only_once_no_node_of_the_release_before_is_there(
    database, monkeypatch
):
    older = Heartbeat("older", "http://127.0.0.1:1", "0.1.0", 0, is_whole=True)
    async with follow_database(database) as following:
        await following.query(partial(write_heartbeat, heartbeat=older))
        with monkeypatch.context() as patch:
            with_next(patch, Migration("CREATE TABLE next ()"))
            # Nobody owns the journal at the moment, as when one of two hands it to the other.
            with pytest.raises(Locked, match="once all of its services have ended"):
                async with follow_database(database):
                    pass
            await following.query(partial(remove_node, node="older"))
            async with follow_database(database):
                pass


async def test_a_heartbeat_by_a_clock_ahead_keeps_no_node_that_is_gone_there(database):
    gone = Heartbeat("gone", "http://127.0.0.1:1", "0.1.0", 0, is_whole=True)
    async with follow_database(database) as following:
        await following.query(partial(write_heartbeat, heartbeat=gone))
        assert await following.query(partial(has_successor, node="this"))
        # The database failed over to a machine whose clock is an hour behind.
        do(database, "UPDATE nodes SET seen_at = seen_at + interval '1 hour'")
        assert not await following.query(partial(has_successor, node="this"))
        assert await following.query(successors) == {}
        assert not await following.query(is_followed)
        [seen] = await following.query(nodes_of)
        assert seen.silent_s > 3000
        do(database, "UPDATE nodes SET seen_at = seen_at + interval '2 days'")
        present = gone._replace(node="present")
        await following.query(partial(write_heartbeat, heartbeat=present))
        assert await following.query(successors) == {gone.address: "present"}
        assert len(await following.query(nodes_of)) == 1


async def test_what_is_added_to_the_tables_lets_nodes_of_the_release_before_go_on_beside(
    database, make, monkeypatch
):
    newest = schema.NEWEST_TABLES
    async with open_database(database, "serve") as journal:
        await journal.append(make(1))
        with monkeypatch.context() as patch:
            with_next(patch, Migration("CREATE TABLE next ()", is_addition=True))
            async with follow_database(database) as newer:
                assert (await newer.standing()).last == 1
        await journal.append(make(2))
    async with open_database(database, "serve") as journal:
        await journal.append(make(3))
    known = do(database, "SELECT version, least FROM tollkeeper_tables")
    changing = [n for n, each in enumerate(schema._MIGRATIONS, 1) if not each.is_addition]
    assert known == [(newest + 1, changing[-1])]


def with_next(patch: pytest.MonkeyPatch, step: Migration) -> None:
    patch.setattr(schema, "_MIGRATIONS", (*schema._MIGRATIONS, step))
    patch.setattr(schema, "NEWEST_TABLES", schema.NEWEST_TABLES + 1)


@pytest.mark.parametrize(("ends", "is_over"), [("30 seconds", False), ("1 hour", True)])
async def test_a_lease_of_a_clock_that_is_far_ahead_is_over(database, ends, is_over):
    async with follow_database(database) as follower:
        do(
            database,
            "UPDATE shards SET owner = 'lost', lease_until = clock_timestamp()"
            f" + interval '{ends}'",
        )
        assert (await follower.standing()).is_held is not is_over
        assert await follower.take_over("serve", "") is is_over


async def test_what_a_former_owner_knows_is_no_answer_once_another_has_taken_over(database, make):
    async with open_database(database, "serve") as former:
        await former.append(make(1))
        await former.prove(time.monotonic())
        expire(database)
        async with open_database(database, "serve") as owner:
            with pytest.raises(Fenced):
                await former.prove(time.monotonic())
            await owner.prove(time.monotonic())


async def test_who_has_handed_the_journal_over_is_let_count_nothing_more(database, make):
    async with open_database(database, "serve") as journal:
        await journal.append(make(1, id="order-1001-1"))
        await journal.hand_over()
        for id_ in ("new", "order-1001-1", "order-1001-2"):
            with pytest.raises(Fenced):
                await journal.exists(1, Kind.PAYMENT, id_)
            with pytest.raises(Fenced):
                await journal.first_and_last(1, id_)
        assert (await journal.standing()).last == 1


async def test_an_append_proves_and_all_who_wait_look_once(database, make):
    async with owned_through_proxy(database) as (proxy, journal):
        before = time.monotonic()
        await journal.append(make(1))
        proxy.requests.clear()
        await journal.prove(before)
        waiting = [asyncio.create_task(journal.prove(time.monotonic())) for _ in range(50)]
        await proxy.held.wait()
        assert not any(each.done() for each in waiting)
        proxy.requests.set()
        await asyncio.gather(*waiting)
        assert len(do(database, _OWN_SESSIONS)) <= 3


_OWN_SESSIONS = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name = 'tollkeeper'"
)


async def test_others_may_read_up_to_what_the_owner_has_heard_to_be_kept(database, make):
    async with owned_through_proxy(database) as (proxy, journal):
        for number in (1, 2):
            await journal.append(make(number))
        safe = "SELECT last_place, safe_place FROM shards"
        assert do(database, safe) == [(2, 1)]
        await journal.renew()
        assert do(database, safe) == [(2, 2)]
        proxy.answers.clear()
        unknown = journal.append(make(3))
        await proxy.held.wait()
        assert do(database, safe) == [(3, 2)]
        proxy.cut()
        await unknown


async def test_a_database_of_another_program_is_left_alone(database):
    do(database, "CREATE TABLE journal (entry text)")
    with pytest.raises(Exception, match="has a table `journal` of another program"):
        async with open_database(database, "serve"):
            pass
    assert do(database, "SELECT to_regclass('shards')") == [(None,)]


async def test_an_unreachable_database_is_told_of_without_its_password():
    with pytest.raises(Unavailable, match="cannot reach `postgresql") as told:
        async with open_database("postgresql://me:secret@127.0.0.1:1/none", "serve"):
            pass
    assert "secret" not in str(told.value)


async def test_a_journal_that_was_left_says_so_to_who_still_reads(database):
    async with follow_database(database) as journal:
        await journal.standing()
    with pytest.raises(Unavailable, match="the journal was left"):
        await journal.standing()


async def test_those_who_read_at_once_never_wait_to_leave_their_connections(
    database, monkeypatch, switching_often
):
    monkeypatch.setattr(postgres_journal, "_POINT_READS", 1)
    async with follow_database(database) as journal:
        at_once = Barrier(3)

        def read():
            with journal._reader():
                at_once.wait()

        with ThreadPoolExecutor(3) as threads:
            for _ in range(40):
                reading = [threads.submit(read) for _ in range(3)]
                done, waiting = wait(reading, timeout=30)
                # A read takes one out, so that who waits can leave.
                while waiting:
                    await journal.standing()
                    _, waiting = wait(reading, timeout=0.1)
                assert len(done) == 3


@pytest.fixture
def switching_often():
    """Threads take turns wherever they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


async def test_after_a_cut_a_long_read_finds_no_connection_that_was_cut(database, make):
    async with proxy_to(database) as (proxy, through), open_database(through, "serve") as journal:
        await journal.append(make(1))
        at_once = Barrier(3)
        await asyncio.gather(*[journal.query(lambda _: at_once.wait(30)) for _ in range(3)])
        proxy.cut()
        assert await journal.exists(1, Kind.PAYMENT, "p1")
        assert await asyncio.to_thread(lambda: sum(map(len, journal.replay()))) == 1
