"""Each test of the contract runs on every implementation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.engine.velocity.worlds import MEMORIES

IMPLEMENTATIONS = {name: partial(Windows, memory=memory) for name, memory in MEMORIES.items()}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes empty windows."""
    return request.param


@pytest.fixture
def windows(make: Callable[..., Any]) -> Windows:
    return make()
