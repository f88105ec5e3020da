"""Whatever happened, the index finds and counts what a plain reading of the journal does."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.search.filters import read_filter, read_members
from tollkeeper.engine.search.find import count, find
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.reading import Index, open_index
from tollkeeper.engine.search.related import related
from tollkeeper.tests.engine.happenings import DAY, bare, happen, steps
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop
from tollkeeper.tests.engine.search.plain import Plain, chosen, recount

RULE = """
rule checkout
  condition often when count(payments by user.id over 3d) > 3 then deny
  condition small when amount < 3.00 then challenge
"""
members = st.sampled_from(
    [
        "action:allow",
        "action:challenge",
        "action:none",
        "rule:checkout",
        "rule:none",
        "version:1",
        "condition:often",
        "condition:small",
        "condition:none",
        "action:deny",
        "status:initiated",
        "status:declined",
        "status:succeeded",
        "label:fraud",
        "label:legitimate",
        "label:unsure",
        "label:none",
        "merchant:m",
        "merchant:other",
        "currency:BRL",
        "card:40000000-1111",
        "card:40000000-2222",
        "bin:40000000",
        "bin:400000",
        "ip:198.51.99.7",
        "user:u",
        "user:v",
        "since:1d",
        "until:1h",
        "score:0.02..0.5",
        "id:p-1",
    ]
)
texts = st.lists(members, max_size=3).map(" ".join)


async def compare(folder: Path, happened: list[Any], asked: list[str], stops: list[int]) -> None:
    async with open_shop(folder) as shop:
        await shop.do(ChangeSettings("shop", {"retention_days": 6}))
        await shop.publish(RULE)
        with closing(Follower(folder)) as follower:

            async def follow(_shop: Shop) -> None:
                await shop.engine.journal.flush()
                follower.catch_up()

            for stop in sorted(stops, reverse=True):
                happened = [*happened[:stop], (0, ("call", follow)), *happened[stop:]]
            await happen(shop, happened)
            await follow(shop)
        payments = await recount(shop)
        with open_index(folder, shop.account) as index:
            assert_same(index, shop, payments, asked)
        with_new_index(folder, shop, payments, asked)


def with_new_index(folder: Path, shop: Shop, payments: list[Plain], asked: list[str]) -> None:
    (folder / "search.db").unlink()
    with closing(Follower(folder)) as follower:
        follower.catch_up()
    with open_index(folder, shop.account) as index:
        assert_same(index, shop, payments, asked)


def assert_same(index: Index, shop: Shop, payments: list[Plain], asked: list[str]) -> None:
    for text in asked:
        wanted = read_filter(read_members(text), shop.now)
        expected = [each.sequence for each in chosen(payments, text, shop.now)][::-1]
        page = find(index, wanted, None, 3)
        found = [each.sequence for each in page.payments]
        while page.cursor is not None:
            page = find(index, wanted, page.cursor, 3)
            found += [each.sequence for each in page.payments]
        assert found == expected, text
        assert count(index, wanted) == len(expected), text
    for payment in payments:
        assert_related(index, payments, payment)


def assert_related(index: Index, payments: list[Plain], payment: Plain) -> None:
    shared = related(index, payment.id, None)
    assert shared is not None
    for each in shared:
        if each.by == "network":
            continue
        same = [other for other in payments if other.has(each.by, each.value)]
        assert each.tally.payments == len(same)
        assert (each.first, each.last) == (same[0].arrived, same[-1].arrived)
        labels = Counter(other.label for other in same)
        assert {name: labels[name] for name in each.tally.labels} == each.tally.labels
        statuses = Counter(other.payment.status for other in same)
        assert {name: statuses[name] for name in each.tally.statuses} == each.tally.statuses


@settings(max_examples=15, deadline=None)
@given(
    happened=steps,
    asked=st.lists(texts, min_size=1, max_size=8),
    stops=st.lists(st.integers(0, 13), max_size=4),
)
@example(
    [
        (0, ("pay", bare())),
        (1, ("label", (0, "review", "fraud"))),
        (1, ("update", (0, "succeeded", "2222"))),
        (1, ("label", (0, "chargeback", "legitimate"))),
        (1, ("erase", "u")),
        (1, ("label", (0, "chargeback", None))),
    ],
    ["", "label:fraud", "user:u", "card:40000000-2222"],
    [1, 4],
)
@example(
    [(0, ("pay", bare())), (4 * DAY, ("pay", bare())), (4 * DAY, ("purge", None))],
    ["", "user:u"],
    [1],
)
def test_what_is_found_is_what_the_journal_says(
    happened: list[Any], asked: list[str], stops: list[int]
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder), happened, asked, stops))
