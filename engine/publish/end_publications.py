"""Versions that were published until a time: the journal tells when what was there before is back.

Payments meet the former version from that moment on, by `pick_version`; the entry follows it.
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
"""Who ends a publication, as the audit shows it."""


async def end_publications(engine: Engine) -> None:
    """Notes each end within a second of it, until cancelled; those first that a stop of the service
    outlasted.
    """
    while True:
        # What the disk does not take now it takes at a later look.
        with suppress(JournalError):
            await end_due(engine)
        await asyncio.sleep(END_LOOK_S)


async def end_due(engine: Engine) -> None:
    """Ends every publication whose time is over. Raises `JournalError`."""
    if not _has_due(engine.state, engine.clock()):
        return
    # Windows that only the ended version read are given up with the next change.
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
        of
        for of, lineage in account.files.items()
        if lineage.until is not None and lineage.until <= now
    ]
