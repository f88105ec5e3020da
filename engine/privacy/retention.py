"""Remove payments older than the account's setting, in small steps while traffic goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal.contract import Fenced, JournalError, Unavailable
from tollkeeper.engine.journal.damage import UNREADABLE
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.retention import OldRecord, TakeTurns
from tollkeeper.engine.labels.payment_state import payment_state
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.privacy.forgetting import payment_record, rewriting, uncount
from tollkeeper.engine.purge_alerts import purge_alerts, purge_states
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import event_reader
from tollkeeper.engine.velocity.contract import Record
from tollkeeper.engine.webhook_secrets import has_outlived_secret, settle_secrets

_EVERY_S = 3600.0
_LOOK_S = 1.0
"""How often (s) to check whether a clock in doubt is trusted, or the journal can be read, again."""


async def keep_to_retention(engine: Engine) -> None:
    """Purge every account each hour, but not by a clock in doubt; runs until cancelled."""
    while True:
        while not engine.clock_watch.is_plausible:
            await asyncio.sleep(_LOOK_S)
        try:
            await asyncio.to_thread(engine.journal.discard_abandoned)
            for account in list(engine.state.accounts):
                removed = await purge_account(engine, account)
                await _end_secrets(engine, account)
                if removed:
                    get_logger().info("purged", account=account, entries=removed)
            await engine.journal.expire(engine.clock())
        except JournalError as error:
            get_logger().warning("not_purged", reason=str(error))
        except Exception:  # whatever it is, the service goes on and the next round tries again
            get_logger().exception("not_purged")
        await asyncio.sleep(_EVERY_S)


async def _end_secrets(engine: Engine, account: int) -> None:
    """Remove from the journal webhooks' secrets that no longer sign."""
    async with engine.changing:
        known = engine.state.accounts.get(account)
        if known is not None and has_outlived_secret(known, engine.clock()):
            await settle_secrets(engine, account)


async def purge_account(engine: Engine, account: int) -> int:
    """Remove what is older than the account keeps; returns how many entries. Raises `JournalError`.

    No window is filled meanwhile: it would count what is being removed.
    """
    async with engine.publishing[account]:
        known = engine.state.accounts.get(account)
        if known is None:
            # The account was deleted meanwhile.
            return 0
        return await _purge(engine, account, engine.clock() - known.settings.retention_days * DAY)


async def _purge(engine: Engine, account: int, before: int) -> int:
    removed = 0
    # Where nothing is old, windows and their snapshot stay as they are.
    if await engine.journal.holds_older(account, before):
        async with rewriting(engine, account):
            removed = await engine.journal.purge(account, before, _turns(engine, account, before))
    await purge_alerts(engine, account, before)
    await purge_states(engine, account)
    await engine.journal.purge_lists(account, before)
    return removed


def _outlives(engine: Engine, account: int, kept: int) -> bool:
    """Whether a window reaches back further than data are kept (µs), also one that a late record reads."""
    plans = engine.active[account].plans()
    return any(plan.ages or (plan.over or 0) + engine.windows.late > kept for plan in plans)


def _turns(engine: Engine, account: int, before: int) -> TakeTurns:
    """What holds payments while they are removed, as an update meanwhile would be counted alone, and
    then takes what was removed out of the windows."""
    is_counted = _outlives(engine, account, engine.clock() - before)

    @asynccontextmanager
    async def hold(old: Sequence[OldRecord]) -> AsyncIterator[None]:
        payments = [each.id for each in old if each.kind == Kind.PAYMENT]
        async with engine.locks.of_all("payment", account, payments):
            counted = await _find_counted(engine, account, old) if is_counted else {}
            try:
                yield
            except Unavailable:
                for sequence in await _find_left(engine, counted):
                    del counted[sequence]
                await _uncount(engine, counted.values())
                raise
            await _uncount(engine, counted.values())

    return hold


async def _find_counted(
    engine: Engine, account: int, old: Iterable[OldRecord]
) -> dict[int, Record]:
    """The payments and events as windows count them, by sequence number. Raises `JournalError`."""
    read_event, found = event_reader(engine.state.accounts[account]), {}
    for sequence, kind, id_ in old:
        entry = None
        try:
            if kind == Kind.PAYMENT and (
                known := await engine.journal.first_and_last(account, id_)
            ):
                entry = known[0]
                found[sequence] = payment_record(account, id_, await payment_state(engine, *known))
            elif kind == Kind.EVENT and (entry := await engine.journal.entry(sequence)):
                found[sequence] = read_event(entry)
        except UNREADABLE as error:
            assert entry is not None
            # No window counts it.
            engine.damage.meet(entry, error)
        await asyncio.sleep(0)
    return found


async def _uncount(engine: Engine, records: Iterable[Record]) -> None:
    for record in records:
        await uncount(engine, record)
        await asyncio.sleep(0)


async def _find_left(engine: Engine, sequences: Iterable[int]) -> set[int]:
    """Those of the sequence numbers that the journal still has, once it can be read again. Raises
    `Fenced`."""
    left = set()
    for sequence in sequences:
        while True:
            try:
                if await engine.journal.entry(sequence) is not None:
                    left.add(sequence)
                break
            except Fenced:
                raise
            except Unavailable:
                await asyncio.sleep(_LOOK_S)
    return left
