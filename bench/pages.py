"""What do the console's pages cost, and do payments wait for the people who use them?

    python -m tollkeeper.bench.pages [--payments 300000] [--seconds 8] [--rate 4000] [--folder FOLDER] [--apart]
        [--turns 12]

A service with payments of 30 days in its journal and index, and a rule of three windows. Each page is
read `ROUNDS` times: its size, the CPU of the service with the index process, that of the deciding event
loop alone, and the milliseconds within which 19 of 20 were loaded. Then payments come at some rates, up
to `--rate` a second, and what each process uses of the processors is measured. At half the rate and at
the whole, each page is read again while they come. Then payments come in turns that change places: alone,
beside processes that have nothing to do with the service and use as much of the processors as a page did
on average when nothing else ran, and while a person opens a page every second and another follows the live
feed. A p99 is of the payments of all turns together; its ratio is given with the interval that holds 95 of
100 draws of as many turns. `--folder` keeps the data for another run; with `--apart` the deciding process
has the first processor for itself, and all else the second.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, pairwise
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import httpx

from tollkeeper.bench import large_index
from tollkeeper.bench.background import repeating
from tollkeeper.bench.latencies import Latencies, compare
from tollkeeper.bench.load import LoadResult, load
from tollkeeper.bench.servers import (
    ACCOUNT,
    TICKS,
    UNBOUNDED,
    Server,
    cpu_seconds,
    index_process,
    new_key,
    serving,
    toll,
)
from tollkeeper.bench.tables import Cell, Target, show, show_targets
from tollkeeper.engine.instants import now
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox_file import ALERTS_FILE
from tollkeeper.engine.search.follow import Follower

ROUNDS = 20
AIM_MS = 300
AIM_RATIO = 1.1
STORED_RULE = """rule web_checkout "What the stored payments were decided by"
  condition card_list "A likely bot" when score >= 0.9 and amount < 100 then deny
  condition guessing "Small amounts" when score >= 0.8 and amount < 10 then deny
  condition card_again "Smaller amounts" when score >= 0.7 and amount < 5 then deny
  condition night "A likely bot by night" when score >= 0.4 and hour(timestamp) between 1 and 4 then deny
"""
"""It counts nothing, as the stored decisions hold no counts."""
RULE = """rule web_checkout "What decides the payments that come"
  let payments_of_device = count(payments by device.fingerprint.id over 1h)
  let cards = distinct(payments.method.card.fingerprint by user.id over 24h)
  let spent = sum(payments.amount by user.id, currency over 24h)
  condition card_list "Many cards" when cards > 3 and left(method.card.last_four, 2) == "00" then deny
  condition guessing "Small amounts" when payments_of_device > 3 and amount < 10 then deny
  condition card_again "Much spent" when spent > 1000 and left(method.card.last_four, 2) == "01" then deny
  condition night "A likely bot by night" when score >= 0.4 and hour(timestamp) between 1 and 4 then deny
"""
SCORECARD = """scorecard bot_behaviour
  baseline 0.02
  signal night adds 1.0 when hour(timestamp) between 1 and 4
