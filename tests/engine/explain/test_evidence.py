"""The records listed for an aggregate are those that gave the value recorded with the decision."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings

from tollkeeper.engine.explain import explain as explaining
from tollkeeper.engine.explain.explain import explain
from tollkeeper.engine.privacy.erasure import erase_user
from tollkeeper.engine.programs.compile.explain import ExplainedHistory
from tollkeeper.tests.engine.happenings import RULE, USERS, bare, happen, steps
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop

pytestmark = pytest.mark.anyio
MINUTE = 60_000_000


async def explained(shop: Shop, id_: str) -> dict[str, ExplainedHistory]:
    found = await explain(shop.engine.journal, shop.engine.past_states, shop.account, id_)
    assert found is not None
    assert found.rule is not None
    return {each.text: each for each in found.rule.histories}


def ids(history: ExplainedHistory) -> list[str]:
    assert history.records is not None, history.note
    return [record.id for record in history.records]


async def listed_and_recorded(folder: Path, happened: list[Any]) -> None:
    async with open_shop(folder) as shop:
        await shop.publish(RULE)
        await happen(shop, happened)
        paid = [number for number, (_, (what, _)) in enumerate(happened) if what == "pay"]
        for number in paid:
            for history in (await explained(shop, f"p-{number}")).values():
                assert_listed(history)


def assert_listed(history: ExplainedHistory) -> None:
    """What can be told from the text alone: how many there are, and what they add up to."""
    if history.note == "a part of the key is missing":
        assert history.value == "missing"
        return
    if history.note is not None:
        assert history.note.endswith(("too many to list", "not listed"))
        return
    assert history.records is not None
    values = [record.value for record in history.records]
    match history.text.partition("(")[0]:
        case "count":
            assert len(values) == int(history.value)
        case "distinct":
            assert len(set(values)) == int(history.value)
        case "sum":
            assert sum(map(float, values)) == float(history.value)  # type: ignore[arg-type]
        case "max":
            highest = max(map(float, values), default=None)  # type: ignore[arg-type]
            assert (
                history.value == "missing" if highest is None else highest == float(history.value)
            )
        case "first":
            assert (not values) == (history.value == "true")
        case "any":
            assert ("true" in values) == (history.value == "true")
        case _:
            assert len(values) == (history.value != "missing")


changing = ("pay", "update", "lose", "write")
undisturbed = steps.map(lambda all_: [each for each in all_ if each[1][0] in changing])


@settings(max_examples=8, deadline=None)
@given(happened=undisturbed)
@example(
    [(0, ("pay", bare())), (0, ("pay", bare(late=1))), (0, ("update", (0, "declined", "2222")))]
)
@example([(0, ("pay", bare(user="u"))) for _ in range(12)])
def test_what_is_listed_gives_the_value_that_was_recorded(happened: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(listed_and_recorded(Path(folder), happened))


async def test_records_are_listed_as_they_were_known_then(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        await shop.publish(RULE)
        await happen(
            shop,
            [
                (0, ("pay", bare(user="u"))),
                (MINUTE, ("pay", bare(user="u", late=2 * MINUTE, amount=7))),
                (MINUTE, ("update", (0, "succeeded", None))),
                (MINUTE, ("pay", bare(user="u"))),
                (MINUTE, ("update", (1, "succeeded", None))),
                (MINUTE, ("pay", bare(user="v"))),
            ],
        )
        now = await explained(shop, "p-3")
        count = "count(payments by user.id over 1h)"
        assert ids(now[count]) == ["p-1", "p-0", "p-3"]
        succeeded = now['sum(payments.amount by user.id over 2h where status == "succeeded")']
        assert [(each.id, each.value) for each in succeeded.records or ()] == [("p-0", "1.00")]
        assert ids(now["age(payments by user.id)"]) == ["p-1"]
        assert ids(now["interval(payments by user.id)"]) == ["p-0"]
        assert ids((await explained(shop, "p-0"))[count]) == ["p-0"]
        assert ids((await explained(shop, "p-0"))["age(payments by user.id)"]) == []


async def test_it_is_said_when_what_was_counted_is_gone(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        await shop.publish(RULE)
        await happen(shop, [(MINUTE, ("pay", bare(user=user))) for user in (*USERS, USERS[1])])
        before = await explained(shop, "p-2")
        await erase_user(shop.engine, shop.account, "test", USERS[0])
        after = await explained(shop, "p-2")
        by_card = "interval(payments by method.card.fingerprint)"
        by_user = "count(payments by user.id over 1h)"
        assert ids(before[by_user]) == ids(after[by_user]) == ["p-1", "p-2"]
        assert ids(before[by_card]) == ids(after[by_card]) == ["p-1"]
        shop.now += 1
        first = await explained(shop, "p-1")
        assert first[by_card].note == "some records were changed, erased or purged since"


async def test_a_window_that_is_too_full_is_not_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "LOOKED_THROUGH", 3)
    async with open_shop(tmp_path) as shop:
        await shop.publish(RULE)
        await happen(shop, [(40 * MINUTE, ("pay", bare(user="u"))) for _ in range(5)])
        found = await explained(shop, "p-4")
        assert ids(found["count(payments by user.id over 1h)"]) == ["p-3", "p-4"]
        assert ids(found["interval(payments by user.id)"]) == ["p-3"]
        long = found["count(payments by user.id over 3d)"]
        assert (long.value, long.note) == ("5", "more than 3 entries to look through")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
