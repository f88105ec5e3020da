"""Is anything lost, and does anything grow, while the service is killed and operated under load?

    python -m tollkeeper.bench.operated [--minutes 60] [--rate 2000]

Clients report payments and updates at a fixed rate. Meanwhile, in turn and repeatedly: a backup, a
new version of the rule, an import that replaces a list, the erasure of a person, a SIGKILL with a
restart, an orderly stop with a restart. Afterwards everything acknowledged must be in the journal,
the folder and the last backup must verify, what was acknowledged before that backup must be in it,
no erased name may be in any file, and each life of the service must have used about as much memory
and files as the one before.
"""

from __future__ import annotations

import argparse
import http.client
import json
import mmap
import random
import re
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from tollkeeper.bench.servers import (
    ACCOUNT,
    Resources,
    Server,
    new_key,
    resources_of,
    serving,
    toll,
)
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.engine.backup.verify import verify
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.read_folder import Picture, read_folder

CLIENTS = 48
"""Enough that the rate doesn't depend on how long one disk write takes."""
USERS = 5_000
UPDATED = 5
"""One in so many payments has an update."""
PAUSE_S = 5.0
"""The pause between two operations."""
IMPORTED = 2_000
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
PERSONS = 5
"""The number of payments of each person to be erased."""


@dataclass
class Record:
    """What clients were told is stored, and what operators did. `erased` are names, `backed` the
    ids acknowledged before the last backup began, `lives` the resources of each life at its end,
    `away` the seconds between lives.
    """

    payments: list[str] = field(default_factory=list)
    updates: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    unanswered: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    erased: list[str] = field(default_factory=list)
    backed: list[str] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    away: float = 0
    lives: list[Resources] = field(default_factory=list)


