"""A real service on a real data folder, spoken to over its ASGI interface."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.journal.schema import DATABASE_FILE
from tollkeeper.engine.offline.jobs.jobs import Jobs
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.publish.accounts import CreateAccount, CreateKey
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.windows import CAP
from tollkeeper.tests.api.http.forked_jobs import open_forked_jobs

HURRIED = Settings(key_work=1_000_000, account_work=1_000_000, account_changes=1_000_000)
"""Tests ask and change more in a second than a person does."""
NOW = 1_789_000_000_000_000
"""2026-09-10T00:26:40Z, where these tests' clock stands still."""


@dataclass
class Service:
    """An open engine, a client with a key of every scope, and the way to make more clients."""

    engine: Engine
    folder: Path
    jobs: Jobs
    client: httpx.AsyncClient = field(init=False)

    async def key(self, account: str, *scopes: Any) -> str:
        made = await CreateKey(account, scopes).perform(self.engine, "test", _ignore)
        assert made.key is not None
        return made.key

    def client_with(self, key: str | None, settings: Settings = HURRIED) -> httpx.AsyncClient:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        app = public_app(service_of(self.engine, settings, jobs=self.jobs))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
        return httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers)

    async def account(self, name: str) -> None:
        await CreateAccount(name).perform(self.engine, "test", _ignore)


def _ignore(_share: float) -> None:
    pass


@asynccontextmanager
async def open_service(folder: Path, windows_cap: int = CAP) -> AsyncIterator[Service]:
    """A service on the folder, with account `shop`, which a new folder gets ready-made."""
    if not (folder / DATABASE_FILE).exists():
        shutil.copytree(await _new_shop(), folder, dirs_exist_ok=True)
    async with _open(folder, windows_cap) as service:
        key = await service.key("shop", "payments", "rules", "admin")
        await rebuild(service.engine, _ignore)
        async with service.client_with(key) as service.client:
            yield service


_NEW_SHOP = TemporaryDirectory()


async def _new_shop() -> Path:
    folder = Path(_NEW_SHOP.name) / "data"
    if not folder.exists():
        await make_shop(folder)
    return folder


async def make_shop(folder: Path) -> None:
    """A new folder with account `shop` and a journal of an identity of its own."""
    async with _open(folder) as service:
        await service.account("shop")


@asynccontextmanager
async def _open(folder: Path, windows_cap: int = CAP) -> AsyncIterator[Service]:
    opening = open_engine(folder, "serve", clock=lambda: NOW, windows_cap=windows_cap)
    async with opening as engine, open_forked_jobs() as jobs:
        yield Service(engine, folder, jobs)


def payment(**changed: Any) -> dict[str, Any]:
    """The body of a valid creation; `changed` members replace or add the payment's own."""
    whole = {
        "type": "purchase",
        "currency": "BRL",
        "amount": 129.9,
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
        "user": {"id": "u-1", "email": "ana@shop.example"},
        "merchant": {"id": "m-1", "country": "BR", "category_code": "5411"},
        "analyze": {"bot_behaviour": True},
    }
    return {"payment": {**whole, **changed}}


def errors(response: httpx.Response) -> list[tuple[str, str]]:
    """The answer's errors as (field, type)."""
    return [(item["field"], item["type"]) for item in response.json()["errors"]]


def need_all_memory(*_given: object) -> None:
    """A job that needs more memory than a job may have."""
    raise MemoryError
