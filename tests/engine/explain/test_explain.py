"""A decision is explained by what the account was when it was made, however much came since."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tollkeeper.engine.explain.explain import Explanation, explain
from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.publish.change_lists import PutEntries, RemoveEntries
from tollkeeper.engine.registry.changes import SettingsChanged, Thresholds
from tollkeeper.tests.engine.offline.backtest.shop import NAME, Shop, open_shop

pytestmark = pytest.mark.anyio
RULE = """rule checkout
  list blocked: ip
  table bins by prefix: country: string
  let from = @bins[method.card.bin].country
  condition blocked when device.ip_address in @blocked then deny
  condition abroad when from == "BR" then challenge
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def pay(shop: Shop, id_: str) -> None:
    shop.now += 1
    card = {"network": "visa", "presence": "card_not_present", "bin": "40000000"}
    await shop.create(
        {
            "id": id_,
            "type": "purchase",
            "currency": "BRL",
            "amount": 5,
            "method": {"type": "card", "card": card},
            "merchant": {"id": "m"},
            "device": {"ip_address": "198.51.100.7"},
            "analyze": {"bot_behaviour": True, "rule": {"name": NAME}},
        }
    )


async def put(shop: Shop, name: str, *entries: object) -> None:
    await shop.do(PutEntries("shop", name, [*entries]))


async def remove(shop: Shop, name: str, *values: str) -> None:
    await shop.do(RemoveEntries("shop", name, [*values]))


async def explained(shop: Shop, id_: str) -> Explanation:
    found = await explain(shop.engine.journal, shop.engine.past_states, shop.account, id_)
    assert found is not None
    assert found.repeated
    return found


async def test_lists_and_tables_are_looked_into_as_they_were_then(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        await shop.publish(RULE)
        await pay(shop, "before")
        await put(shop, "bins", {"value": "4", "columns": {"country": "US"}})
        await put(shop, "bins", {"value": "40000", "columns": {"country": "BR"}})
        await pay(shop, "in the table")
        await put(shop, "blocked", {"value": "198.51.0.0/16"})
        await pay(shop, "in the list")
        await remove(shop, "blocked", "198.51.0.0/16")
        await remove(shop, "bins", "40000")
        await pay(shop, "after")
        found = {}
        for id_ in ("before", "in the table", "in the list", "after"):
            rule = (await explained(shop, id_)).rule
            assert rule is not None
            found[id_] = (rule.met, rule.lets[0].value.value)
        assert found == {
            "before": (None, "missing"),
            "in the table": ("abroad", '"BR"'),
            "in the list": ("blocked", '"BR"'),
            "after": (None, '"US"'),
        }


async def test_settings_are_those_of_then_among_many_changes(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        await shop.publish(RULE)
        expected = {}
        # More sequence numbers than an explanation folds on from.
        for number in range(150):
            settings = shop.engine.state.accounts[shop.account].settings
            thresholds = Thresholds(number % 50, 85)
            change = SettingsChanged(replace(settings, thresholds=thresholds), ("thresholds",))
            await make_change(shop.engine, shop.account, "test", change)
            await pay(shop, f"p-{number}")
            expected[f"p-{number}"] = thresholds
        assert shop.engine.journal.last_sequence() > 256
        some = list(expected)[::5]
        for ids in (some, some[::-1]):
            for id_ in ids:
                assert (await explained(shop, id_)).thresholds == expected[id_]