class Operated:
    """The service on `folder`, restarted by whoever ends it."""

    def __init__(self, place: Path, key: str) -> None:
        self.place = place
        self.folder = place / "data"
        self.key = key
        self.record = Record()
        self._life = ExitStack()
        self.server: Server = self._life.enter_context(serving(self.folder, key))

    def restart(self, end: Callable[[], None]) -> None:
        """End this life by `end`, and begin the next."""
        self.note_resources()
        ended_at = time.monotonic()
        end()
        self.server.process.wait()
        self._life.close()
        began = time.monotonic()
        self.server = self._life.enter_context(serving(self.folder, self.key))
        self.record.starts.append(time.monotonic() - began)
        self.record.away += time.monotonic() - ended_at

    def note_resources(self) -> None:
        """Note what this life holds at its end, while the clients' connections are open."""
        self.record.lives.append(resources_of(self.server.process.pid))

    def close(self) -> None:
        """End the last life in an orderly way."""
        self._life.close()

    def ask(self, method: str, path: str, body: object) -> int:
        """Return the status of one request on a new connection."""
        client = http.client.HTTPConnection(urlsplit(self.server.url).netloc, timeout=60)
        try:
            headers = {"authorization": f"Bearer {self.key}"}
            client.request(method, path, json.dumps(body), headers)
            return client.getresponse().status
        finally:
            client.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=2000)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="toll-bench-") as name:
        place = Path(name)
        key = new_key(place / "data", "admin")
        operated = Operated(place, key)
        over = threading.Event()
        pause = CLIENTS / options.rate * (1 + 1 / UPDATED)
        clients = [
            threading.Thread(target=report, args=(operated, number, pause, over))
            for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        operate(operated, time.monotonic() + 60 * options.minutes)
        operated.note_resources()
        over.set()
        for client in clients:
            client.join()
        operated.close()
        show_found(operated, options.minutes, options.rate)


class Connection:
    """A persistent connection that costs a client little, so that the service gets the processors."""

    def __init__(self, url: str, key: str) -> None:
        address = urlsplit(url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = f"Host: {address.netloc}\r\nAuthorization: Bearer {key}\r\n".encode()

    def ask(self, method: str, path: str, body: str) -> int:
        """Return the status, once the whole answer has arrived. Raises `OSError`."""
        content = body.encode()
        line = f"{method} {path} HTTP/1.1\r\nContent-Length: {len(content)}\r\n".encode()
        self._socket.sendall(line + self._headers + b"\r\n" + content)
        answer = b""
        while (end := answer.find(b"\r\n\r\n")) < 0:
            answer += self._receive()
        length = LENGTH.search(answer, 0, end)
        left = end + 4 + int(length[1] if length else 0) - len(answer)
        while left > 0:
            left -= len(self._receive())
        return int(answer[9:12])

    def _receive(self) -> bytes:
        received = self._socket.recv(65536)
        if not received:
            raise ConnectionResetError("the service closed the connection")
        return received


def report(operated: Operated, number: int, pause: float, over: threading.Event) -> None:
    """Report payments and updates at a rate, reconnecting when a connection is lost."""
    record, sent, client = operated.record, 0, None
    due = time.monotonic() + pause * number / CLIENTS
    while not over.is_set():
        due = max(due + pause, time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))
        sent += 1
        id_ = f"{number}-{sent}"
        path, body = "/v1/payments", payment(id_, f"u-{random.randrange(USERS)}")
        steps = [("POST", path, body, record.payments)]
        if sent % UPDATED == 0:
            ended = json.dumps({"payment": {"status": "failed"}})
            steps.append(("PATCH", f"{path}/{id_}", ended, record.updates))
        try:
            for method, where, content, acknowledged in steps:
                if client is None:
                    client = Connection(operated.server.url, operated.key)
                began = time.perf_counter()
                status = client.ask(method, where, content)
                record.times.append(time.perf_counter() - began)
                record.statuses[status] += 1
                if status in (200, 201):
                    acknowledged.append(id_)
        except OSError:
            record.unanswered += 1
            client = None
            time.sleep(0.05)


def payment(id_: str, user: str) -> str:
    return json.dumps(
        {
            "payment": {
                "id": id_,
                "type": "purchase",
                "currency": "BRL",
                "method": {"type": "pix"},
                "merchant": {"id": "m"},
                "user": {"id": user},
                "analyze": {"bot_behaviour": True, "rule": {"name": "gate"}},
            }
        }
    )


def operate(operated: Operated, end: float) -> None:
    """Perform all operations in turn until the time is over."""
    record = operated.record
    turns = (back_up, publish, replace_list, erase, kill, publish, erase, stop)
    number = 0
    while time.monotonic() < end:
        turn = turns[number % len(turns)]
        number += 1
        try:
            turn(operated, number)
            record.done[turn.__name__] += 1
        except Exception as error:
            record.failed[f"{turn.__name__}: {error}"[:200]] += 1
        minutes_left = max(0.0, end - time.monotonic()) / 60
        print(
            f"{minutes_left:.1f} minutes to go: {turn.__name__}, {len(record.times):,} answered,"
            f" last start {next(reversed(record.starts), 0):.1f} s",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(PAUSE_S)


def back_up(operated: Operated, _number: int) -> None:
    acknowledged = operated.record.payments.copy()
    toll(operated.folder, "backup", str(operated.place / "backup"))
    operated.record.backed = acknowledged


def publish(operated: Operated, number: int) -> None:
    file = operated.place / "gate.rule"
    file.write_text(
        "rule gate\n  list blocked: string\n  condition listed when user.id in @blocked then deny\n"
        f"  condition busy when count(payments by user.id over 24h) > {number + 100} then deny\n"
    )
    toll(operated.folder, "publish", str(file), "--account", ACCOUNT)


def replace_list(operated: Operated, number: int) -> None:
    file = operated.place / "blocked.csv"
    file.write_text("value\n" + "".join(f"x-{number}-{each}\n" for each in range(IMPORTED)))
    toll(operated.folder, "lists", "import", "blocked", str(file), "--account", ACCOUNT)


def erase(operated: Operated, number: int) -> None:
    name = f"erased-person-{number}"
    for each in range(PERSONS):
        body = json.loads(payment(f"{name}-{each}".replace("person", "payment"), name))
        assert operated.ask("POST", "/v1/payments", body) == 201
    assert operated.ask("POST", "/v1/erasures", {"user": name}) == 200
    operated.record.erased.append(name)


def kill(operated: Operated, _number: int) -> None:
    operated.restart(operated.server.process.kill)


def stop(operated: Operated, _number: int) -> None:
    operated.restart(operated.server.process.terminate)


def show_found(operated: Operated, minutes: float, rate: int) -> None:
    record, folder, backup = operated.record, operated.folder, operated.place / "backup"
    stored = read_folder(folder, ids_of)
    backed = read_folder(backup, ids_of)
    faults = [verify(each) for each in (folder, backup)]
    named = count_named(folder, record.erased)
    cuts = quantiles(record.times, n=100)
    show(
        f"{minutes:g} minutes, {rate} requests a second asked for",
        ["what", "number"],
        [
            ["requests answered", len(record.times)],
            ["of them a second of the whole time", round(len(record.times) / (60 * minutes))],
            ["a second while it was up", round(len(record.times) / (60 * minutes - record.away))],
            ["p50, ms", 1000 * cuts[49]],
            ["p99, ms", 1000 * cuts[98]],
            ["attempts cut off or while it was down", record.unanswered],
            *((f"answered {status}", count) for status, count in sorted(record.statuses.items())),
            *((f"done: {name}", count) for name, count in sorted(record.done.items())),
            *((f"failed: {name}", count) for name, count in sorted(record.failed.items())),
            ["share of the time without a service, %", 100 * record.away / (60 * minutes)],
            ["first start, s", next(iter(record.starts), 0)],
            ["slowest start, s", max(record.starts, default=0)],
            ["MiB held at the end of the first life", record.lives[0].memory / 2**20],
            ["MiB held at the end of the last", record.lives[-1].memory / 2**20],
            [
                "bytes of journal a payment",
                (folder / "tollkeeper.db").stat().st_size / len(stored[0]),
            ],
        ],
    )
    show_targets(
        [
            Target("payments missing", len({*record.payments} - stored[0]), at_most=0),
            Target("updates missing", len({*record.updates} - stored[1]), at_most=0),
            Target("missing in the backup", len({*record.backed} - backed[0]), at_most=0),
            Target("faults of the folder", len(faults[0].faults), at_most=0),
            Target("faults of the backup", len(faults[1].faults), at_most=0),
            Target("erased names in a file", named, at_most=0),
            Target("open files more", record.lives[-1].files - record.lives[0].files, at_most=2),
            Target("threads more", record.lives[-1].threads - record.lives[0].threads, at_most=1),
        ]
    )


def count_named(folder: Path, names: list[str]) -> int:
    """Count the `names` that occur in clear in any file of `folder`."""
    wanted = re.compile(b"|".join(re.escape(name.encode()) + rb"(?!\d)" for name in names) or b"$^")
    found: set[bytes] = set()
    for path in folder.iterdir():
        if path.is_file() and path.stat().st_size:
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as read,
            ):
                found.update(each[0] for each in wanted.finditer(read))
    return len(found)


async def ids_of(picture: Picture) -> tuple[set[str], set[str]]:
    """Return the ids of all payments, and of those that were updated."""
    payments: set[str] = set()
    updates: set[str] = set()
    for batch in picture.journal.replay(kinds=(Kind.PAYMENT, Kind.UPDATE)):
        for entry in batch:
            (payments if entry.kind == Kind.PAYMENT else updates).add(entry.id)
    return payments, updates


if __name__ == "__main__":
    main()
