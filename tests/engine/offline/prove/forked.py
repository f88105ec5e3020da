"""The solver's process, forked as those of services are: its start takes longer than most questions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tollkeeper.engine.offline.prove import worker
from tollkeeper.tests.forked import FORKED


@pytest.fixture(autouse=True, scope="module")
def forked_solver() -> Iterator[None]:
    """For tests that ask; test_worker.py has the process itself, as it is started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "get_context", lambda _method: FORKED)
        yield
