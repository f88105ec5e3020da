"""Make the open erasures again until they succeed: the person who requested one may never come back."""

from __future__ import annotations

import asyncio

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.privacy.erasure import finish_erasure
from tollkeeper.engine.runtime import Engine

_EVERY_S = 300.0


async def make_erasures(engine: Engine) -> None:
    """Make the open erasures, and every five minutes those that failed; runs until cancelled."""
    while True:
        for account, user in list(engine.unfinished_erasures):
            try:
                await finish_erasure(engine, account, user)
            except JournalError as error:
                get_logger().warning("not_erased", account=account, reason=str(error))
            except Exception:  # of any type: the service goes on, and the next round tries again
                get_logger().exception("not_erased", account=account)
        await asyncio.sleep(_EVERY_S)
