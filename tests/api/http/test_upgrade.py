"""A newer release opens a folder: what was decided before is explained as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.engine.programs import load as loading
from tollkeeper.tests.api.http.service import Service, open_service, payment

pytestmark = pytest.mark.anyio

NEWER = """scorecard bot_behaviour
  baseline 0.95
  signal any_payment adds 0.1
"""


def forget_shipped() -> None:
    loading.shipped_program.cache_clear()
    loading.shipped_scorecard.cache_clear()


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes this release ship another scorecard."""

    def ship(text: str) -> None:
        (tmp_path / "bot_behaviour.rule").write_text(text)
        monkeypatch.setattr(loading, "SHIPPED", tmp_path)
        forget_shipped()

    yield ship
    monkeypatch.undo()
    forget_shipped()


async def scored(service: Service, id_: str) -> float:
    answer = await service.client.post("/v1/payments", json=payment(id=id_))
    score: float = answer.json()["payment"]["analyses"]["bot_behaviour"]["score"]
    return score


async def explained(service: Service, id_: str) -> dict[str, Any]:
    answer = await service.client.get(f"/v1/payments/{id_}/explanation")
    explanation: dict[str, Any] = answer.json()["explanation"]
    return explanation


async def test_a_decision_is_explained_by_the_scorecard_that_shipped_then(
    tmp_path: Path, release: Any
) -> None:
    folder = tmp_path / "data"
    async with open_service(folder) as service:
        before = await scored(service, "p-1")
        told = await explained(service, "p-1")
    release(NEWER)
    async with open_service(folder) as service:
        assert await scored(service, "p-2") == 0.95 != before
        assert await explained(service, "p-1") == told
        newer = await explained(service, "p-2")
    assert told["repeated"]
    assert newer["repeated"]
    assert [signal["name"] for signal in newer["scorecard"]["signals"]] == ["any_payment"]


async def test_the_audit_log_says_which_release_changed_the_scorecard(
    tmp_path: Path, release: Any
) -> None:
    folder = tmp_path / "data"
    async with open_service(folder) as service:
        first = await shipped(service)
    async with open_service(folder) as service:
        assert await shipped(service) == first
    release(NEWER)
    async with open_service(folder) as service:
        second = await shipped(service)
    assert [item["subject"] for item in second] == ["scorecard bot_behaviour"] * 2
    assert second[1:] == first
    assert second[0]["detail"]["checksum"] != first[0]["detail"]["checksum"]
    assert second[0]["by"].startswith("tollkeeper ")


async def shipped(service: Service) -> list[dict[str, Any]]:
    items = (await service.client.get("/v1/audit")).json()["audit"]
    return [item for item in items if item["action"] == "scorecard_shipped"]
