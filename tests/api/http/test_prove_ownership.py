"""What a service answers whose journal another has taken over while it did not look."""

from __future__ import annotations

import asyncio
from pathlib import Path
from socket import create_server
from typing import Any

import httpx
import psycopg
import pytest

from tollkeeper.api.http.app import plain_payments, public_app, service_of
from tollkeeper.api.http.plain import answering
from tollkeeper.api.http.prove_ownership import prove_ownership
from tollkeeper.api.http.serve import Server, configuration
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.journal.postgres import journal as postgres_journal
from tollkeeper.engine.journal.postgres.journal import open_database
from tollkeeper.engine.journal.source import Database
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.tests.postgres import own_database

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_no_answer_rests_on_memory_once_another_may_have_changed_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_journal, "_RENEW_S", 3600.0)
    with own_database() as url:
        async with open_engine(Database(url, tmp_path), "serve") as engine:
            await rebuild(engine, lambda _share: None)
            transport = httpx.ASGITransport(prove_ownership(public_app(service_of(engine)), engine))
            async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
                # Neither a key nor a payment is known here: another may know them by now.
                asked = [("/v1/payments/p", 401), ("/nowhere", 404), ("/health/live", 200)]
                for path, status in asked:
                    assert (await client.get(path)).status_code == status
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute("UPDATE shards SET lease_until = '-infinity'")
                async with open_database(url, "serve"):
                    answers = [(await client.get(path)).status_code for path, _ in asked]
    assert answers == [503, 503, 200]


async def test_no_plain_answer_does_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_journal, "_RENEW_S", 3600.0)
    with own_database() as url, create_server(("127.0.0.1", 0)) as bound:
        async with open_engine(Database(url, tmp_path), "serve") as engine:
            await rebuild(engine, lambda _share: None)
            payments = plain_payments(answering(service_of(engine, Settings())))
            server = Server(configuration(_no_application, Settings(), payments))
            serving = asyncio.create_task(server.serve(sockets=[bound]))
            address = f"http://127.0.0.1:{bound.getsockname()[1]}"
            async with httpx.AsyncClient(base_url=address) as client:
                # Another node may know the key by now.
                headers = {"authorization": "Bearer toll_unknown"}
                answer = await client.post("/v1/payments", content=b"{}", headers=headers)
                assert answer.status_code == 401
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute("UPDATE shards SET lease_until = '-infinity'")
                async with open_database(url, "serve"):
                    answer = await client.post("/v1/payments", content=b"{}", headers=headers)
                    assert answer.status_code == 503
            server.should_exit = True
            await serving


async def _no_application(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "lifespan"
    for event in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{event}.complete"})
