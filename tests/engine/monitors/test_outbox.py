"""What a webhook has in the outbox is bounded: the newest stay, and it is said how many do not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from msgspec.structs import replace

from tollkeeper.engine.folder_key import FolderKey
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Backlog, Notice

KEY = FolderKey(bytes(32))
DEAD, OTHER = "https://dead.example/", "https://other.example/"


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    monkeypatch.setattr(outbox, "MAX_WAITING", 5)
    monkeypatch.setattr(outbox, "MAX_SETTLED", 3)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        outbox.create_tables(opened)
        for url in (DEAD, OTHER):
            put(opened, url, range(1, 5))
        yield opened


def put(connection: sqlite3.Connection, url: str, sequences: range) -> None:
    notices = [Notice(1, url, "payment.decided", each, subject=f"p-{each}") for each in sequences]
    outbox.add_notices(connection, notices, KEY, now=0)


def subjects(connection: sqlite3.Connection, url: str, state: str) -> list[str]:
    found = outbox.deliveries(connection, 1, None, 100, url)
    return [each.subject for each in found if each.state == state]


def test_the_oldest_are_given_up_for_a_receiver_that_is_dead(
    connection: sqlite3.Connection,
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


def test_of_what_was_delivered_the_newest_are_known(connection: sqlite3.Connection) -> None:
    for each in outbox.deliveries(connection, 1, None, 100, OTHER):
        outbox.set_delivery(connection, replace(each, state="delivered"))
    assert outbox.trim(connection, 1, OTHER) == 0
    assert subjects(connection, OTHER, "delivered") == ["p-4", "p-3", "p-2"]


def test_a_notice_that_is_there_already_stays_as_it_is(connection: sqlite3.Connection) -> None:
    first = outbox.deliveries(connection, 1, None, 100, DEAD)[-1]
    outbox.set_delivery(connection, replace(first, state="delivered", attempts=1))
    put(connection, DEAD, range(1, 5))
    assert subjects(connection, DEAD, "pending") == ["p-4", "p-3", "p-2"]


def test_what_a_removed_webhook_left_is_dropped(connection: sqlite3.Connection) -> None:
    put(connection, DEAD, range(5, 12))
    outbox.trim(connection, 1, DEAD)
    outbox.forget_webhook(connection, 1, DEAD)
    assert outbox.backlog(connection, 1, DEAD) == Backlog(waiting=0, given_up=0)
    assert outbox.backlog(connection, 1, OTHER).waiting == 4
