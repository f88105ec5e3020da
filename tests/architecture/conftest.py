from __future__ import annotations

from collections.abc import Iterator

import pytest

from tollkeeper.tests.architecture.trees import tree


@pytest.fixture(autouse=True, scope="package")
def _trees() -> Iterator[None]:
    """Gives the trees' memory back, as hundreds of MB slow down the tests that come after."""
    yield
    tree.cache_clear()
