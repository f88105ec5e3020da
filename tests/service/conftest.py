"""Services and commands whose journal is in a database of the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tollkeeper.tests.postgres import own_database


@pytest.fixture
def on_database(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty database, where every service and command finds its journal."""
    with own_database() as url:
        monkeypatch.setenv("TOLL_DATABASE", url)
        yield url
