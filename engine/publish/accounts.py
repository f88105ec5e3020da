"""Create, suspend and resume accounts; create and revoke keys."""

from __future__ import annotations

from tollkeeper.engine.filling import fill
from tollkeeper.engine.make_change import change_account, make_change
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect, Verb
from tollkeeper.engine.registry.accounts import (
    create_account,
    create_test_account,
    resume_account,
    sharing,
    suspend_account,
)
from tollkeeper.engine.registry.keys import create_key, revoke_key
from tollkeeper.engine.registry.scopes import KeyScope
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.shipped import take_up_shipped


class CreateAccount(Verb, frozen=True):
    """Create an account; the shipped scorecard decides in it."""

    name: str

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        async with engine.changing:
            number, created = create_account(engine.state, self.name, engine.journal.shard)
            await make_change(engine, number, author, created)
            await take_up_shipped(engine, number)
            if engine.ready.is_set():
                await fill(engine, number, engine.active[number].plans(), progress)
        return Effect()


class SuspendAccount(AccountVerb, frozen=True):
    """Refuse the account's keys and send no notices for it, until it is resumed."""

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        await change_account(engine, self.number(engine), author, suspend_account)
        return Effect()


class ResumeAccount(AccountVerb, frozen=True):
    """Resume a suspended account."""

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        await change_account(engine, self.number(engine), author, resume_account)
        engine.monitors.raised.set()
        return Effect()


class CreateKey(AccountVerb, frozen=True):
    """Create a key, which is the effect's `key` and shown only there.

    `expires_at` in µs. `test` makes a key of the test account, which is created when there is none.
    `owner` is the user responsible for it.
    """

    scopes: tuple[KeyScope, ...]
    name: str = ""
    expires_at: int | None = None
    test: bool = False
    owner: str = ""

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        number = self.number(engine)
        async with engine.changing:
            if self.test:
                number = await _test_account(engine, number, author, progress)
            key, created = create_key(
                engine.state.accounts[number],
                self.scopes,
                self.name,
                self.expires_at,
                self.owner,
                engine.journal.shard.number,
            )
            await make_change(engine, number, author, created)
        return Effect(key=key)


class RevokeKey(AccountVerb, frozen=True):
    """Revoke the key whose public part is `id`."""

    id: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        live = self.number(engine)
        async with engine.changing:
            number = next(
                (
                    n
                    for n in sharing(engine.state, live)
                    if self.id in engine.state.accounts[n].keys
                ),
                live,
            )
            revoked = revoke_key(engine.state.accounts[number], self.id)
            await make_change(engine, number, author, revoked)
        return Effect()


async def _test_account(engine: Engine, number: int, author: str, progress: Progress) -> int:
    """The number of the account's test account, which is created when there is none."""
    account = engine.state.accounts[number]
    if account.live is not None:
        return number
    if account.test is not None:
        return account.test
    made, created = create_test_account(engine.state, account, engine.journal.shard)
    await make_change(engine, made, author, created)
    if engine.ready.is_set():
        await fill(engine, made, engine.active[made].plans(), progress)
    return made
