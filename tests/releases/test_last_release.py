"""A folder that an earlier release wrote is opened, and goes on as it was.

`journal_4.tar.gz` was made by the release whose tables were at 4, with `make_folder.py`.
"""

from __future__ import annotations

import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.engine.backup.verify import verify
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.registry.webhooks import opened_secrets
from tollkeeper.tests.api.http.service import errors

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).with_name("journal_4.tar.gz")
SECRET = "a-secret-of-letters"
KEY = "toll_IrVgcMDb9rfgywCoKc7uS88xJPzCU8HamzUSkhlrfCt1N6Om_OXTEg"
WRITTEN = 1_795_334_400_000_000
"""2026-11-22T08:00:00Z, a minute after the folder was written."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(FOLDER) as packed:
        packed.extractall(tmp_path / "data", filter="data")
    return tmp_path / "data"


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with open_engine(folder, "serve", clock=lambda: WRITTEN) as engine:
        await rebuild(engine, lambda _share: None)
        transport = httpx.ASGITransport(public_app(service_of(engine)))  # type: ignore[arg-type]
        headers = {"authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", headers=headers
        ) as client:
            yield client


async def decided(client: httpx.AsyncClient, user: str) -> str:
    body = {
        "payment": {
            "type": "purchase",
            "currency": "EUR",
            "method": {"type": "credit_card"},
            "merchant": {"id": "m-1"},
            "user": {"id": user},
            "analyze": {"bot_behaviour": True, "rule": {"name": "gate"}},
        }
    }
    answer = await client.post("/v1/payments", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["payment"]["analyses"]["rule"]["condition"]["id"])


async def test_its_rules_lists_and_windows_decide_on(client: httpx.AsyncClient) -> None:
    assert await decided(client, "u-1") == "busy"
    assert await decided(client, "u-9") == "listed"


async def test_what_it_decided_is_explained_as_it_was(client: httpx.AsyncClient) -> None:
    for id_, condition in (("p-3", "busy"), ("p-listed", "listed")):
        found = (await client.get(f"/v1/payments/{id_}/explanation")).json()["explanation"]
        assert found["repeated"]
        kept = (await client.get(f"/v1/payments/{id_}")).json()["payment"]["analyses"]
        assert kept["rule"]["condition"]["id"] == condition
    history = (await client.get("/v1/payments/p-1")).json()["history"]
    assert [each["status"] for each in history] == ["initiated", "blocked"]


async def test_its_alerts_webhooks_and_audit_log_are_there(client: httpx.AsyncClient) -> None:
    [alert] = (await client.get("/v1/alerts")).json()["alerts"]
    assert (alert["monitor"], alert["key"]) == ("guessing", ["u-1"])
    hooks = (await client.get("/v1/webhooks")).json()["webhooks"]
    assert [hook["url"] for hook in hooks] == ["https://shop.example/alerts"]
    actions = [each["action"] for each in (await client.get("/v1/audit")).json()["audit"]]
    assert {"account_created", "key_created", "activated", "entries_changed"} <= {*actions}


async def test_the_secrets_of_its_webhooks_sign_on_and_stand_nowhere_in_clear(
    folder: Path,
) -> None:
    def holds_it() -> bool:
        return any(SECRET.encode() in path.read_bytes() for path in folder.iterdir())

    assert holds_it()
    async with open_engine(folder, "serve", clock=lambda: WRITTEN) as engine:
        (webhook,) = engine.state.accounts[1].webhooks.values()
        assert opened_secrets(engine.folder_key, 1, webhook, WRITTEN) == [SECRET]
        assert not holds_it()
    assert verify(folder).faults == []


async def test_its_ids_and_idempotency_keys_are_still_known(client: httpx.AsyncClient) -> None:
    sent = {"payment": {"id": "p-0", "type": "verify", "currency": "EUR"}}
    sent["payment"] |= {"method": {"type": "pix"}, "merchant": {"id": "m-1"}}
    assert errors(await client.post("/v1/payments", json=sent)) == [("payment.id", "taken")]
    key = {"idempotency-key": "key-0"}
    assert errors(await client.post("/v1/payments", json=sent, headers=key)) == [
        ("idempotency-key", "idempotency_mismatch")
    ]


async def test_no_fault_is_found_and_what_has_no_checksum_is_counted(
    client: httpx.AsyncClient, folder: Path
) -> None:
    report = verify(folder)
    assert report.faults == []
    assert report.entries["payment"] == 5
    assert report.without_checksum > 10
