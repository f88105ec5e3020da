"""How does a backtest on Spark scale: with workers, with size, and if all payments share a key?

    python -m tollkeeper.bench.spark [--payments 2e5] [--share 12500]

First the tasks that Spark would distribute run one after another in one process, for a quarter of
the payments and for all of them, spread over 20 days: the processor time of each, and the time that
so many workers of one core would take if each stage's longest tasks started first. Then a tenth of
the payments on clusters of a master and of one and two workers on this machine, which share its
processors; each report must equal that of one machine. Their processor time is that of all
processes, sampled each half second: a worker's with its executor and Python, the driver's with the
master's. Needs the extra `spark` and Java 17.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from heapq import heapify, heapreplace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tollkeeper.bench.background import repeating
from tollkeeper.bench.cluster import ON_LOOPBACK, spark_cluster
from tollkeeper.bench.columns import CHANGED, NEW_WINDOW, fill, furnish, rule
from tollkeeper.bench.servers import TICKS
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.engine.columns.export import export_columns
from tollkeeper.engine.instants import now
from tollkeeper.engine.offline.columns import on_spark
from tollkeeper.engine.offline.columns.backtest import backtest_columns, windows_asked
from tollkeeper.engine.offline.columns.count_windows import group_windows, split_windows
from tollkeeper.engine.offline.columns.exported import open_export
from tollkeeper.engine.offline.columns.rows_asked import ColumnsAsked
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.velocity.contract import LATE

DAYS = 20
ONE_KEY = CHANGED.replace("device.fingerprint.id over 1h", "merchant.id over 2h")
CUT = "a new window of one key, cut in time"
TRIED = {"recorded windows": CHANGED, "a new window": NEW_WINDOW, CUT: ONE_KEY}
WORKERS = (1, 2, 8, 32)
_LOOK_S = 0.5
_DRIVER = -1


def exported(folder: Path, payments: int, end: int) -> Path:
    """Return the export of an account whose payments are spread over the days."""
    data, target = folder / "data", folder / "columns"
    asyncio.run(furnish(data, end - 10**15))
    fill(data, payments, end, payments / (DAYS * 86_400))
    export_columns(data, target, "shop")
    return target


def task_times(target: Path, text: str, share: int) -> list[list[float]]:
    """Return the processor seconds of each task, by stage, run here as Spark's workers do."""
    job = ColumnsAsked(target, "shop", rule(text), 0, sys.maxsize, LATE, {})
    stages: list[list[float]] = []

    def stage(tasks: Iterable[Callable[[], Any]]) -> list[Any]:
        stages.append([])
        return [_timed(task, stages[-1]) for task in tasks]

    with open_export(target, "shop", 0) as history:
        days = on_spark.exported_days(history)
        parts = 1 + sum(each.payments for each in history.progress.parts.values()) // share
        read = stage(partial(on_spark.lacking_in_day, job, day) for day in days)
        lacking = sorted({place for found in read for place, _ in found})
        counted: defaultdict[int, list[bytes]] = defaultdict(list)
        for windows in group_windows(windows_asked(job, lacking)):
            split = list(split_windows(windows, history, Path(), parts))
            parts_sent: defaultdict[int, list[bytes]] = defaultdict(list)
            for found in stage(partial(_all_happened, split, day) for day in days):
                for place, sent in found:
                    parts_sent[place].append(sent)
            values = stage(
                partial(on_spark.count_sent, split[place], pa.table({"sent": sent}))
                for place, sent in parts_sent.items()
            )
            for rows in values:
                for row in rows.to_pylist():
                    counted[row["place"]].append(row["sent"])
    stage(partial(on_spark.decide_day, job, day, counted[day]) for day in days)
    return stages


def _all_happened(split: Any, day: int) -> list[Any]:
    return list(on_spark.happened_in_day(split, day))


def _timed(task: Callable[[], Any], into: list[float]) -> Any:
    begun = process_time()
    done = task()
    into.append(process_time() - begun)
    return done


def shared_out(tasks: Iterable[float], workers: int) -> float:
    """Return how long so many workers take if each always takes the longest remaining task."""
    busy = [0.0] * workers
    heapify(busy)
    for each in sorted(tasks, reverse=True):
        heapreplace(busy, busy[0] + each)
    return max(busy)


