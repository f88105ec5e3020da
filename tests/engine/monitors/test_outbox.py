"""What a webhook has in the outbox is bounded: the newest stay, and it is said how many do not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import Random

import pytest
from msgspec.structs import replace

from tollkeeper.engine.folder_key import FolderKey
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.postgres.connection import connect
from tollkeeper.engine.journal.postgres.schema import prepare_tables
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.monitors.outbox import Backlog, Notice
from tollkeeper.engine.monitors.states import MonitorState
from tollkeeper.tests.postgres import own_database

KEY = FolderKey(bytes(32))
DEAD, OTHER = "https://dead.example/", "https://other.example/"


@contextmanager
def in_sqlite() -> Iterator[SqlConnection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        outbox.create_tables(opened)
        yield opened


@contextmanager
def in_postgres() -> Iterator[SqlConnection]:
    with own_database() as url, closing(connect(url)) as opened:
        prepare_tables(opened, url)
        yield opened


@pytest.fixture(params=[in_sqlite, in_postgres])
def connection(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SqlConnection]:
    monkeypatch.setattr(outbox, "MAX_WAITING", 5)
    monkeypatch.setattr(outbox, "MAX_SETTLED", 3)
    with request.param() as opened:
        for url in (DEAD, OTHER):
            put(opened, url, range(1, 5))
        yield opened


def put(connection: SqlConnection, url: str, sequences: range) -> None:
    notices = [Notice(1, url, "payment.decided", each, subject=f"p-{each}") for each in sequences]
    outbox.add_notices(connection, notices, KEY, now=0)


def subjects(connection: SqlConnection, url: str, state: str) -> list[str]:
    found = outbox.deliveries(connection, 1, None, 100, url)
    return [each.subject for each in found if each.state == state]


def test_the_oldest_are_given_up_for_a_receiver_that_is_dead(
    connection: SqlConnection,
) -> None:
    assert outbox.trim(connection, 1, DEAD) == 0
    put(connection, DEAD, range(5, 12))
    assert outbox.trim(connection, 1, DEAD) == 6
    assert subjects(connection, DEAD, "pending") == ["p-11", "p-10", "p-9", "p-8", "p-7"]
    assert subjects(connection, DEAD, "dropped") == ["p-6", "p-5", "p-4"]
    put(connection, DEAD, range(12, 14))
    assert outbox.trim(connection, 1, DEAD) == 2
    assert outbox.backlog(connection, 1, DEAD) == Backlog(waiting=5, given_up=8)
    assert outbox.backlog(connection, 1, OTHER) == Backlog(waiting=4, given_up=0)
    assert len(outbox.deliveries(connection, 1, None, 100, DEAD)) == 5 + 3


def test_of_what_was_delivered_the_newest_are_known(connection: SqlConnection) -> None:
    for each in outbox.deliveries(connection, 1, None, 100, OTHER):
        outbox.set_delivery(connection, each, replace(each, state="delivered"))
    assert outbox.trim(connection, 1, OTHER) == 0
    assert subjects(connection, OTHER, "delivered") == ["p-4", "p-3", "p-2"]


def test_a_notice_that_is_there_already_stays_as_it_is(connection: SqlConnection) -> None:
    first = outbox.deliveries(connection, 1, None, 100, DEAD)[-1]
    outbox.set_delivery(connection, first, replace(first, state="delivered", attempts=1))
    put(connection, DEAD, range(1, 5))
    assert subjects(connection, DEAD, "pending") == ["p-4", "p-3", "p-2"]


def test_what_is_asked_for_again_while_it_is_sent_is_sent_again(connection: SqlConnection) -> None:
    first = outbox.deliveries(connection, 1, None, 100, DEAD)[-1]
    again = outbox.redeliver(connection, 1, DEAD, first.id, now=7)
    outbox.set_delivery(connection, first, replace(first, state="delivered", next_at=9))
    assert outbox.deliveries(connection, 1, None, 100, DEAD)[-1] == again
    assert again is not None
    outbox.set_delivery(connection, again, replace(again, state="delivered", next_at=9))
    assert subjects(connection, DEAD, "delivered") == ["p-1"]


def test_an_alert_hides_no_notice_of_the_entry_that_raised_it(connection: SqlConnection) -> None:
    outbox.add_notices(connection, [Notice(1, DEAD, "alert.raised", 4)], KEY, now=0)
    put(connection, DEAD, range(4, 6))
    outbox.add_notices(connection, [Notice(1, DEAD, "alert.raised", 5)], KEY, now=0)
    kinds = [(each.sequence, each.kind) for each in outbox.deliveries(connection, 1, None, 4, DEAD)]
    assert sorted(kinds) == [
        (4, "alert.raised"),
        (4, "payment.decided"),
        (5, "alert.raised"),
        (5, "payment.decided"),
    ]


def test_what_a_removed_webhook_left_is_dropped(connection: SqlConnection) -> None:
    put(connection, DEAD, range(5, 12))
    outbox.trim(connection, 1, DEAD)
    outbox.forget_webhook(connection, 1, DEAD)
    assert outbox.backlog(connection, 1, DEAD) == Backlog(waiting=0, given_up=0)
    assert outbox.backlog(connection, 1, OTHER).waiting == 4


def test_the_addresses_that_are_due_are_each_found_once(connection: SqlConnection) -> None:
    notices = [Notice(2, OTHER, "payment.decided", each) for each in range(20, 24)]
    outbox.add_notices(connection, notices, KEY, now=50)
    assert outbox.due_addresses(connection, 0) == [(1, DEAD), (1, OTHER)]
    assert outbox.due_addresses(connection, 50) == [(1, DEAD), (1, OTHER), (2, OTHER)]
    outbox.forget_webhook(connection, 1, DEAD)
    assert outbox.due_addresses(connection, 50) == [(1, OTHER), (2, OTHER)]


def test_a_state_is_kept_for_a_key_of_any_length_and_only_the_newest(
    connection: SqlConnection,
) -> None:
    # No database compresses this to fit into an index.
    long = (Random(1).randbytes(6000).hex(), "café\0")
    for sequence, is_met, at in [(7, True, 70), (9, False, 90), (8, True, 80), (9, True, 90)]:
        turns = [Transition("sign_in", "failing", key, at, is_met) for key in (long, ("u-1",))]
        outbox.add_alerts(connection, 1, sequence, turns, [], KEY, now=0)
    known = dict(outbox.monitor_states(connection))
    expected = MonitorState(9, met=False, alerted=70)
    assert known == {(1, "sign_in", "failing", key): expected for key in (long, ("u-1",))}
    outbox.forget_monitor_states(connection, [(1, "sign_in", "failing", long)])
    assert [of[3] for of, _ in outbox.monitor_states(connection)] == [("u-1",)]
