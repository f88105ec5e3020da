"""What does the index cost, and how long do its answers take, as payments grow?

    python -m tollkeeper.bench.search [--payments 300000]

Fills a journal with payments of 30 days by 200,000 users, a fifth of them updated, some labelled;
brings the index up to it; then asks what the console asks, each question 20 times. Prints the
slowest of all but one in twenty beside the aim for 10,000,000 payments.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from tollkeeper.bench.tables import show
from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.instants import DAY, HOUR, from_microseconds
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import Label, encode_label
from tollkeeper.engine.open import now
from tollkeeper.engine.search.figures import figures
from tollkeeper.engine.search.filters import read_filter, read_members
from tollkeeper.engine.search.find import count_matches, find
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.movers import EVERY_BY, movers
from tollkeeper.engine.search.performance import performance
from tollkeeper.engine.search.process import spare_collector
from tollkeeper.engine.search.reading import AccountIndex, open_index
from tollkeeper.engine.search.related import find_related
from tollkeeper.engine.search.scores import scores

ACCOUNT = 1
USERS = 200_000
BINS = 900
MERCHANTS = 40
CONDITIONS = ("card_list", "guessing", "card_again", "night")
BATCH = 20_000
ROUNDS = 20
INSERT = f"INSERT INTO journal ({reads.COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_encode = msgspec.json.Encoder().encode


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=float, default=3e5)
    payments = int(parser.parse_args().payments)
    spare_collector()
    end = now()
    with TemporaryDirectory(prefix="toll-search-") as name:
        folder = Path(name)
        schema.prepare(folder)
        fill(folder, payments, end)
        began, cpu = time.perf_counter(), time.process_time()
        with closing(Follower(folder)) as follower:
            follower.catch_up()
            cost = time.process_time() - cpu
            took = time.perf_counter() - began
            lags = sorted(follow_one(folder, follower, number) for number in range(50))
        size = sum(path.stat().st_size for path in folder.glob("search.db*"))
        show(
            f"The index of {payments:,} payments",
            ["", "measured"],
            [
                ["CPU a payment", f"{cost / payments * 1e6:.1f} µs"],
                ["payments a second, catching up", f"{payments / took:,.0f}"],
                ["bytes a payment", f"{size / payments:,.0f}"],
                ["one more entry taken in (19 of 20)", f"{lags[-3] * 1000:.1f} ms"],
            ],
        )
        with open_index(folder, ACCOUNT) as index:
            show(
                "Answers, 19 of 20 within",
                ["question", "ms", "aim at 10,000,000"],
                [
                    [question, f"{measured(ask) * 1000:.2f}", aim]
                    for question, aim, ask in questions(index, end)
                ],
            )


def questions(index: AccountIndex, end: int) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    def search(text: str) -> Callable[[], Any]:
        wanted = read_filter(read_members(text), end)
        return lambda: find(index, wanted, None, 50)

    def counted(text: str) -> Callable[[], Any]:
        wanted = read_filter(read_members(text), end)
        return lambda: count_matches(index, wanted)

    def figured(text: str, back: int, every: Any, by: Any, money: bool) -> Callable[[], Any]:
        wanted = read_filter(read_members(text), end)
        return lambda: figures(index, wanted, end - back, end, every, "UTC", by, money)

    random = Random(5)
    ids = iter([payment_id(random.randrange(index.last // 2)) for _ in range(1000)])
    yield (
        "related, every entity, 30 days",
        "5",
        lambda: find_related(index, next(ids), end - 30 * DAY),
    )
    yield "find by card", "300", search("card:40000007-0007")
    yield "find the newest 50", "300", search("")
    yield "find denied by a rare condition", "300", search("action:deny condition:night")
    yield "find what is not there", "300", search("condition:night label:legitimate merchant:m-3")
    yield "find denied of a BIN in an hour", "300", search("action:deny bin:400000 since:1h")
    yield "find by a range of scores", "300", search("score:0.85..1 status:succeeded")
    yield "count all that are denied", "300", counted("action:deny")
    yield "a day by minute", "200", figured("", DAY, "minute", None, False)
    yield "30 days by hour", "200", figured("", 30 * DAY, "hour", None, False)
    yield "30 days by day and action", "200", figured("", 30 * DAY, "day", "action", False)
    yield "30 days by day, with money", "200", figured("", 30 * DAY, "day", None, True)
    yield "scores by label", "", lambda: scores(index, read_filter([], end), "label")
    yield "movers of an hour", "", lambda: movers(index, EVERY_BY, end - HOUR, end, 20)
    yield (
        "performance of a rule, 30 days",
        "",
        lambda: performance(index, "web_checkout", (), end - 30 * DAY, end, 85, "UTC"),
    )


def measured(ask: Callable[[], Any]) -> float:
    """The seconds within which 19 of 20 are answered."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ask()
        taken.append(time.perf_counter() - began)
    return quantiles(taken, n=20)[-1]


