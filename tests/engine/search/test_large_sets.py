"""A user with thousands of payments in one block is found with each of them."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.search.filters import read_filter, read_members
from tollkeeper.engine.search.find import CountPayments
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.reading import open_index
from tollkeeper.tests.engine.happenings import bare, pay
from tollkeeper.tests.engine.offline.backtest.shop import open_shop

STEPS = (3, 900, 300, 2000)
"""Within a list, up to its end, beyond it, and beyond it for long."""


def test_a_set_that_outgrows_its_list_loses_and_doubles_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    account, sequence = asyncio.run(one_payment(folder))
    with closing(schema.connect(folder)) as journal, closing(Follower(folder)) as follower:
        total = 1
        for more in STEPS:
            repeat_payment(journal, sequence, total, more)
            total += more
            follower.catch_up()
            with open_index(folder, account) as index:
                assert CountPayments(read_filter(read_members("user:u"), 0)).answer(index) == total
                assert CountPayments(read_filter(read_members("user:v"), 0)).answer(index) == 0


def test_thousands_of_a_users_first_payments_are_taken_in_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    account, sequence = asyncio.run(one_payment(folder))
    with closing(schema.connect(folder)) as journal, closing(Follower(folder)) as follower:
        repeat_payment(journal, sequence, 1, 5000)
        follower.catch_up()
        repeat_payment(journal, sequence, 5001, 1)
        follower.catch_up()
        with open_index(folder, account) as index:
            assert CountPayments(read_filter(read_members("user:u"), 0)).answer(index) == 5002


async def one_payment(folder: Path) -> tuple[int, int]:
    async with open_shop(folder) as shop:
        await pay(shop, "p", bare())
        await shop.engine.journal.flush()
        with closing(schema.connect_for_reading(folder)) as journal:
            return shop.account, reads.last_sequence(journal)


def repeat_payment(journal: sqlite3.Connection, sequence: int, total: int, more: int) -> None:
    columns = "account, kind, arrived, time, body, outcome"
    numbers = [(total + each, f"p-{total + each}", sequence) for each in range(more)]
    journal.execute("BEGIN")
    journal.executemany(
        f"INSERT INTO journal (place, id, {columns})"
        f" SELECT place + ?1, ?2, {columns} FROM journal WHERE place = ?3",
        numbers,
    )
    journal.execute("COMMIT")
