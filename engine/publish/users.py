"""Add, change and remove users, and make links that sign them in once."""

from __future__ import annotations

from dataclasses import dataclass

from tollkeeper.engine.make_change import change_account
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry import users
from tollkeeper.engine.registry.changes import UserRemoved, UserSet
from tollkeeper.engine.registry.errors import Conflict
from tollkeeper.engine.registry.sessions import LINK_LASTS
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.runtime import Engine


@dataclass(frozen=True, slots=True)
class UserLink:
    """`code` signs the user in once, before `ends_at` (µs)."""

    code: str
    ends_at: int


async def give_link(engine: Engine, account: int, by: str, name: str) -> UserLink:
    """Make a link for the user. Raises `NotFound`, and `Conflict` where no service runs.

    The code is kept in the service's memory; the journal records only that a link was made.
    """
    if not engine.ready.is_set():
        raise Conflict("service", "no service is ready on this data folder to sign in to")
    await change_account(engine, account, by, lambda state: users.make_user_link(state, name))
    now = engine.clock()
    return UserLink(engine.sessions.make_link(account, name, None, now), now + LINK_LASTS)


class PutUser(AccountVerb, frozen=True):
    """Add a user, or change a user's role or the merchants they see (as `users.set_user`).

    Raises `Invalid`, `Conflict`, and `Forbidden` in a test account.
    """

    name: str
    role: str
    merchants: tuple[str, ...] | None = None

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        def decide(state: Account) -> UserSet | None:
            return users.set_user(state, self.name, self.role, self.merchants)

        await change_account(engine, self.number(engine), author, decide)
        return Effect()


class DropUser(AccountVerb, frozen=True):
    """Remove a user and end their sessions. Raises `NotFound`."""

    name: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        def decide(state: Account) -> UserRemoved:
            return users.remove_user(state, self.name)

        await change_account(engine, self.number(engine), author, decide)
        return Effect()


class GiveLink(AccountVerb, frozen=True):
    """Make a code that signs a user in once; it is the effect's `key`."""

    name: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        link = await give_link(engine, self.number(engine), author, self.name)
        return Effect(key=link.code)
