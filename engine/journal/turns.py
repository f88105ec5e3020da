"""Short transactions beside those of who writes the journal."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

PAUSE = 2.0
"""How long nothing is written after a transaction, in its own length."""


@contextmanager
def turn(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction, and then a pause that leaves the others their turn.

    SQLite has no queue: who waits for the write lock looks for it now and then, and beside
    transactions without pauses may do so in vain for seconds.
    """
    connection.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    with connection:
        yield
    time.sleep(PAUSE * (time.monotonic() - start))
