"""On Spark a backtest says what it says on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shutil import copytree, which
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.bench.cluster import ON_LOOPBACK, spark_cluster
from tollkeeper.engine.columns import days
from tollkeeper.engine.columns.export import export_columns
from tollkeeper.engine.instants import DAY, HOUR, to_microseconds
from tollkeeper.engine.offline.backtest.backtest import backtest_account
from tollkeeper.engine.offline.columns.backtest import backtest_columns
from tollkeeper.engine.offline.columns.count_windows import WindowsPart, split_windows
from tollkeeper.tests.engine.happenings import steps
from tollkeeper.tests.engine.offline.backtest.shop import START
from tollkeeper.tests.engine.offline.backtest.test_backtest import rule
from tollkeeper.tests.engine.offline.backtest.test_same_as_live import an_eventful_evening
from tollkeeper.tests.engine.offline.columns.test_same_as_replay import (
    ANEW,
    MIXED,
    REPLAYED,
    configured,
    lived,
    pays,
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
    copytree(an_eventful_evening(), made / "data")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(days, "PART_NUMBERS", 200)
        export_columns(made / "data", made / "columns", None)
    return made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master with two workers of one core each."""
    with (
        pytest.MonkeyPatch.context() as patched,
        spark_cluster(tmp_path_factory.mktemp("spark"), 2) as running,
    ):
        for name, value in ON_LOOPBACK.items():
            patched.setenv(name, value)
        yield running.address


# Spark's own client leaves a socket to the collector of garbage.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.parametrize("text", [MIXED, REPLAYED])
def test_two_workers_report_what_the_journal_does(evening: Path, cluster: str, text: str) -> None:
    of = (rule(text), (0, to_microseconds(START) + DAY), {}, quiet)
    compare = partial(on_spark.compare_on_spark, cluster, share=400)
    report = backtest_columns(evening / "columns", "shop", *of, compare=compare)
    assert report == backtest_account(evening / "data", "shop", *of)


def test_history_of_a_key_that_all_share_is_cut_in_time(
    evening: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = []

    def split(*of: Any) -> Iterator[WindowsPart]:
        for part in split_windows(*of):
            cut.append((part.key, part.span))
            yield part

    monkeypatch.setattr(on_spark, "split_windows", split)
    text = """
rule checkout
  condition busy when count(payments by merchant.id over 11m where status != "failed") > 30 then deny
"""
    late = HOUR // 12
    of = (rule(text), (0, to_microseconds(START) + DAY), {}, quiet, late)
    compare = partial(on_spark.compare_on_spark, cluster, share=400)
    report = backtest_columns(evening / "columns", "shop", *of, compare)
    assert report == backtest_account(evening / "data", "shop", *of)
    assert len(cut) > 1
    assert all(key is None for key, _ in cut)


@given(pays, steps, configured, st.integers(0, 40))
@settings(max_examples=2, deadline=None)
def test_any_history_gets_the_report_of_one_machine(
    cluster: str, paid: list[Any], further: list[Any], changes: list[Any], stop: int
) -> None:
    with TemporaryDirectory() as made:
        folder, target = Path(made, "data"), Path(made, "columns")
        asyncio.run(lived(folder, [*paid[:8], *further, *paid[8:]], changes, stop))
        of = (rule(ANEW), (0, to_microseconds(START) + 99 * DAY), {}, quiet)
        compare = partial(on_spark.compare_on_spark, cluster, share=15)
        report = backtest_columns(target, "shop", *of, compare=compare)
        assert report == backtest_columns(target, "shop", *of)
