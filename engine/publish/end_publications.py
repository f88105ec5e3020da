"""End publications that were made until a time, and record in the journal that they ended.

`pick_version` returns to the former version exactly at that time; the journal's entry comes a
little later.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.registry.changes import ProgramKind
from tollkeeper.engine.registry.state import Account, Configuration
from tollkeeper.engine.registry.versions import end_publication
from tollkeeper.engine.runtime import Engine

END_LOOK_S = 1.0
SERVICE_AUTHOR = "tollkeeper"
"""The author of these changes in the audit log."""


async def end_publications(engine: Engine) -> None:
    """Record each end within a second of it, at first those that passed while the service was
    stopped; runs until cancelled.
    """
    while True:
        # When the disk can't be written, a later round does it.
        with suppress(JournalError):
            await end_due(engine)
        await asyncio.sleep(END_LOOK_S)


async def end_due(engine: Engine) -> None:
    """End every publication whose time has passed; by a clock in doubt none, as an entry of the
    journal can't be taken back. Raises `JournalError`.
    """
    if not engine.clock_watch.is_plausible or not _has_due(engine.state, engine.clock()):
        return
    # Windows that only the ended version read are removed with the next change.
    async with engine.changing:
        for number, account in engine.state.accounts.items():
            for kind, name in _due(account, engine.clock()):
                change = end_publication(engine.state.accounts[number], kind, name)
                await make_change(engine, number, SERVICE_AUTHOR, change)


def _has_due(state: Configuration, now: int) -> bool:
    return any(_due(account, now) for account in state.accounts.values())


def _due(account: Account, now: int) -> list[tuple[ProgramKind, str]]:
    if account.live is not None:  # its files are those of the live account
        return []
    return [
        file
        for file, lineage in account.files.items()
        if lineage.until is not None and lineage.until <= now
    ]
