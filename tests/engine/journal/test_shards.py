"""A database's shards: journals of their own, in one of which each account is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.journal.contract import JournalError, Shard
from tollkeeper.engine.journal.postgres.connection import connect
from tollkeeper.engine.journal.postgres.journal import follow_database, open_database
from tollkeeper.engine.journal.postgres.shards import (
    address_of_shard,
    assign_home,
    home_of,
    open_shards,
)
from tollkeeper.engine.journal.source import Database, shards_of
from tollkeeper.engine.registry.accounts import create_account
from tollkeeper.engine.registry.keys import shard_mark, shard_named
from tollkeeper.engine.registry.state import Account, Configuration
from tollkeeper.tests.postgres import own_database

pytestmark = pytest.mark.anyio


@pytest.fixture
def url() -> Iterator[str]:
    with own_database() as made:
        yield made


async def test_each_shard_is_a_journal_with_an_owner_of_its_own(url: str, make) -> None:
    assert open_shards(url, 3) == open_shards(url, None) == open_shards(url, 3) == 3
    first, second, third = [address_of_shard(url, number) for number in (1, 2, 3)]
    async with open_database(second, "serve") as journal:
        await journal.append(make(1))
        assert journal.shard == Shard(2, 3)
        # The others are still free, and have nothing of it.
        async with open_database(first, "serve") as other, open_database(third, "serve") as last:
            assert [each.last_sequence() for each in (other, journal, last)] == [0, 1, 0]
            await last.append(make(1))
            assert [each.shard.number for each in (other, last)] == [1, 3]
    places = [each.url for each in shards_of(Database(url, Path("data")))]
    assert places == [first, second, third]


async def test_how_many_shards_there_are_is_settled_when_a_database_is_first_served(
    url: str, make
) -> None:
    async with open_database(url, "serve") as journal:
        await journal.append(make(1))
    assert open_shards(url, None) == 1
    with pytest.raises(JournalError, match="has 1 shards, not 2: how many is settled when"):
        open_shards(url, 2)


def test_accounts_are_shared_out_and_each_name_keeps_its_shard(url: str) -> None:
    with closing(connect(url)) as connection:
        # Before there are tables all is in the first.
        assert [home_of(connection, "shop"), assign_home(connection, "shop")] == [1, 1]
        open_shards(url, 3)
        names = [f"shop-{number}" for number in range(6)]
        homes = [assign_home(connection, name) for name in names]
        assert sorted(homes) == [1, 1, 2, 2, 3, 3]
        assert [assign_home(connection, name) for name in names] == homes
        assert [home_of(connection, name) for name in names] == homes
        assert home_of(connection, "unknown") == 1


async def test_a_journal_given_to_a_node_is_taken_by_no_other_for_a_moment(url: str, make) -> None:
    async with (
        open_database(url, "serve") as owner,
        follow_database(url) as chosen,
        follow_database(url) as other,
    ):
        await owner.append(make(1))
        await owner.hand_over(chosen.node)
        assert owner.is_lost
        assert not await other.take_over("serve", "")
        assert await chosen.take_over("serve", "http://chosen")
        assert chosen.last_sequence() == 1
        await chosen.append(make(2))


@given(st.integers(1, 64), st.data())
def test_no_two_shards_give_an_account_the_same_number(of: int, data: st.DataObject) -> None:
    made: list[int] = []
    for number in data.draw(st.lists(st.integers(1, of), max_size=20)):
        own = [each for each in made if each % of == number % of]
        state = Configuration(accounts={each: Account(each, str(each), 0) for each in own})
        made.append(create_account(state, "new", Shard(number, of))[0])
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("prefix", ["", "toll_", "toll_test_", "tolls_"])
def test_a_secret_names_its_shard(prefix: str) -> None:
    assert shard_named(f"{prefix}{shard_mark(12)}a_3.b") == 12
    assert shard_named(f"{prefix}{shard_mark(1)}3a-_b") == 1


@given(st.text())
def test_whatever_is_sent_names_some_shard(secret: str) -> None:
    assert 1 <= shard_named(secret) <= 999
