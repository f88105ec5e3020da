"""What does the event loop use for a payment at the node that owns it, and at one that forwards it?

    python -m tollkeeper.bench.forwarding [--payments 1280] [--rounds 5] [--server URL]

One process holds a service on a data folder, one on a temporary PostgreSQL database, and a node
that forwards to the latter over loopback connections, each by the plain way and by ASGI. Clients'
ends take no sockets, 64 requests at once; the rounds alternate. A forwarded payment's time is that
of both nodes' loops, so what is beyond the owner's is forwarding. The least of each way is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import uvloop
from litestar.types import ASGIApp

from tollkeeper.api.http.app import payment_links, plain_payments, public_app, service_of
from tollkeeper.api.http.forward import Forwarder
from tollkeeper.api.http.logs import logging_to
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.plain import AnswerPlain, answering
from tollkeeper.api.http.serve import SERVICE_COLLECTS_AT, Server, configuration
from tollkeeper.api.http.shard_requests import ShardRequests
from tollkeeper.api.http.shards import Shards
from tollkeeper.api.http.taken_payments import PaymentLinks
from tollkeeper.bench.postgres import own_database
from tollkeeper.bench.tables import show
from tollkeeper.bench.ways import SETTINGS, Way, furnish, requests_of
from tollkeeper.engine.journal.source import Database, JournalSource
from tollkeeper.engine.open import open_engine

TRAFFIC = "3 windows"
AT_ONCE = 64
IDLE_S = 30.0
EMBEDDED, OWNED, FORWARDED = "a data folder", "its owner", "another node and its owner"
PLAIN, ORDINARY = "plain", "ASGI"


class Asked:
    """A way, the key that it takes, and the address to which its node forwards, if it does."""

    def __init__(self, way: Way, key: str, node: ShardRequests | None = None, to: str = "") -> None:
        self.way, self.key = way, key
        self._node, self._to = node, to

    async def measure(self, random: Random, payments: int) -> None:
        if self._node is not None:
            # Both nodes share one engine, which says where to.
            self._node.learn("owner", self._to)
        requests = requests_of(random, self.key, payments)
        gc.collect()
        await self.way.measure(requests)


@asynccontextmanager
async def listening_at(app: ASGIApp, links: PaymentLinks | None) -> AsyncIterator[str]:
    """Serve in this loop; yields the address."""
    config = configuration(app, SETTINGS, links=links)
    config.lifespan = "off"
    server = Server(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        server.should_exit = True
        await serving


def way_of(app: ASGIApp, answer: AnswerPlain, kind: str) -> Way:
    payments = plain_payments(answer) if kind == PLAIN else None
    return Way(configuration(app, SETTINGS, payments), AT_ONCE)


async def measure(server: str, payments: int, rounds: int) -> dict[tuple[str, str], Way]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="toll-forwarding-")))
        url = stack.enter_context(own_database(server))
        asked: dict[tuple[str, str], Asked] = {}
        sources: dict[str, JournalSource] = {
            EMBEDDED: folder / "embedded",
            OWNED: Database(url, folder / "node"),
        }
        for place, source in sources.items():
            engine = await stack.enter_async_context(open_engine(source, "bench"))
            key = await furnish(engine, TRAFFIC)
            service = service_of(engine, SETTINGS)
            app, answer = public_app(service), answering(service)
            for kind in (PLAIN, ORDINARY):
                if place == EMBEDDED:
                    asked[place, kind] = Asked(way_of(app, answer, kind), key)
                    continue
                forwarder = Forwarder(None, IDLE_S)
                stack.callback(forwarder.close)
                owner, other = (ShardRequests(forwarder, Figures()) for _ in range(2))
                for node in (owner, other):
                    node.serve(engine, app, answer)
                owner.decides = True
                owning, forwarding = Shards([owner]), Shards([other])
                asked[place, kind] = Asked(way_of(owning.public, owning.plain, kind), key)
                between = payment_links(owning.taking, SETTINGS) if kind == PLAIN else None
                to = await stack.enter_async_context(listening_at(owning.from_nodes, between))
                way = way_of(forwarding.public, forwarding.plain, kind)
                asked[FORWARDED, kind] = Asked(way, key, other, to)
        random = Random(4)
        for _ in range(rounds):
            for each in asked.values():
                await each.measure(random, payments)
        return {name: each.way for name, each in asked.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--payments", type=int, default=1_280)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--server", default="postgresql://postgres@127.0.0.1:5432/test")
    given = parser.parse_args()
    gc.freeze()
    gc.set_threshold(*SERVICE_COLLECTS_AT)
    with (
        Path(os.devnull).open("w") as nowhere,
        logging_to(nowhere),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        ways = runner.run(measure(given.server, given.payments, given.rounds))
    least = min(ways[EMBEDDED, PLAIN].loop_us)
    rows = []
    for place in (EMBEDDED, OWNED, FORWARDED):
        plain, ordinary = (min(ways[place, kind].loop_us) for kind in (PLAIN, ORDINARY))
        rows.append((place, plain, ordinary, f"{plain / least:.2f}", f"{plain / ordinary:.2f}"))
    show(
        f"µs of the event loop's CPU a payment, {AT_ONCE} at once",
        ("decided at", "plain", "by ASGI", "× a data folder", "× ASGI"),
        rows,
    )


if __name__ == "__main__":
    main()