"""
CONNECTIONS = 128
"""So many that the pause of each is long beside what an answer takes, and the rate is steady."""
SHARES = 0.25, 0.5, 0.75, 1
"""The shares of the rate at which the processors' use is measured."""
LOOKED_AT = 0.5, 1
"""The shares of it at which people look at pages."""
EACH_S = 1
"""The interval at which a person opens a page."""
SIGN_IN_S = 60
LOWEST = 19
INDEX_NICENESS = 15
PIECES = 10
"""In so many pieces the event loop serves a page."""
FOREIGN = """
import os, sys, time
niceness, pieces = int(sys.argv[1]), int(sys.argv[2])
work_s, each_s = float(sys.argv[3]), float(sys.argv[4])
os.nice(niceness)
due = time.monotonic()
while True:
    for _ in range(pieces):
        begun = time.thread_time()
        while time.thread_time() < begun + work_s / pieces:
            pass
        time.sleep(0)
    due += each_s
    time.sleep(max(0, due - time.monotonic()))
"""
KEY = "key"
"""The file with the key, in a folder that is kept."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=float, default=3e5)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rate", type=int, default=4000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--turns", type=int, default=12)
    options = parser.parse_args()
    given = TemporaryDirectory(prefix="toll-pages-") if options.folder is None else None
    with given or nullcontext(options.folder) as name:
        folder = Path(name)
        key = furnish(folder, int(options.payments))
        limits = (*UNBOUNDED, "--key-work", "100000", "--account-work", "100000")
        with serving(folder, key, *limits) as server:
            if options.apart:
                set_apart(server)
            measure(server, folder, options.rate, options.seconds, options.turns)


def set_apart(server: Server) -> None:
    """Run the service's own process on the first processor, and its index and this process, with what
    it starts, on the second.
    """
    for process, processor in (
        (server.process.pid, 0),
        (index_process(server), 1),
        (os.getpid(), 1),
    ):
        for thread in Path(f"/proc/{process}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {processor})


def measure(server: Server, folder: Path, rate: int, seconds: float, count: int) -> None:
    stored = count_payments(server)
    # One that this service decided can be explained.
    load(server, 1, connections=1, pause_ms=100)
    newest = newest_payment(server)
    pauses = dict.fromkeys(SHARES, 0)
    with signed_in(server) as browser:
        quiet = [page_row(server, browser, page) for page in pages(newest)]
        carried = []
        for share in SHARES:
            pauses[share] = steady_pause(server, rate * share)
            carried.append(carried_row(server, rate * share, pauses[share], seconds))
        show(
            "Payments alone, and what each process uses, ms a second",
            [
                *(
                    "asked for",
                    "a second",
                    "p50 ms",
                    "p99 ms",
                    "deciding loop",
                    "its other threads",
                ),
                *("index", "wrk", "everything", "index behind, ms"),
            ],
            carried,
        )
        busy = [busy_pages(server, browser, newest, pauses[share]) for share in LOOKED_AT]
    show(
        f"Pages over {stored:,} payments (aim: {AIM_MS} ms over 10,000,000)",
        [
            *("page", "KiB", "ms of CPU", "ms of the loop's", "ms, 19 of 20 within"),
            *(f"while {came:,.0f} payments a second come" for came, _ in busy),
        ],
        [
            [*each, *more]
            for each, *more in zip(quiet, *(within for _, within in busy), strict=True)
        ],
    )
    targets = [Target("the slowest page, ms", max(float(str(row[-1])) for row in quiet), AIM_MS)]
    targets += [
        Target(f"the same while {came:,.0f} payments a second come", max(within), AIM_MS)
        for came, within in busy
    ]
    looking, cost = cycle(pages(newest)), page_cost(quiet)
    for share in LOOKED_AT:
        turns = in_turns(server, looking, cost, pauses[share], seconds, count)
        show_turns(rate * share, turns)
        show_feeds(rate * share, turns.feeds, folder)
        asked = f"p99 of {rate * share:,.0f} payments a second while they look ÷ alone"
        ratio, _, _ = compare(turns.watched, turns.alone)
        targets.append(Target(asked, ratio, AIM_RATIO))
    show_targets(targets)


def busy_pages(
    server: Server, browser: httpx.Client, newest: str, pause: int
) -> tuple[float, list[float]]:
    """Return how many payments a second came, and the ms within which each page was loaded 19 times of
    20 meanwhile.
    """
    with paying(server, pause) as paid:
        within = [float(str(page_row(server, browser, page)[-1])) for page in pages(newest)]
    return median(each.rate for each in paid), within


@dataclass(frozen=True)
class Turns:
    """Payments alone, beside foreign work and while people look, turn by turn, and what the live feed
    showed in each of the last.
    """

    alone: list[LoadResult] = field(default_factory=list)
    foreign: list[LoadResult] = field(default_factory=list)
    watched: list[LoadResult] = field(default_factory=list)
    feeds: list[Feed] = field(default_factory=list)


def page_cost(quiet: Sequence[Sequence[Cell]]) -> tuple[float, float]:
    """Return the seconds of the event loop, and of the other threads and processes, that a page took
    on average.
    """
    everything, loop = (sum(float(str(row[of])) for row in quiet) / len(quiet) for of in (2, 3))
    return loop / 1000, max(0, everything - loop) / 1000


def show_turns(rate: float, turns: Turns) -> None:
    named = {
        "alone": turns.alone,
        "beside foreign work": turns.foreign,
        "while they look": turns.watched,
    }
    show(
        f"{rate:,.0f} payments a second asked for, a person opens a page every {EACH_S} s, another follows"
        f" the feed; {len(turns.alone)} turns of each",
        ["payments", "a second", "p50 ms", "p99 ms"],
        [
            [
                name,
                median(each.rate for each in taken),
                *(Latencies(taken).percentile(part, [1] * len(taken)) for part in (0.5, 0.99)),
            ]
            for name, taken in named.items()
        ],
    )
    show(
        f"Their p99 at {rate:,.0f} payments a second",
        ["", "measured", "95 of 100 draws from", "to"],
        [
            ["while they look, × alone", *compare(turns.watched, turns.alone)],
            ["beside foreign work, × alone", *compare(turns.foreign, turns.alone)],
            ["while they look, × beside foreign work", *compare(turns.watched, turns.foreign)],
        ],
    )


def show_feeds(rate: float, feeds: list[Feed], folder: Path) -> None:
    show(
        f"The live feed in these turns of {rate:,.0f} payments a second",
        ["", "fewest", "most"],
        [
            [name, min(each), max(each)]
            for name, each in (
                ("rows", [len(feed.rows) for feed in feeds]),
                ("payments told of as skipped", [sum(feed.skipped) for feed in feeds]),
                ("longest without a row, ms", [feed.longest_gap() for feed in feeds]),
                ("out of order, or missing", [feed.count_faults(folder) for feed in feeds]),
            )
        ],
    )


def furnish(folder: Path, payments: int) -> str:
    """Make about so many payments of 30 days and their index where there are none, the rule that
    decided them, the one that decides and a scorecard; return a key.
    """
    key_file = folder / KEY
    if key_file.exists():
        return key_file.read_text()
    if not (folder / schema.DATABASE_FILE).exists():
        large_index.fill(folder, payments, now())
    with closing(Follower(folder)) as follower:
        follower.catch_up()
        while follower.keep_totals() or follower.extend_run():
            pass
    key = new_key(folder, "admin")
    for name, text in (
        ("web_checkout", STORED_RULE),
        ("web_checkout", RULE),
        ("bot_behaviour", SCORECARD),
    ):
        file = folder / f"{name}.rule"
        file.write_text(text)
        toll(folder, "publish", str(file), "--account", ACCOUNT)
    note_alerts(folder)
    key_file.write_text(key)
    return key


def note_alerts(folder: Path) -> None:
    """Note that no stored payment raised an alert, as a service does while it runs: the first start
    would read all of them to find that out.
    """
    with closing(schema.connect_for_reading(folder)) as journal:
        last = reads.last_sequence(journal)
    with closing(sqlite3.connect(folder / ALERTS_FILE)) as alerts, alerts:
        outbox.set_entered(alerts, last)


def steady_pause(server: Server, rate: float) -> int:
    """Return the pause in ms with which the connections send about `rate` payments a second."""
    cycle_ms = 1000 * CONNECTIONS / rate
    tried = load(server, 2, connections=CONNECTIONS, pause_ms=round(cycle_ms))
    answered_ms = 1000 * CONNECTIONS / tried.rate - round(cycle_ms)
    return max(1, round(cycle_ms - answered_ms))


def paying(server: Server, pause: int) -> AbstractContextManager[list[LoadResult]]:
    """Send payments while the context lasts; yields their measurements."""
    return repeating(lambda: load(server, 5, connections=CONNECTIONS, pause_ms=pause))


def carried_row(server: Server, rate: float, pause: int, seconds: float) -> list[Cell]:
    """Return the measurements of payments at a rate, and of who used the processors meanwhile."""
    used = processor_use(server)
    with repeating(partial(lag, server), 0.2) as lags:
        came = load(server, seconds, connections=CONNECTIONS, pause_ms=pause)
    more = [
        1000 * (after - before) / came.seconds
        for after, before in zip(processor_use(server), used, strict=True)
    ]
    return [f"{rate:,.0f}", came.rate, came.p50, came.p99, *more, max(lags)]


def processor_use(server: Server) -> tuple[float, ...]:
    """Return the processor seconds of the deciding loop, the service's other threads, the index's
    processes, `wrk`, and of everything on the machine.
    """
    pid = server.process.pid
    loop, index = loop_seconds(pid), cpu_seconds(index_process(server))
    wrk = getrusage(RUSAGE_CHILDREN)
    user, nice, system, _ = map(int, Path("/proc/stat").read_text().split()[1:5])
    return (
        *(loop, cpu_seconds(pid) - index - loop, index),
        *(wrk.ru_utime + wrk.ru_stime, (user + nice + system) / TICKS),
    )


def lag(server: Server) -> int:
    """Return the index's lag in ms."""
    headers = {"authorization": f"Bearer {server.key}"}
    answer = httpx.get(f"{server.url}/v1/payments/count?since=1s", headers=headers, timeout=60)
    found: int = answer.json()["lag_ms"]
    return found


