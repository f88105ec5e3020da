"""Transactions of a process that writes while another one holds the journal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tollkeeper.engine.journal.connection import SqlConnection

PAUSE = 2.0
"""The pause after a transaction, as a multiple of the transaction's own length."""


@contextmanager
def short_transaction(connection: SqlConnection) -> Iterator[None]:
    """One transaction, followed by a pause in which others can take the write lock.

    SQLite has no queue for the write lock: waiting processes poll for it, and without pauses
    between transactions they may wait for seconds.
    """
    connection.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    with connection:
        yield
    time.sleep(PAUSE * (time.monotonic() - start))
