"""The solver's process, forked as those of services are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tollkeeper.tests.forked import fork_solver


@pytest.fixture(autouse=True, scope="module")
def forked_solver() -> Iterator[None]:
    """For tests that ask; test_worker.py has the process itself, as it is started."""
    with pytest.MonkeyPatch.context() as patch:
        fork_solver(patch)
        yield