def pages(newest: str) -> tuple[str, ...]:
    """Return the pages that read payments or figures; `newest` is a payment's id."""
    return (
        "",
        "/payments",
        "/payments?q=action:deny+condition:night",
        f"/payments/{newest}",
        "/review",
        "/alerts",
        "/rules/web_checkout",
        "/score",
        "/report",
        "/changes",
        "/contain",
    )


def count_payments(server: Server) -> int:
    headers = {"authorization": f"Bearer {server.key}"}
    answer = httpx.get(f"{server.url}/v1/payments/count", headers=headers, timeout=60)
    return int(answer.json()["count"])


def newest_payment(server: Server) -> str:
    headers = {"authorization": f"Bearer {server.key}"}
    answer = httpx.get(f"{server.url}/v1/payments?limit=1", headers=headers, timeout=60)
    id_: str = answer.json()["payments"][0]["id"]
    return id_


@contextmanager
def signed_in(server: Server) -> Iterator[httpx.Client]:
    """A browser with a session: over http it wouldn't send the session's secure cookie."""
    with httpx.Client(base_url=f"{server.url}/console", timeout=60) as browser:
        answer = browser.post("/sign-in", data={"key": server.key})
        browser.headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
        browser.cookies.clear()
        yield browser


def page_row(server: Server, browser: httpx.Client, page: str) -> list[Cell]:
    taken = []
    size = len(read(browser, page).content)
    pid = server.process.pid
    cpu, loop = cpu_seconds(pid), loop_seconds(pid)
    for _ in range(ROUNDS):
        begun = perf_counter()
        read(browser, page)
        taken.append(1000 * (perf_counter() - begun))
    cpu, loop = cpu_seconds(pid) - cpu, loop_seconds(pid) - loop
    within = sorted(taken)[ROUNDS * 19 // 20 - 1]
    return [
        f"`/console{page}`",
        f"{size / 1024:.0f}",
        f"{1000 * cpu / ROUNDS:.0f}",
        f"{1000 * loop / ROUNDS:.1f}",
        f"{within:.0f}",
    ]


def loop_seconds(pid: int) -> float:
    """Return the processor seconds of the process's first thread, which runs the event loop."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def read(browser: httpx.Client, page: str) -> httpx.Response:
    answer = browser.get(page)
    answer.raise_for_status()
    return answer


@dataclass
class Feed:
    """What the live feed showed since payments `begun`: the time (s) and the payment of each row, and
    for each how many had been skipped between the row before and it.
    """

    begun: float = field(default_factory=perf_counter)
    rows: list[float] = field(default_factory=list)
    payments: list[str] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    between: int = 0

    def take(self, line: str) -> None:
        """Take a line of the stream."""
        if told := re.match(r'data: {"skipped":(\d+)}', line):
            self.between += int(told[1])
        elif shown := re.match(r'data: <tr data-id="([^"]+)"', line):
            self.rows.append(perf_counter())
            self.payments.append(shown[1])
            self.skipped.append(self.between)
            self.between = 0

    def longest_gap(self) -> float:
        """Return the longest time without a row since payments began, in ms."""
        moments = [self.begun, *(row for row in self.rows if row > self.begun)]
        return 1000 * max(later - row for row, later in pairwise(moments))

    def count_faults(self, folder: Path) -> int:
        """Return how many payments came out of order, or neither came nor were told of as skipped."""
        with closing(schema.connect_for_reading(folder)) as journal:
            places = [_place(journal, payment) for payment in self.payments]
            (stored,) = journal.execute(
                "SELECT count(*) FROM journal WHERE kind = ? AND place > ? AND place <= ?",
                (Kind.PAYMENT, places[0], places[-1]),
            ).fetchone()
        disordered = sum(later <= place for place, later in pairwise(places))
        return disordered + abs(int(stored) - (len(places) - 1) - sum(self.skipped[1:]))


def _place(journal: Any, payment: str) -> int:
    row = journal.execute(
        "SELECT place FROM journal WHERE account = ? AND id = ? AND kind = ?",
        (large_index.ACCOUNT, payment, Kind.PAYMENT),
    ).fetchone()
    return int(row[0])


def in_turns(
    server: Server,
    looking: Iterator[str],
    cost: tuple[float, float],
    pause: int,
    seconds: float,
    count: int,
) -> Turns:
    """Return what payments took in so many turns of each kind: alone, beside foreign work of `cost`, and beside people who open the
    pages of `looking`, in turns that change places.
    """
    turns = Turns()
    pay = partial(load, server, seconds, connections=CONNECTIONS, pause_ms=pause)

    def alone() -> None:
        turns.alone.append(pay())

    def beside_foreign_work() -> None:
        with foreign_work(*cost):
            turns.foreign.append(pay())

    def beside_people() -> None:
        with people(server, looking) as feed:
            turns.watched.append(pay())
        turns.feeds.append(feed)

    steps = [alone, beside_foreign_work, beside_people]
    for turn in range(count):
        first = turn % len(steps)
        for step in steps[first:] + steps[:first]:
            step()
    return turns


@contextmanager
def foreign_work(of_loop: float, of_others: float) -> Iterator[None]:
    """Run a process that uses `of_loop` seconds of a processor each `EACH_S`, in pieces, and one that
    uses `of_others` at the priority of the index's, while the context lasts.
    """
    works = ((0, PIECES, of_loop), (INDEX_NICENESS, 1, of_others))
    with ExitStack() as running:
        for work in works:
            command = [sys.executable, "-c", FOREIGN, *map(str, work), str(EACH_S)]
            process = running.enter_context(subprocess.Popen(command))
            running.callback(process.kill)
        yield


@contextmanager
def people(server: Server, looking: Iterator[str]) -> Iterator[Feed]:
    """Run a person who opens pages, and one who follows the live feed, while the context lasts: both
    signed in before, and at the lowest priority, as browsers are on other machines. Yields what the
    feed showed.
    """
    feed, done, are_in = Feed(), threading.Event(), threading.Barrier(3, timeout=SIGN_IN_S)
    connection: socket.socket

    def follow() -> None:
        nonlocal connection
        os.nice(LOWEST)
        with signed_in(server) as browser, browser.stream("GET", "/payments/live") as stream:
            connection = stream.extensions["network_stream"].get_extra_info("socket")
            are_in.wait()
            with suppress(httpx.RemoteProtocolError, httpx.ReadError):
                for line in stream.iter_lines():
                    feed.take(line)

    def look() -> None:
        os.nice(LOWEST)
        with signed_in(server) as browser:
            are_in.wait()
            begun = perf_counter()
            for number, page in enumerate(looking, start=1):
                read(browser, page)
                if done.wait(max(0, begun + number * EACH_S - perf_counter())):
                    return

    threads = [threading.Thread(target=follow, daemon=True), threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    are_in.wait()
    feed.begun = perf_counter()
    try:
        yield feed
    finally:
        done.set()
        # Without payments no line comes: the next turn would begin with somebody who still follows.
        connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(EACH_S)


if __name__ == "__main__":
    main()
