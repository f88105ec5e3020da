from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tollkeeper.api.http import stream
from tollkeeper.tests.api.http.service import Service, open_service


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(tmp_path / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
async def shared_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """For tests that leave it as it is: to open one takes longer than to refuse a request."""
    async with open_service(tmp_path_factory.mktemp("shared") / "data") as opened:
        yield opened


@pytest.fixture(autouse=True)
def short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for a stream, and nothing more, is not kept waiting."""
    monkeypatch.setattr(stream, "STREAM_SECONDS", 1)
