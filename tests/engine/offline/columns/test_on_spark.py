"""On Spark a backtest says what it says on one machine."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from shutil import which
from time import sleep

import pytest

from tollkeeper.engine.columns import days
from tollkeeper.engine.columns.export import export_columns
from tollkeeper.engine.instants import DAY, to_microseconds
from tollkeeper.engine.offline.backtest.backtest import backtest_account
from tollkeeper.engine.offline.columns.backtest import backtest_columns
from tollkeeper.tests.engine.offline.backtest.shop import START, open_shop
from tollkeeper.tests.engine.offline.backtest.test_backtest import rule
from tollkeeper.tests.engine.offline.backtest.test_same_as_live import an_eventful_evening
from tollkeeper.tests.engine.offline.columns.test_same_as_replay import (
    MIXED,
    REPLAYED,
    quiet,
)

pyspark = pytest.importorskip("pyspark", reason="needs `pip install tollkeeper[spark]`")
pytest.importorskip("pandas", reason="needs `pip install tollkeeper[spark]`")
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


@contextmanager
def spark_process(log: Path, *command: str) -> Iterator[str]:
    """A process of a cluster; gives what it says of the port that it was given."""
    home = Path(pyspark.__file__).parent
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [home / "bin" / "spark-class", *command],
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=log.parent,
        ) as process,
    ):
        try:
            while not (found := re.search(r"on port (\d+)|Starting Spark worker", log.read_text())):
                assert process.poll() is None, log.read_text()
                sleep(0.1)
            yield found[1]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master with two workers of one core each."""
    logs, local = tmp_path_factory.mktemp("spark"), ("--host", "127.0.0.1", "--port", "0")
    role, no_pages = "org.apache.spark.deploy", ("--webui-port", "0")
    with ExitStack() as running:
        running.enter_context(pytest.MonkeyPatch.context()).setenv("SPARK_LOCAL_IP", "127.0.0.1")
        master = spark_process(logs / "master", f"{role}.master.Master", *local, *no_pages)
        address = f"spark://127.0.0.1:{running.enter_context(master)}"
        for number in range(2):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(logs / f"work-{number}"))
            worker = (f"{role}.worker.Worker", *local, *no_pages, *size, address)
            running.enter_context(spark_process(logs / f"worker-{number}", *worker))
        yield address


# Spark's own client leaves a socket to the collector of garbage.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("text", [MIXED, REPLAYED])
def test_two_workers_report_what_the_journal_does(
    evening: Path, cluster: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_spark, "PAYMENTS_A_PART", 400)
    of = (rule(text), (0, to_microseconds(START) + DAY), {}, quiet)
    compare = partial(on_spark.compare_on_spark, cluster)
    report = backtest_columns(evening / "columns", "shop", *of, compare=compare)
    assert report == backtest_account(evening / "data", "shop", *of)
