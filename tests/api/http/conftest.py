from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tollkeeper.tests.api.http.service import Service, open_service


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(tmp_path / "data") as opened:
        yield opened