@contextmanager
def watch_processes(workers: tuple[int, ...]) -> Iterator[dict[int, float]]:
    """Yield a dictionary that holds, at the end, the processor seconds of each worker and of the
    driver.
    """
    spent = dict.fromkeys((*range(len(workers)), _DRIVER), 0.0)
    roots = {id_: number for number, id_ in enumerate(workers)} | {os.getpid(): _DRIVER}
    before, after = _used(roots), dict[tuple[int, str], tuple[int, float]]()

    try:
        with repeating(lambda: after.update(_used(roots)), _LOOK_S):
            yield spent
    finally:
        for process, (root, used) in (after | _used(roots)).items():
            spent[root] += used - before.get(process, (root, 0.0))[1]


def _used(roots: Mapping[int, int]) -> dict[tuple[int, str], tuple[int, float]]:
    """For each process below the roots, by id and start, return the nearest root and its seconds."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        seconds = (int(fields[11]) + int(fields[12])) / TICKS
        processes[int(path.parent.name)] = (int(fields[1]), fields[19], seconds)
    found = {}
    for id_, (_, began, seconds) in processes.items():
        above = id_
        while above not in roots and above in processes:
            above = processes[above][0]
        if above in roots:
            found[id_, began] = (roots[above], seconds)
    return found


def on_clusters(folder: Path, payments: int, share: int) -> Iterator[tuple[Any, ...]]:
    """Yield processor seconds of the driver, of all workers and of the busier one, on one and on
    two.
    """
    end = now()
    target = exported(folder, payments, end)
    tried = {what: text for what, text in TRIED.items() if what != "a new window"}
    backtest = {
        text: partial(backtest_columns, target, "shop", rule(text), (0, end), {}, unwatched)
        for text in tried.values()
    }
    expected = {text: run() for text, run in backtest.items()}
    for workers in (1, 2):
        logs = folder / f"logs-{workers}"
        logs.mkdir()
        with spark_cluster(logs, workers) as cluster:
            compare = partial(on_spark.compare_on_spark, cluster.address, share=share)
            for what, text in tried.items():
                with watch_processes(cluster.workers) as spent:
                    assert backtest[text](compare=compare) == expected[text]
                driver = spent.pop(_DRIVER)
                yield what, payments, workers, driver, sum(spent.values()), max(spent.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payments", type=lambda text: int(float(text)), default=200_000)
    parser.add_argument("--share", type=int, default=12_500, help="of payments that a task counts")
    given = parser.parse_args()
    os.environ.update(ON_LOOPBACK)
    small, large = given.payments // 4, given.payments
    found = {}
    for payments in (small, large):
        with TemporaryDirectory(prefix="toll-bench-") as name:
            target = exported(Path(name), payments, now())
            for what, text in TRIED.items():
                found[what, payments] = task_times(target, text, given.share)
    titles = (f"{each} worker{'s' * (each > 1)}, s" for each in WORKERS)
    show(
        f"Tasks over {DAYS} days, a rule of 12 conditions and 3 windows: processor seconds",
        ["", "payments", "tasks", "the longest", *titles],
        [
            [
                *of,
                sum(map(len, stages)),
                max(map(max, stages)),
                *(sum(shared_out(stage, each) for stage in stages) for each in WORKERS),
            ]
            for of, stages in found.items()
        ],
    )
    totals = {of: sum(map(sum, stages)) for of, stages in found.items()}
    each_payment = {
        what: (totals[what, large] - totals[what, small]) / (large - small) for what in TRIED
    }
    show(
        "A payment more",
        ["", "µs of processor time", "hours of a processor for 10⁹"],
        [[what, each * 1e6, each * 1e9 / 3600] for what, each in each_payment.items()],
    )
    with TemporaryDirectory(prefix="toll-bench-") as name:
        show(
            "On a cluster, most of it its start: processor seconds",
            ["", "payments", "workers", "driver", "all workers", "the busier one"],
            on_clusters(Path(name), large // 10, given.share // 10),
        )
    two = {what: sum(shared_out(stage, 2) for stage in found[what, large]) for what in TRIED}
    show_targets(
        Target(f"{what}: two workers, × one", totals[what, large] / two[what], at_least=1.8)
        for what in TRIED
    )


if __name__ == "__main__":
    main()
