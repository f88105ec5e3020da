"""A data folder with payments, made by a real engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tollkeeper.tests.api.http.service import open_service, payment

Fill = Callable[[Path, int], list[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(scope="session")
def fill() -> Fill:
    """Adds that many payments to a folder; their ids."""

    def fill(folder: Path, count: int) -> list[str]:
        async def pay() -> list[str]:
            async with open_service(folder) as service:
                answers = [
                    await service.client.post("/v1/payments", json=payment()) for _ in range(count)
                ]
                return [answer.json()["payment"]["id"] for answer in answers]

        return asyncio.run(pay())

    return fill
