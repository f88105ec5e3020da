"""Transactions of a process that writes beside the one that holds the journal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tollkeeper.engine.journal.connection import SqlConnection

PAUSE = 2.0
"""The pause after a transaction, as a multiple of the transaction's own length."""


@contextmanager
def short_transaction(connection: SqlConnection) -> Iterator[None]:
    """One transaction, and then a pause in which others can take the write lock.

    SQLite does not queue those who wait for the write lock, they look for it now and then: beside
    transactions without pauses they may wait for seconds.
    """
    connection.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    with connection:
        yield
    time.sleep(PAUSE * (time.monotonic() - start))
