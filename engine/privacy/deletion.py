"""Delete an account with all its data; only when and by whom it was created and deleted is kept.

The deletion is a change in the journal, effective at once. The data are then removed in steps,
while traffic goes on; the next start finishes an interrupted removal.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.privacy.forgetting import drop_unfinished_erasures, rewriting
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry.accounts import delete_account, sharing
from tollkeeper.engine.runtime import Engine

_ENTRIES_LEFT = 2
"""How many entries are kept of a deleted account: its creation and its deletion."""


class DeleteAccount(AccountVerb, frozen=True):
    """Delete a suspended account and its test account, with all their data."""

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        live = self.number(engine)
        removed = 0
        async with AsyncExitStack() as turns:
            # Retention purges a test account in its own turn.
            for number in sharing(engine.state, live):
                await turns.enter_async_context(engine.publishing[number])
            for number in reversed(sharing(engine.state, live)):
                async with engine.changing:
                    account = engine.state.accounts[number]
                    await make_change(engine, number, author, delete_account(account))
                for key in account.keys:
                    engine.key_uses.pop(key, None)
                removed += await remove_deleted(engine, number)
        return Effect(count=removed)


async def remove_deleted(engine: Engine, number: int) -> int:
    """Remove a deleted account's data; returns how many entries. Raises `JournalError`."""
    async with rewriting(engine, number):
        await engine.windows.keep(number, ())
        drop_unfinished_erasures(engine, number)
        engine.seen_times.give_up_account(number)
        engine.monitors.states.forget_account(number)
        while await engine.outbox.write(partial(outbox.forget_account_step, account=number)):
            pass
        await engine.outbox.empty_log()
        return await engine.journal.forget_account(number)


async def finish_deletions(engine: Engine) -> None:
    """Finish interrupted removals, before the data are read. Raises `JournalError`."""
    for number in engine.state.deleted:
        if engine.journal.count(number) > _ENTRIES_LEFT:
            await remove_deleted(engine, number)
