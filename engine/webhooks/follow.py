"""Put notices of the journal's new entries into the outbox, in the background.

A payment does not wait for it. The sequence number reached is written in the same transaction as
the notices, so a crash neither loses nor repeats any.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection
from functools import partial
from typing import NamedTuple

from tollkeeper.engine.journal.damage import UNREADABLE
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Notice
from tollkeeper.engine.registry.state import Account, Webhook
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.webhooks.notices import followed_kinds, notices_of


class NewNotices(NamedTuple):
    """The notices of an account's entries up to the sequence number `reached`."""

    account: int
    notices: list[Notice]
    reached: int


async def put_notices(engine: Engine) -> None:
    """Put notices of new entries into the outbox, one batch of each account at a time.

    Raises `JournalError`.
    """
    last = engine.journal.last_sequence()
    while batches := [
        each
        for account in list(engine.state.accounts.values())
        if account.webhooks and (each := await _find_next(engine, account, last)) is not None
    ]:
        await engine.outbox.write(partial(_put, engine, batches))


async def _find_next(engine: Engine, account: Account, last: int) -> NewNotices | None:
    """The account's next notices up to the sequence number `last`; None when all are in the outbox."""
    webhooks = account.webhooks.values()
    kinds = followed_kinds(webhooks)
    if not kinds:
        return None
    wanted_from = min(
        since for webhook in webhooks for kind, since in webhook.kinds.items() if kind in kinds
    )
    followed = await engine.outbox.read(partial(outbox.followed_up_to, account=account.number))
    after = max(followed, wanted_from)
    if after >= last:
        return None
    entry_kinds = frozenset(kinds.values())
    return await asyncio.to_thread(
        _read_batch, engine, account.number, webhooks, entry_kinds, after, last
    )


def _read_batch(
    engine: Engine,
    account: int,
    webhooks: Collection[Webhook],
    kinds: Collection[Kind],
    after: int,
    last: int,
) -> NewNotices:
    entries = next(engine.journal.replay(account, after=after, up_to=last, kinds=kinds), [])
    notices: list[Notice] = []
    for entry in entries:
        try:
            notices += notices_of(entry, webhooks)
        except UNREADABLE as error:
            engine.damage.meet(entry, error)
    return NewNotices(account, notices, entries[-1].sequence if entries else last)


def _put(engine: Engine, batches: Collection[NewNotices], connection: sqlite3.Connection) -> None:
    now = engine.clock()
    for account, notices, reached in batches:
        outbox.add_notices(connection, notices, engine.folder_key, now)
        outbox.set_followed(connection, account, reached)
        for url in {notice.url for notice in notices}:
            outbox.trim(connection, account, url)
