"""What a node does with requests before it sends them on to the one that owns the journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tollkeeper.api.http import forward
from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.api.http.forward import Forwarder
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.plain import answering
from tollkeeper.api.http.shard_requests import ShardRequests
from tollkeeper.tests.api.http.service import open_service, payment

pytestmark = pytest.mark.anyio
PART = b"x" * 1000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("stranger", [None, "Bearer toll_unknown", "Bearer tolls_unknown"])
async def test_nobody_without_a_key_takes_the_place_of_payments_that_wait_to_be_sent_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stranger: str | None
) -> None:
    monkeypatch.setattr(forward, "HELD_TOGETHER", len(PART))
    held, ended = asyncio.Event(), asyncio.Event()

    async def slow_body() -> AsyncIterator[bytes]:
        yield PART
        held.set()
        await ended.wait()

    async with open_service(tmp_path) as service:
        shared = service_of(service.engine, jobs=service.jobs)
        requests = ShardRequests(Forwarder(None, 30), Figures())
        requests.serve(service.engine, public_app(shared), answering(shared))
        transport = httpx.ASGITransport(requests.public)
        unnamed = {} if stranger is None else {"authorization": stranger}
        named = {"authorization": f"Bearer {await service.key('shop', 'payments')}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
            post = client.post
            slow = asyncio.create_task(post("/v1/payments", content=slow_body(), headers=unnamed))
            await held.wait()
            crowded = await post("/v1/payments", content=PART, headers=unnamed)
            assert crowded.status_code == 503
            paying = asyncio.create_task(post("/v1/payments", json=payment(), headers=named))
            # Time enough to be refused: both wait for a node to own the journal.
            await asyncio.wait([paying], timeout=0.1)
            requests.decides = True
            assert (await paying).status_code == 201
            ended.set()
            assert (await slow).status_code == 401
