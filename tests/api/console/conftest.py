from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time_ns

import httpx
import pytest

from tollkeeper.tests.api.http.service import Service, open_service, payment

RULE = """rule gate "What comes through"
  condition large "A large amount"
    when amount > 100.00
    then deny
"""
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Shop:
    """A service with payments, a rule and a list, and a browser that is signed in."""

    service: Service
    browser: httpx.AsyncClient
    key: str


async def sign_in(service: Service, key: str) -> httpx.AsyncClient:
    """A browser with a session: over http it would not send the cookie, which wants https."""
    browser = service.client_with(None)
    answer = await browser.post("/console/sign-in", data={"key": key})
    assert answer.status_code == 303, answer.text
    cookie = answer.headers["set-cookie"].partition(";")[0]
    browser.cookies.clear()
    browser.headers["cookie"] = cookie
    return browser


@pytest.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """Shared by tests that leave it as it is."""
    async with open_shop(tmp_path_factory.mktemp("shop")) as opened:
        yield opened


@pytest.fixture
async def own_shop(tmp_path: Path) -> AsyncIterator[Shop]:
    """For a test that changes it."""
    async with open_shop(tmp_path) as opened:
        yield opened


@asynccontextmanager
async def open_shop(folder: Path) -> AsyncIterator[Shop]:
    async with open_service(folder / "data") as service:
        # The pages ask for the last hours and days: as they are, not as the other tests' clock says.
        service.engine.clock = lambda: time_ns() // 1000
        await furnish(service.client)
        key = await service.key("shop", "admin")
        browser = await sign_in(service, key)
        yield Shop(service, browser, key)
        await browser.aclose()


async def furnish(client: httpx.AsyncClient) -> None:
    """Three payments of one device, two of them denied; one of them with hostile free text."""
    stored = await client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    assert stored.status_code == 201, stored.text
    made = await client.put("/v1/lists/blocked", json={"type": "string"})
    assert made.status_code in (200, 201), made.text
    asked = {"bot_behaviour": True, "rule": {"name": "gate"}}
    for number, amount in enumerate((10, 200, 300)):
        body = payment(id=f"order-{number}", amount=amount, analyze=asked)
        answer = await client.post("/v1/payments", json=body)
        assert answer.status_code == 201, answer.text
    odd = payment(
        id=HOSTILE,
        amount=500,
        analyze=asked,
        user={"id": HOSTILE, "email": f"{HOSTILE}@shop.example"},
        order={"id": HOSTILE},
        merchant={"id": HOSTILE},
    )
    answer = await client.post("/v1/payments", json=odd)
    assert answer.status_code == 201, answer.text
