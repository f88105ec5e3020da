"""Record who read personal data: requests in batches every few seconds, the unmasking of a single
value before it is shown.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.keep import keep_uncounted
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.registry.accesses import DataAccess, access_of, encode_access
from tollkeeper.engine.runtime import Engine

WRITE_ACCESSES_S: Final = 10.0


async def keep_accesses(engine: Engine) -> None:
    """Write the gathered requests every few seconds, and once more when cancelled."""
    try:
        while True:
            await asyncio.sleep(WRITE_ACCESSES_S)
            await write_accesses(engine)
    finally:
        await write_accesses(engine)


async def write_accesses(engine: Engine) -> None:
    """Write the gathered requests; those that can't be written stay for the next call."""
    for reader, tally in engine.accesses.take().items():
        account, _ = reader
        if account not in engine.state.accounts:
            continue
        try:
            await _append(engine, account, tally.until, access_of(reader, tally))
        except JournalError as error:
            engine.accesses.put(reader, tally)
            get_logger().warning("access_not_noted", account=account, reason=str(error))


async def note_reveal(engine: Engine, account: int, by: str, payment: str, field: str) -> None:
    """Record that `by` is shown a field of a payment; returns once that is on disk. Raises
    `JournalError`."""
    now = engine.clock()
    access = DataAccess(by, since=now, requests=1, payment=payment, field=field)
    await _append(engine, account, now, access)


async def _append(engine: Engine, account: int, last: int, access: DataAccess) -> None:
    await keep_uncounted(engine, account, Kind.ACCESS, access.by, last, encode_access(access))
