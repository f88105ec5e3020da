"""A throwaway service that shows its decisions on generated traffic."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx
import uvicorn
import uvloop

from tollkeeper.api.http.app import plain_payments, public_app, service_of
from tollkeeper.api.http.logs import logging_to
from tollkeeper.api.http.plain import answering
from tollkeeper.api.http.serve import (
    Server,
    configuration,
    listening,
    run_background,
    stop_by_signals,
)
from tollkeeper.api.http.settings import Settings
from tollkeeper.api.terminal.demo_attack import WATCH, with_blocks
from tollkeeper.api.terminal.demo_trial import with_a_challenge
from tollkeeper.api.terminal.traffic import ONE_DAY, TrafficItem, traffic
from tollkeeper.api.terminal.traffic.live import ATTACK, guess_cards
from tollkeeper.engine.journal.lock import SERVICE_PURPOSE
from tollkeeper.engine.offline.jobs.jobs import open_jobs
from tollkeeper.engine.open import open_engine
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.publish.accounts import CreateAccount, CreateKey
from tollkeeper.engine.publish.activate import Store
from tollkeeper.engine.publish.sign_in import MakeLink
from tollkeeper.engine.publish.trials import SetShadow
from tollkeeper.engine.publish.verbs import Effect, Verb
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.ask import run_search_process

DEMO_ACCOUNT = "demo"
DEMO_RULE = "web_checkout"
HOST = "127.0.0.1"
PAUSE_S = 0.25
ATTACK_DELAY_S = 5.0
ATTACK_PAUSE_S = 0.75
SEED = 7
CHARGEBACK = "chargeback"
UNDISPUTED = 5
"""The number of paid frauds without a chargeback so far: the bank reports them later."""
# An evening's traffic of a small shop, placed in the past. Besides it, an attack guesses card
# numbers.
EVENING = replace(
    ONE_DAY.scaled(0.03),
    hours=3,
    bots={kind: count for kind, count in ONE_DAY.bots.items() if kind != ATTACK},
)

SAMPLE: dict[str, Any] = {
    "payment": {
        "type": "purchase",
        "currency": "BRL",
        "amount": 129.90,
        "method": {
            "type": "credit_card",
            "card": {
                "network": "visa",
                "presence": "card_not_present",
                "bin": "41111111",
                "last_four": "1111",
            },
        },
        "device": {
            "ip_address": "203.0.113.7",
            "headers": {"User-Agent": "python-requests/2.32"},
            "fingerprint": {"id": "d-1", "provider": "basic"},
        },
        "merchant": {"id": "m-1", "country": "BR"},
        "analyze": {"bot_behaviour": True, "rule": {"name": DEMO_RULE}},
    }
}


class DemoAccess(NamedTuple):
    """Where the service listens, a valid key, and a link that signs in to its console once."""

    url: str
    key: str
    console: str


class Sample(NamedTuple):
    """One sample payment: what was sent, and the answer's `analyses`."""

    item: TrafficItem
    analyses: dict[str, Any]


def demo(port: int, show: Callable[[DemoAccess | Sample], None]) -> None:
    """Serve on `port` until SIGINT or SIGTERM; `show` is called with how to reach it, and with each
    decision.
    """
    with (
        TemporaryDirectory(prefix="toll-demo-") as name,
        Path(name, "log").open("w") as log,
        logging_to(log),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_demo(Settings(folder=Path(name, "data"), host=HOST, port=port), show))


async def _demo(settings: Settings, show: Callable[[DemoAccess | Sample], None]) -> None:
    with listening(settings.host, settings.port) as bound:
        async with open_engine(settings.folder, SERVICE_PURPOSE) as engine:
            await _serve(engine, settings, bound, show)


async def _serve(
    engine: Engine,
    settings: Settings,
    bound: socket,
    show: Callable[[DemoAccess | Sample], None],
) -> None:
    key = await _furnish(engine)
    async with run_search_process(engine.source) as search, open_jobs() as jobs:
        engine.run_in_worker = jobs.run_in_worker
        service = service_of(engine, settings, search, jobs)
        server = Server(
            configuration(public_app(service), settings, plain_payments(answering(service)))
        )
        stop_by_signals(server, search)
        async with run_background(engine, unwatched, server):
            await engine.ready.wait()
            address = f"http://{HOST}:{bound.getsockname()[1]}"
            code = (await _perform(engine, MakeLink(DEMO_ACCOUNT, "you", ("admin",)))).key
            access = DemoAccess(f"{address}/v1", key, f"{address}/console/sign-in?code={code}")
            async with _shopping(server, access, show):
                await server.serve(sockets=[bound])


