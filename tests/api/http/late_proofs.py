"""A service whose proofs have no time when a text is published or proposed."""

from __future__ import annotations

import asyncio

import pytest

from tollkeeper.api.http import files
from tollkeeper.engine.offline.jobs.jobs import Jobs
from tollkeeper.engine.offline.testing import publishable
from tollkeeper.engine.offline.testing.files import read_library, stored_library
from tollkeeper.engine.registry.state import Account
from tollkeeper.grammar.diagnostics import Diagnostic

PROMISED = """rule gate
  condition small when amount < 100.00 then deny
  must "small payments are never denied" when amount < 5.00 never deny
"""


def leave_no_time_for_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are tried in this process, where the time for proofs is over at once."""

    async def try_here(_jobs: Jobs, account: Account, content: bytes) -> list[Diagnostic]:
        library = read_library(stored_library(account))
        return await asyncio.to_thread(
            publishable.try_text, content, library, account.settings.thresholds
        )

    monkeypatch.setattr(publishable, "PROMISES_S", 0.0)
    monkeypatch.setattr(files, "try_beside", try_here)
