"""Which server runs the application with the least CPU?

    python -m tollkeeper.bench.asgi [--seconds 3] [--rounds 3]

uvicorn (httptools, uvloop) and granian, one process each, with the same applications: a bare one
that reads the body and answers with a constant, and the whole service with the shipped scorecard.
Also the bare one as a Litestar route (`@asgi`), and `toll serve`, which is uvicorn with limits of
its own. The rounds alternate; the figures are medians. CPU is the server's with its children and
threads.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import cast

import uvicorn
from litestar import Litestar, asgi
from litestar.types import ASGIApp, LifeSpanScope, LifeSpanSend, Receive, Scope, Send

from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.api.http.serve import run_background
from tollkeeper.api.http.settings import Settings
from tollkeeper.bench.http import furnish
from tollkeeper.bench.load import LoadResult, load
from tollkeeper.bench.servers import Server, calling, free_port, serving
from tollkeeper.bench.tables import Cell, show
from tollkeeper.engine.journal.lock import SERVICE_PURPOSE
from tollkeeper.engine.open import open_engine

ANSWER = b'{"payment":{"id":"0","status":"initiated"}}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]
SERVERS = ("uvicorn", "granian")
FOLDER = "BENCH_FOLDER"


async def bare(scope: Scope | LifeSpanScope, receive: Receive, send: Send) -> None:
    """Read the body, answer with a constant."""
    if scope["type"] == "lifespan":
        await awake(receive, send)
        await asleep(receive, send)
        return
    more = True
    while more:
        more = bool((await receive()).get("more_body", False))
    await send({"type": "http.response.start", "status": 201, "headers": HEADERS})
    await send({"type": "http.response.body", "body": ANSWER, "more_body": False})


class Whole:
    """The service on the folder named in the environment, open while the server runs."""

    def __init__(self) -> None:
        self.app: ASGIApp = bare

    async def __call__(self, scope: Scope | LifeSpanScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self.app(scope, receive, send)
            return
        settings = Settings(folder=Path(os.environ[FOLDER]))
        async with AsyncExitStack() as opened:
            engine = await opened.enter_async_context(open_engine(settings.folder, SERVICE_PURPOSE))
            await opened.enter_async_context(run_background(engine, lambda _share: None))
            await engine.ready.wait()
            self.app = public_app(service_of(engine, settings))
            await awake(receive, send)
            await asleep(receive, send)


whole = Whole()
routed = Litestar(
    [asgi("/", is_mount=True, copy_scope=False)(bare)], openapi_config=None, logging_config=None
)


async def awake(receive: Receive, send: Send) -> None:
    await receive()
    await cast("LifeSpanSend", send)({"type": "lifespan.startup.complete"})


async def asleep(receive: Receive, send: Send) -> None:
    await receive()
    await cast("LifeSpanSend", send)({"type": "lifespan.shutdown.complete"})


def serve(server: str, name: str, port: int) -> None:
    """Run `bare`, `routed` or `whole` on a server, until it is stopped."""
    if server == "uvicorn":
        apps: dict[str, ASGIApp] = {"bare": bare, "routed": routed, "whole": whole}
        uvicorn.run(
            apps[name], port=port, http="httptools", loop="uvloop", log_config=None, access_log=False,
            server_header=False, date_header=False,
        )  # fmt: skip
        return
    from granian import Granian
    from granian.constants import HTTPModes, Interfaces, Loops

    Granian(
        f"tollkeeper.bench.asgi:{name}", port=port, interface=Interfaces.ASGI, workers=1,
        loop=Loops.uvloop, http=HTTPModes.http1, websockets=False, log_enabled=False,
    ).serve()  # fmt: skip


@contextmanager
def serve_application(server: str, name: str, folder: Path) -> Iterator[Server]:
    """That application on that server, with a data folder of its own."""
    os.environ[FOLDER] = str(folder / server)
    key = furnish(folder / server, "shipped") if name == "whole" else ""
    port = free_port()
    call = f"tollkeeper.bench.asgi.serve({server!r}, {name!r}, {port})"
    with calling(call, port, "/health/ready", key) as running:
        yield running


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    installed = [name for name in SERVERS if find_spec(name)]
    for name, title in (
        ("bare", "An application that answers with a constant"),
        ("whole", "The whole service"),
    ):
        with TemporaryDirectory(prefix="toll-bench-") as place, ExitStack() as running:
            folder = Path(place)
            servers = {
                each: running.enter_context(serve_application(each, name, folder))
                for each in installed
            }
            if name == "bare":
                way = "uvicorn, by a route of Litestar's"
                servers[way] = running.enter_context(serve_application("uvicorn", "routed", folder))
            else:
                key = furnish(folder / "toll", "shipped")
                servers["toll serve"] = running.enter_context(serving(folder / "toll", key))
            found = measure_servers(servers, options.seconds, options.rounds)
        show_servers(title, found)
    if "granian" not in installed:
        print("granian is not installed here\n")


def measure_servers(
    servers: dict[str, Server], seconds: int, rounds: int
) -> dict[str, list[LoadResult]]:
    found: dict[str, list[LoadResult]] = {name: [] for name in servers}
    for server in servers.values():
        load(server, 1)
    for _ in range(rounds):
        for name, server in servers.items():
            found[name].append(load(server, seconds))
    return found


def show_servers(title: str, found: dict[str, list[LoadResult]], one: str = "uvicorn") -> None:
    """Print medians, and each CPU as a multiple of that of `one`."""
    first = median(each.cpu_each for each in found[one])
    rows: list[list[Cell]] = []
    for name, loads in found.items():
        cpu = median(each.cpu_each for each in loads)
        rate, p99 = median(each.rate for each in loads), median(each.p99 for each in loads)
        rows.append([name, rate, cpu, cpu / first, p99])
    show(title, ["", "requests/s", "CPU µs each", "×", "p99 ms"], rows)


if __name__ == "__main__":
    main()
