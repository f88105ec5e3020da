"""What do the console's pages cost, and do payments wait for the people who use them?

    python -m tollkeeper.bench.pages [--payments 300000] [--seconds 10] [--rate 200] [--folder FOLDER]

A service with payments of 30 days in its journal and index. Each page is read `ROUNDS` times: its
size, the CPU of the service with the index process, that of the deciding event loop alone, and the
milliseconds within which 19 of 20 were loaded; then again while payments come at `--rate` a second,
or as many as the machine can process. Finally payments come alone and while `PEOPLE` read a page
every few seconds and one follows the live feed, in turns. `--folder` keeps the data for another
run.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

import httpx

from tollkeeper.bench import large_index
from tollkeeper.bench.background import repeating
from tollkeeper.bench.load import LoadResult, load, pause_for
from tollkeeper.bench.servers import ACCOUNT, Server, cpu_seconds, new_key, serving, toll
from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.instants import now
from tollkeeper.engine.search.follow import Follower

ROUNDS = 20
AIM_MS = 300
RULE = """rule web_checkout "What the stored payments were decided by"
  condition card_list "A likely bot" when score >= 0.9 and amount < 100 then deny
  condition guessing "Small amounts" when score >= 0.8 and amount < 10 then deny
  condition card_again "Smaller amounts" when score >= 0.7 and amount < 5 then deny
  condition night "A likely bot by night" when score >= 0.4 and hour(timestamp) between 1 and 4 then deny
"""
SCORECARD = """scorecard bot_behaviour
  baseline 0.02
  signal night adds 1.0 when hour(timestamp) between 1 and 4
"""
"""As the rule it counts nothing: the stored decisions hold no counts, and a start reads none."""
PEOPLE = 5
EACH_S = 5
"""The interval at which each person reads a page."""
RATE = 200
TURNS = 3
KEY = "key"
"""The file with the key, in a folder that is kept."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=float, default=3e5)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    given = TemporaryDirectory(prefix="toll-pages-") if options.folder is None else None
    with given or nullcontext(options.folder) as name:
        folder = Path(name)
        key = furnish(folder, int(options.payments))
        with serving(folder, key, "--key-work", "100000", "--account-work", "100000") as server:
            newest = newest_payment(server)
            with signed_in(server) as browser:
                quiet = [page_row(server, browser, page) for page in pages(newest)]
                with paying(server, options.rate) as paid:
                    busy = [page_row(server, browser, page)[-1:] for page in pages(newest)]
            show(
                f"Pages over {count_payments(server):,} payments (aim: {AIM_MS} ms over 10,000,000)",
                [
                    *("page", "KiB", "ms of CPU", "ms of the loop's", "ms, 19 of 20 within"),
                    f"while {median(each.rate for each in paid):,.0f} payments a second come",
                ],
                [[*each, *more] for each, more in zip(quiet, busy, strict=True)],
            )
            show(
                f"{options.rate:,} payments a second asked for, medians of {TURNS} turns",
                [
                    *("", "payments a second", "p50 ms", "p99 ms"),
                    *("rows of the live feed", "longest without a row, ms"),
                ],
                beside_people(server, newest, options.rate, options.seconds),
            )


def furnish(folder: Path, payments: int) -> str:
    """Make about so many payments of 30 days, their index, a rule that decided them and a
    scorecard; return a key.
    """
    key_file = folder / KEY
    if key_file.exists():
        return key_file.read_text()
    large_index.fill(folder, payments, now())
    with closing(Follower(folder)) as follower:
        follower.catch_up()
        while follower.keep_totals() or follower.extend_run():
            pass
    key = new_key(folder, "admin")
    for name, text in (("web_checkout", RULE), ("bot_behaviour", SCORECARD)):
        file = folder / f"{name}.rule"
        file.write_text(text)
        toll(folder, "publish", str(file), "--account", ACCOUNT)
    key_file.write_text(key)
    return key


def paying(server: Server, rate: int) -> AbstractContextManager[list[LoadResult]]:
    """Send payments while the context lasts; yields their measurements."""
    return repeating(lambda: load(server, EACH_S, pause_ms=pause_for(rate)))


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
    within = quantiles(taken, n=20)[-1]
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
    """The time of each row of the live feed (s)."""

    rows: list[float] = field(default_factory=list)

    def longest_gap(self, begun: float) -> float:
        """Return the longest time without a row since payments began, in ms."""
        moments = [begun, *(row for row in self.rows if row > begun)]
        return 1000 * max(later - row for row, later in pairwise(moments))


def beside_people(server: Server, newest: str, rate: int, seconds: float) -> list[list[Cell]]:
    alone, watched, counts, gaps = [], [], [], []
    for _ in range(TURNS):
        alone.append(load(server, seconds, pause_ms=pause_for(rate)))
        with people(server, newest) as feed:
            begun = perf_counter()
            watched.append(load(server, seconds, pause_ms=pause_for(rate)))
            counts.append(len(feed.rows))
            gaps.append(feed.longest_gap(begun))
    came, p50, p99 = (
        [median(getattr(each, of) for each in turns) for turns in (alone, watched)]
        for of in ("rate", "p50", "p99")
    )
    rows, gap = f"{median(counts):,.0f}", f"{median(gaps):,.0f}"
    looking = f"{PEOPLE} people read, one follows"
    return [
        ["alone", f"{came[0]:,.0f}", f"{p50[0]:.1f}", f"{p99[0]:.1f}", "", ""],
        [looking, f"{came[1]:,.0f}", f"{p50[1]:.1f}", f"{p99[1]:.1f}", rows, gap],
        ["×", "", f"{p50[1] / p50[0]:.2f}", f"{p99[1] / p99[0]:.2f}", "", ""],
    ]


@contextmanager
def people(server: Server, newest: str) -> Iterator[Feed]:
    """Run people who read pages while the context lasts; yields what the live feed showed them."""
    feed, done = Feed(), threading.Event()

    def follow() -> None:
        with signed_in(server) as browser, browser.stream("GET", "/payments/live") as stream:
            for line in stream.iter_lines():
                if line == "event: payment":
                    feed.rows.append(perf_counter())
                if done.is_set():
                    return

    def look() -> None:
        with signed_in(server) as browser:
            for page in cycle(pages(newest)):
                read(browser, page)
                if done.wait(EACH_S):
                    return

    threads = [threading.Thread(target=follow, daemon=True)]
    threads += [threading.Thread(target=look) for _ in range(PEOPLE)]
    for thread in threads:
        thread.start()
        sleep(EACH_S / len(threads))
    try:
        yield feed
    finally:
        done.set()
        for thread in threads:
            thread.join(EACH_S)


if __name__ == "__main__":
    main()