def follow_one(folder: Path, follower: Follower, number: int) -> float:
    """The seconds from an entry's commit to its being in the index."""
    with closing(schema.connect(folder)) as connection:
        (last,) = connection.execute("SELECT max(place) FROM journal").fetchone()
        for entry in stored(1, last + 1, now(), Random(number)):
            connection.execute(INSERT, entry)
    began = time.perf_counter()
    follower.catch_up()
    return time.perf_counter() - began


def fill(folder: Path, payments: int, end: int) -> None:
    """Payments of the 30 days before `end`, put into the journal directly."""
    with closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        batch: list[Entry] = []
        for entry in stored(payments, 1, end, Random(7)):
            batch.append(entry)
            if len(batch) == BATCH:
                insert(connection, batch)
        insert(connection, batch)


def insert(connection: Any, batch: list[Entry]) -> None:
    connection.execute("BEGIN")
    connection.executemany(INSERT, batch)
    connection.execute("COMMIT")
    batch.clear()


def stored(payments: int, first: int, end: int, random: Random) -> Iterator[Entry]:
    """Entries from the sequence number `first` on, spread over the 30 days before `end` (µs)."""
    sequence = first
    for number in range(payments):
        arrived = end - (payments - number) * 30 * DAY // payments
        id_ = payment_id(sequence)
        user = random.randrange(USERS)
        yield Entry(
            sequence, ACCOUNT, Kind.PAYMENT, id_, arrived, arrived,
            body(id_, user, "initiated", arrived), outcome(random),
        )  # fmt: skip
        sequence += 1
        if random.random() < 0.2:
            status = random.choice(("succeeded", "declined", "failed"))
            update = body(id_, user, status, arrived)
            yield Entry(sequence, ACCOUNT, Kind.UPDATE, id_, arrived, arrived, update)
            sequence += 1
        if random.random() < 0.003:
            verdict = random.choice(("fraud", "fraud", "legitimate"))
            label = encode_label(Label("chargeback", verdict, arrived, "bench"))  # type: ignore[arg-type]
            yield Entry(sequence, ACCOUNT, Kind.LABEL, id_, arrived, arrived, label)
            sequence += 1


def payment_id(number: int) -> str:
    return f"order-{number}"


def body(id_: str, user: int, status: str, arrived: int) -> bytes:
    last_four = f"{user % 10_000:04}"
    bin_ = f"400{user % BINS:05}"
    payment = {
        "id": id_,
        "type": "purchase",
        "status": status,
        "currency": "EUR",
        "amount": user % 30_000 / 100,
        "timestamp": from_microseconds(arrived),
        "method": {
            "type": "card",
            "card": {
                "network": "visa",
                "presence": "card_not_present",
                "bin": bin_,
                "last_four": last_four,
            },
        },
        "device": {
            "ip_address": f"203.{user % 200}.{user % 113}.{user % 199}",
            "fingerprint": {"id": f"d-{user}", "provider": "basic"},
        },
        "user": {"id": f"u-{user}", "email": f"u-{user}@mail.example"},
        "order": {"id": f"o-{id_}"},
        "merchant": {"id": f"m-{user % MERCHANTS}"},
    }
    return _encode({"payment": payment, "card_fingerprint": f"{bin_}-{last_four}"})


def outcome(random: Random) -> bytes:
    score = min(int(random.expovariate(8) * 100), 100)
    met = random.random()
    if met < 0.04:
        condition = CONDITIONS[0] if met < 0.03 else CONDITIONS[1] if met < 0.039 else CONDITIONS[3]
        return _encode(Decision("deny", score, AppliedRule("web_checkout", 7, condition)))
    action = "deny" if score >= 85 else "challenge" if score >= 50 else "allow"
    return _encode(Decision(action, score, AppliedRule("web_checkout", 7)))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
