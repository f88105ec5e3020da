"""Databases of tests that were killed are dropped at the next start, and no others."""

from __future__ import annotations

import signal
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

import psycopg

from tollkeeper.tests.postgres import SERVER, drop_abandoned, own_database
from tollkeeper.tests.service.process import FORKED, PATIENCE_S, Process


def hold_database(told: Connection) -> None:
    with own_database() as url:
        told.send(url)
        signal.pause()


def is_there(url: str) -> bool:
    with psycopg.connect(SERVER) as server:
        name = urlsplit(url).path.removeprefix("/")
        asked = server.execute("SELECT FROM pg_database WHERE datname = %s", [name])
        return asked.fetchone() is not None


def test_the_database_of_a_killed_process_is_dropped_and_that_of_a_living_one_stays() -> None:
    with own_database() as ours:
        hear, tell = FORKED.Pipe(duplex=False)
        with hear, tell:
            process = Process(hold_database, tell)
            assert hear.poll(PATIENCE_S)
            theirs = hear.recv()
            drop_abandoned()
            assert is_there(theirs)
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE_S)
        while is_there(theirs):
            # The server notices the end of its connection when it does.
            drop_abandoned()
        assert is_there(ours)
    assert not is_there(ours)
