"""Each batch follows an index in PostgreSQL as well, which may have no statistics of a new table yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.connection import FoundRows, SqlConnection
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.inspect import inspect_journal
from tollkeeper.engine.journal.postgres.connection import PostgresConnection, connect
from tollkeeper.engine.journal.postgres.schema import prepare_tables
from tollkeeper.tests.postgres import own_database

ENTRIES = 20_000
FILL = f"""
INSERT INTO journal (place, account, kind, id, arrived, time, body)
SELECT place, 1 + (place % 2), {Kind.PAYMENT:d}, 'p-' || place, place, place, convert_to(repeat('x', 900), 'UTF8')
FROM generate_series(1, {ENTRIES}) AS place
"""
FILL_IDS = "INSERT INTO ids SELECT account, id, kind, place FROM journal"
UPDATED = 100
UPDATE = f"""
INSERT INTO journal (place, account, kind, id, arrived, time, body)
SELECT place, account, {Kind.UPDATE:d}, id, arrived, time, body FROM (
  SELECT {ENTRIES} + place / 2 AS place, account, id, arrived, time, body FROM journal
  WHERE account = 1 ORDER BY journal.place LIMIT {UPDATED}
) AS updated
"""


class Explaining:
    """A connection that asks for the plan of each query before it."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection
        self.plans: list[str] = []

    def execute(self, query: str, parameters: Any = (), /) -> FoundRows:
        plan = self._connection.execute(f"EXPLAIN {query}", parameters)
        self.plans.append("\n".join(line for (line,) in plan))
        return self._connection.execute(query, parameters)


@pytest.fixture
def connection() -> Iterator[PostgresConnection]:
    with own_database() as url, closing(connect(url)) as connection:
        prepare_tables(connection, url)
        connection.execute(FILL)
        connection.execute(UPDATE)
        connection.execute(FILL_IDS)
        yield connection


def test_no_batch_sorts_what_is_left_of_an_account(connection: PostgresConnection) -> None:
    asked = Explaining(connection)
    kinds = (Kind.PAYMENT, Kind.UPDATE)
    first = next(reads.replay_entries(asked, 1, 0, 0, ENTRIES, kinds))
    assert [entry.sequence for entry in first] == [*range(2, 2 * len(first) + 1, 2)]
    assert next(reads.replay_latest(asked, 1, 0, 0, ENTRIES, kinds)).fresh
    batches = [plan for plan in asked.plans if "Limit" in plan and "kind" in plan]
    assert len(batches) > 1
    assert not [plan for plan in batches if "Sort" in plan]


def test_the_newest_shadow_records_are_read_without_the_payments_between_them(
    connection: PostgresConnection,
) -> None:
    connection.execute(
        f"UPDATE journal SET kind = {Kind.SHADOW:d} WHERE kind = {Kind.PAYMENT:d} AND place % 100 = 2"
    )
    asked = Explaining(connection)
    newest = next(reads.back(asked, 1, Kind.SHADOW, None))
    assert newest.sequence == ENTRIES - 98
    (plan,) = asked.plans
    assert "shadows_by_account" in plan


def test_what_follows_is_read_by_one_query_however_much_comes_before_it(
    connection: PostgresConnection,
) -> None:
    asked = Explaining(connection)
    kinds = (Kind.PAYMENT, Kind.UPDATE)
    (stretch,) = reads.replay_latest(asked, 1, 0, ENTRIES - 10, ENTRIES, kinds)
    assert [entry.sequence for entry in stretch.fresh] == [*range(ENTRIES - 8, ENTRIES + 1, 2)]
    # One for the stretch, one that finds no more.
    assert len(asked.plans) == 2


def test_payments_that_are_updated_are_looked_up_one_by_one(
    connection: PostgresConnection,
) -> None:
    asked = Explaining(connection)
    kinds = (Kind.PAYMENT, Kind.UPDATE)
    stretches = reads.replay_latest(asked, 1, 0, ENTRIES, ENTRIES + UPDATED, kinds)
    assert [len(each.amended) for each in stretches] == [UPDATED]
    (plan,) = [plan for plan in asked.plans if "VALUES" in plan]
    assert '(id = "*VALUES*".column1)' in plan


def test_the_entries_of_a_seal_are_read_without_all_others(connection: PostgresConnection) -> None:
    for last in (ENTRIES // 2, ENTRIES):
        connection.execute("INSERT INTO seals VALUES (?, 0, 0, '')", (last,))
    asked = Explaining(connection)
    inspect_journal(asked)
    assert not [plan for plan in asked.plans if "Seq Scan on journal" in plan]
