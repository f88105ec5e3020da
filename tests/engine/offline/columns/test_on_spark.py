"""On Spark a backtest says what it says on one machine."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from shutil import which

import pytest

from tollkeeper.engine.columns import days
from tollkeeper.engine.columns.export import export_columns
from tollkeeper.engine.instants import DAY, to_microseconds
from tollkeeper.engine.offline.backtest.backtest import backtest_account
from tollkeeper.engine.offline.columns.backtest import backtest_columns
from tollkeeper.tests.engine.offline.backtest.shop import START, open_shop
from tollkeeper.tests.engine.offline.backtest.test_backtest import rule
from tollkeeper.tests.engine.offline.backtest.test_same_as_live import an_eventful_evening
from tollkeeper.tests.engine.offline.columns.test_same_as_replay import MIXED, REPLAYED, quiet

on_spark = pytest.importorskip(
    "tollkeeper.engine.offline.columns.on_spark", reason="needs `pip install tollkeeper[spark]`"
)
if which("java") is None:
    pytest.skip("needs Java 17 or newer", allow_module_level=True)


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shop")

    async def live() -> None:
        async with open_shop(made / "data") as shop:
            await an_eventful_evening(shop)

    asyncio.run(live())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(days, "PART_NUMBERS", 200)
        export_columns(made / "data", made / "columns", None)
    return made


@pytest.mark.parametrize("text", [MIXED, REPLAYED])
def test_the_report_is_that_of_the_journal(
    evening: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_spark, "PAYMENTS_A_PART", 400)
    of = (rule(text), (0, to_microseconds(START) + DAY), {}, quiet)
    compare = partial(on_spark.compare_on_spark, "local[2]")
    report = backtest_columns(evening / "columns", "shop", *of, compare=compare)
    assert report == backtest_account(evening / "data", "shop", *of)
