"""`toll payments`: the filter and the order that it has in common with the service."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tollkeeper.cli import main
from tollkeeper.tests.engine.columns.test_export import payment
from tollkeeper.tests.engine.offline.backtest.shop import open_shop


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("since:1h until:2h", "since: `since` is not before `until`"),
        ("score:0.5..0.4", "score_from: the lowest score is more than the highest"),
    ],
)
def test_a_filter_that_nothing_can_match_is_refused(tmp_path: Path, wanted: str, said: str) -> None:
    data = ["--data", str(tmp_path / "data")]
    assert CliRunner().invoke(main, ["accounts", "create", "shop", *data]).exit_code == 0
    asked = ["payments", wanted, "--account", "shop", *data]
    for more in ([], ["--count"]):
        done = CliRunner().invoke(main, [*asked, *more])
        assert done.exit_code == 1
        assert said in done.stderr


def test_the_dearest_come_first_in_one_currency(tmp_path: Path) -> None:
    async def live() -> None:
        async with open_shop(tmp_path) as shop:
            for number in (1, 3, 2):
                await shop.create(payment(number, "ana"))

    asyncio.run(live())
    asked = ["payments", "--sort", "dearest", "--account", "shop", "--data", str(tmp_path)]
    found = CliRunner().invoke(main, [*asked, "currency:BRL", "--json"])
    ids = [each["id"] for each in json.loads(found.stdout)["payments"]]
    assert ids == ["p-3", "p-2", "p-1"]
    refused = CliRunner().invoke(main, asked)
    assert refused.exit_code == 1
    assert "amounts are compared in one currency" in refused.stderr
