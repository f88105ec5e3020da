"""What does an append cost in PostgreSQL, compared with SQLite, and which client sends it best?

    python -m tollkeeper.bench.postgres [--appends 6400] [--rounds 3] [--server URL]

Uses a temporary database on the server. The first table appends entries of 2.1 KB through the
journal, several at once; the second sends batches of 64 rows as one fenced statement through each
installed client (psycopg, asyncpg). The rounds alternate; the best of each is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg

from tollkeeper.bench.journal import entries
from tollkeeper.bench.tables import show
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.postgres.journal import open_database
from tollkeeper.engine.journal.sqlite import open_journal

AT_ONCE = (1, 16, 64, 256)
ROWS = 64
BODY = bytes(2_700)
_STATEMENT = (
    "WITH fence AS (UPDATE bench_fence SET last = {0} WHERE last = {1} RETURNING 1)"
    " INSERT INTO bench_rows SELECT * FROM unnest({2}::bigint[], {3}::text[], {4}::bytea[])"
    " WHERE EXISTS (SELECT 1 FROM fence)"
)
Batch = tuple[int, int, list[int], list[str], list[bytes]]


def open_in(place: Path | str) -> AbstractAsyncContextManager[Journal]:
    return (
        open_journal(place, "serve") if isinstance(place, Path) else open_database(place, "serve")
    )


async def appends(place: Path | str, count: int, at_once: int) -> float:
    """Return appends a second."""
    async with open_in(place) as journal:
        waiting = entries(journal.last_sequence() + 1, count)
        start = time.perf_counter()

        async def client() -> None:
            while waiting:
                # Sequence numbers must ascend, so the lowest remaining one is next.
                await journal.append(waiting.pop(0))

        await asyncio.gather(*(client() for _ in range(at_once)))
        return count / (time.perf_counter() - start)


def batches(count: int) -> list[Batch]:
    found = []
    for first in range(0, count, ROWS):
        numbers = [*range(first + 1, first + ROWS + 1)]
        found.append((numbers[-1], first, numbers, [f"p{each}" for each in numbers], [BODY] * ROWS))
    return found


def prepare(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "DROP TABLE IF EXISTS bench_fence, bench_rows; CREATE TABLE bench_fence (last bigint);"
            " INSERT INTO bench_fence VALUES (0);"
            " CREATE TABLE bench_rows (place bigint PRIMARY KEY, id text, body bytea)"
        )


def by_psycopg(url: str, sent: list[Batch]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for batch in sent:
            connection.execute(_STATEMENT.format("%s", "%s", "%b", "%b", "%b"), batch)


def by_asyncpg(url: str, sent: list[Batch]) -> None:
    import asyncpg

    async def send() -> None:
        connection = await asyncpg.connect(url)
        for batch in sent:
            await connection.execute(_STATEMENT.format("$1", "$2", "$3", "$4", "$5"), *batch)
        await connection.close()

    asyncio.run(send())


def client_rows(
    url: str, count: int, send: Callable[[str, list[Batch]], None]
) -> tuple[float, float]:
    """Return rows a second, and µs of this process's CPU per row."""
    prepare(url)
    sent = batches(count)
    start, used = time.perf_counter(), time.process_time()
    send(url, sent)
    passed, used = time.perf_counter() - start, time.process_time() - used
    return count / passed, 1e6 * used / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    parser.add_argument("--appends", type=int, default=6_400)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with own_database(given.server) as url:
        measure(url, given.appends, given.rounds)


@contextmanager
def own_database(server: str) -> Iterator[str]:
    """Yield the address of a database that is dropped at the end."""
    name = f"toll_bench_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def measure(url: str, most: int, rounds: int) -> None:
    rows = []
    for at_once in AT_ONCE:
        count = most if at_once > 1 else most // 16
        best = {"SQLite": 0.0, "PostgreSQL": 0.0}
        for _ in range(rounds):
            with TemporaryDirectory() as folder:
                for name, place in (("SQLite", Path(folder)), ("PostgreSQL", url)):
                    best[name] = max(best[name], asyncio.run(appends(place, count, at_once)))
        ratio = best["PostgreSQL"] / best["SQLite"]
        rows.append((at_once, round(best["SQLite"]), round(best["PostgreSQL"]), f"{ratio:.2f}"))
    show("Appends a second", ("at once", "SQLite", "PostgreSQL", "ratio"), rows)
    clients = {"psycopg": by_psycopg}
    if find_spec("asyncpg") is not None:
        clients["asyncpg"] = by_asyncpg
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in clients}
    for _ in range(rounds):
        for name, send in clients.items():
            found[name].append(client_rows(url, most, send))
    shown = [
        (name, round(max(each[0] for each in all_)), f"{min(each[1] for each in all_):.1f}")
        for name, all_ in found.items()
    ]
    show("Batches of 64 rows", ("client", "rows a second", "µs of CPU a row"), shown)


if __name__ == "__main__":
    main()
