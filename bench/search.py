"""What does the index cost, and how long do its answers take as payments grow?

    python -m tollkeeper.bench.search [--payments 300000] [--folder FOLDER]

Fills a journal and its index with payments of 30 days by 200,000 users, a fifth of them updated,
some labelled (`large_index.py`); indexes some more; then asks the console's questions, each 100
times, with the index's file cached by the system, and one uncached. Prints within which time 19 of 20
are answered, beside the aim for 10,000,000 payments, which take 12 GB of disk. `--folder` keeps the data for
another run.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from tollkeeper.bench.large_index import ACCOUNT, MOST_ENTRIES, draw, fill, fill_journal
from tollkeeper.bench.tables import show
from tollkeeper.engine.instants import DAY, HOUR, now
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.search.commonest import EVERY_BY
from tollkeeper.engine.search.figures import figures
from tollkeeper.engine.search.filters import read_filter, read_members
from tollkeeper.engine.search.find import CountPayments, FindPayments
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.index_file import INDEX_FILE
from tollkeeper.engine.search.movers import FindMovers
from tollkeeper.engine.search.performance import performance
from tollkeeper.engine.search.reading import AccountIndex, open_index
from tollkeeper.engine.search.related import FindRelated
from tollkeeper.engine.search.scores import FindScores
from tollkeeper.engine.search.thresholds import FindScoreBands
from tollkeeper.engine.search.worker_processes import run_collector_rarely

FOLLOWED = 40_000
ROUNDS = 100


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=float, default=3e5)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    run_collector_rarely()
    given = TemporaryDirectory(prefix="toll-search-") if options.folder is None else None
    with given or nullcontext(options.folder) as name:
        folder = Path(name)
        if not (folder / INDEX_FILE).exists():
            fill(folder, int(options.payments), now())
        with open_index(folder, ACCOUNT) as index:
            payments = CountPayments(read_filter([], now())).answer(index)
            end = index.arrived(index.last)
        size = sum(path.stat().st_size for path in folder.glob("search.db*"))
        with closing(Follower(folder)) as follower:
            took, cost = follow(folder, follower, FOLLOWED, 11)
            lags = sorted(follow(folder, follower, 1, seed)[0] for seed in range(50))
            while follower.keep_totals() or follower.extend_run():
                pass
        show(
            f"The index of {payments:,} payments",
            ["", "measured"],
            [
                [f"CPU a payment, of {FOLLOWED:,} more", f"{cost / FOLLOWED * 1e6:.1f} µs"],
                ["payments a second, catching up", f"{FOLLOWED / took:,.0f}"],
                ["bytes a payment", f"{size / payments:,.0f}"],
                ["one more payment taken in (19 of 20)", f"{lags[-3] * 1000:.1f} ms"],
            ],
        )
        file = folder / INDEX_FILE
        with open_index(folder, ACCOUNT) as index:
            ids = iter(list(islice(payments_of(index), 3 * ROUNDS)))
            hold_in_memory(file)
            answers = [
                [question, *measure_question(ask), aim]
                for question, aim, ask in questions(index, end, ids)
            ]
            related = measure_question(
                lambda: FindRelated(next(ids), end - 30 * DAY).answer(index),
                lambda: drop_from_memory(file),
            )
            show(
                "Answers, 19 of 20 within",
                ["question", "ms", "ms of CPU", "its median", "aim at 10,000,000"],
                [*answers, ["related, 30 days, read from disk", *related, ""]],
            )


def questions(
    index: AccountIndex, end: int, ids: Iterator[str]
) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    def search(text: str) -> Callable[[], Any]:
        wanted = read_filter(read_members(text), end)
        return lambda: FindPayments(wanted, None, 50).answer(index)

    def counted(text: str) -> Callable[[], Any]:
        wanted = read_filter(read_members(text), end)
        return lambda: CountPayments(wanted).answer(index)

    def figured(text: str, back: int, every: Any, by: Any, money: bool) -> Callable[[], Any]:
        wanted = read_filter(read_members(text), end)
        return lambda: figures(index, wanted, end - back, end, every, "UTC", by, money)

    yield (
        "related, every entity, 30 days",
        "5",
        lambda: FindRelated(next(ids), end - 30 * DAY).answer(index),
    )
    yield (
        "the same, 3 days",
        "5",
        lambda: FindRelated(next(ids), end - 3 * DAY).answer(index),
    )
    yield "find by card", "300", search("card:40000007-0007")
    yield "find the newest 50", "300", search("")
    yield "find denied by a rare condition", "300", search("action:deny condition:night")
    yield "find what is not there", "300", search("condition:night label:legitimate merchant:m-3")
    yield "find denied of a BIN in an hour", "300", search("action:deny bin:400000 since:1h")
    yield "find by a range of scores", "300", search("score:0.85..1 status:succeeded")
    yield "count all that are denied", "300", counted("action:deny")
    yield "count scores from 0.10 on", "300", counted("score:0.1..1")
    yield "count what has no label", "300", counted("label:none")
    yield "a day by minute", "200", figured("", DAY, "minute", None, False)
    yield "30 days by hour", "200", figured("", 30 * DAY, "hour", None, False)
    yield "30 days by day and action", "200", figured("", 30 * DAY, "day", "action", False)
    yield "30 days by day, with money", "200", figured("", 30 * DAY, "day", None, True)
    yield "30 days by hour and action", "200", figured("", 30 * DAY, "hour", "action", False)
    yield "30 days by day and merchant", "200", figured("", 30 * DAY, "day", "merchant", False)
    yield (
        "30 days of a BIN by hour and condition, with money",
        "200",
        figured("bin:40000007", 30 * DAY, "hour", "condition", True),
    )
    yield "scores by label", "", lambda: FindScores(read_filter([], end), "label").answer(index)
    yield (
        "bands of scores, with money",
        "",
        lambda: FindScoreBands(read_filter([], end), end).answer(index),
    )
    yield "movers of an hour", "", lambda: FindMovers(EVERY_BY, end - HOUR, end, 20).answer(index)
    yield (
        "movers of three days",
        "",
        lambda: FindMovers(EVERY_BY, end - 3 * DAY, end, 20).answer(index),
    )
    yield (
        "performance of a rule, 30 days",
        "",
        lambda: performance(index, "web_checkout", (), end - 30 * DAY, end, 85, "UTC"),
    )


def payments_of(index: AccountIndex) -> Iterator[str]:
    """Yield random ids of payments of the older half."""
    random = Random(5)
    while True:
        entry = index.tail.entry(random.randrange(1, index.last // 2))
        if entry is not None and entry.kind == Kind.PAYMENT:
            yield entry.id


def measure_question(
    ask: Callable[[], Any], prepare: Callable[[], Any] = lambda: None
) -> tuple[str, str, str]:
    """Return the milliseconds within which 19 of 20 are answered, the same of CPU, and the median
    of these. `prepare` isn't timed.
    """
    taken, used = [], []
    for _ in range(ROUNDS):
        prepare()
        began, cpu = time.perf_counter(), time.process_time()
        ask()
        taken.append(time.perf_counter() - began)
        used.append(time.process_time() - cpu)
    return (
        f"{quantiles(taken, n=20)[-1] * 1000:.2f}",
        f"{quantiles(used, n=20)[-1] * 1000:.2f}",
        f"{median(used) * 1000:.2f}",
    )


def hold_in_memory(file: Path) -> None:
    """Have the system cache a file, as it does with one in frequent use."""
    with file.open("rb") as opened:
        while opened.read(2**24):
            pass


def drop_from_memory(file: Path) -> None:
    """Have the system drop what it has cached of a file."""
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def follow(folder: Path, follower: Follower, payments: int, seed: int) -> tuple[float, float]:
    """Return the wall and CPU seconds from the payments' commit until they are indexed."""
    with closing(schema.connect_for_reading(folder)) as connection:
        last = reads.last_sequence(connection)
        newest = reads.entry_at(connection, last)
        assert newest is not None
    beyond = last + 1 + payments * MOST_ENTRIES
    fill_journal(
        folder, islice(draw(last + 1, beyond, newest.arrived, now(), Random(seed)), payments)
    )
    began, cpu = time.perf_counter(), time.process_time()
    follower.catch_up()
    return time.perf_counter() - began, time.process_time() - cpu


if __name__ == "__main__":
    main()