async def _furnish(engine: Engine) -> str:
    """Make an account with the shipped rules active, one of them edited and with a further version
    as its shadow, and with a monitor; return its key.
    """
    await _perform(engine, CreateAccount(DEMO_ACCOUNT))
    for path in sorted(SHIPPED.glob("*.rule")):
        text = path.read_text()
        if path.stem != "bot_behaviour":
            await _perform(engine, Store(DEMO_ACCOUNT, "rule", path.stem, text, activate=True))
    starter = (SHIPPED / f"{DEMO_RULE}.rule").read_text()
    edited = with_blocks(starter)
    await _perform(engine, Store(DEMO_ACCOUNT, "rule", DEMO_RULE, edited, activate=True))
    tried = Store(DEMO_ACCOUNT, "rule", DEMO_RULE, with_a_challenge(edited), activate=False)
    version = (await _perform(engine, tried)).version
    assert version is not None
    await _perform(engine, SetShadow(DEMO_ACCOUNT, "rule", DEMO_RULE, version))
    await _perform(engine, Store(DEMO_ACCOUNT, "event", "payment", WATCH, activate=True))
    chargeback = (SHIPPED / "events" / f"{CHARGEBACK}.rule").read_text()
    await _perform(engine, Store(DEMO_ACCOUNT, "event", CHARGEBACK, chargeback, activate=True))
    key = (await _perform(engine, CreateKey(DEMO_ACCOUNT, ("payments", "rules", "admin")))).key
    assert key is not None
    return key


async def _perform(engine: Engine, verb: Verb) -> Effect:
    return await verb.perform(engine, "toll demo", unwatched)


@asynccontextmanager
async def _shopping(
    server: uvicorn.Server, access: DemoAccess, show: Callable[[DemoAccess | Sample], None]
) -> AsyncIterator[None]:
    """Send sample payments over HTTP while the context lasts."""
    shopping = asyncio.create_task(_shop(server, access, show))
    try:
        yield
    finally:
        shopping.cancel()
        await asyncio.wait([shopping])


async def _shop(
    server: uvicorn.Server, access: DemoAccess, show: Callable[[DemoAccess | Sample], None]
) -> None:
    while not server.started:
        await asyncio.sleep(0.02)
    show(access)
    headers = {"authorization": f"Bearer {access.key}"}
    # The machine may sleep meanwhile: with a timeout the traffic would end when it wakes.
    async with (
        httpx.AsyncClient(
            base_url=access.url, headers=headers, timeout=httpx.Timeout(None)
        ) as client,
        asyncio.TaskGroup() as acting,
    ):
        acting.create_task(_evening(client, show))
        acting.create_task(_attack(client, show))


async def _evening(client: httpx.AsyncClient, show: Callable[[DemoAccess | Sample], None]) -> None:
    frauds: deque[str] = deque()
    for item in traffic(SEED, datetime.now(UTC) - timedelta(hours=EVENING.hours), EVENING):
        if "payment" in item.body:
            await _report(client, item, show)
            await asyncio.sleep(PAUSE_S)
            continue
        update = dict(item.body["update"])
        id_ = update.pop("id")
        await client.patch(f"/payments/{id_}", json={"payment": update})
        if item.bot and update["status"] == "succeeded":
            frauds.append(id_)
        if len(frauds) > UNDISPUTED:
            await client.post("/events", json=_chargeback(frauds.popleft()))


async def _attack(client: httpx.AsyncClient, show: Callable[[DemoAccess | Sample], None]) -> None:
    """Guess card numbers; denied payments don't reach the issuer."""
    await asyncio.sleep(ATTACK_DELAY_S)
    for item, answered in guess_cards():
        action = await _report(client, item, show)
        body = {"payment": {"status": "blocked"} if action == "deny" else answered}
        await client.patch(f"/payments/{item.body['payment']['id']}", json=body)
        await asyncio.sleep(ATTACK_PAUSE_S)


def _chargeback(payment_id: str) -> dict[str, Any]:
    data = {"payment_id": payment_id, "stage": "chargeback", "reason": "fraud"}
    return {"event": {"type": CHARGEBACK, "data": data}}


async def _report(
    client: httpx.AsyncClient, item: TrafficItem, show: Callable[[DemoAccess | Sample], None]
) -> str | None:
    """Send an item; return the action, None if the payment was refused."""
    analyze = {"bot_behaviour": True, "rule": {"name": DEMO_RULE}}
    body = {"payment": {**item.body["payment"], "analyze": analyze}}
    answer = await client.post("/payments", json=body)
    if answer.status_code != httpx.codes.CREATED:
        return None
    analyses = answer.json()["payment"]["analyses"]
    show(Sample(item, analyses))
    action: str = analyses["bot_behaviour"]["action"]
    return action


def curl_line(access: DemoAccess) -> str:
    """Return a command that works when pasted."""
    return (
        f"curl -s {access.url}/payments -H 'Authorization: Bearer {access.key}' "
        f"-H 'Content-Type: application/json' -d '{json.dumps(SAMPLE)}'"
    )
