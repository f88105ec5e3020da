"""Versions on trial: a shadow beside the active version, a rollout to a part of the payments."""

from __future__ import annotations

from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.activate import bring_in, take_out
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry import trials
from tollkeeper.engine.registry.changes import Change
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.registry.versions import check_publish_alone
from tollkeeper.engine.runtime import Engine


async def set_shadow(
    engine: Engine, account: int, by: str, kind: Decider, name: str, number: int, progress: Progress
) -> None:
    """Evaluate a version beside the active one, once its windows are whole.

    Raises `NotFound`, and `Invalid` when a list it declares is there with another type.
    """

    def change(state: Account) -> Change:
        return trials.set_shadow(state, kind, name, number)

    await bring_in(engine, account, by, kind, name, number, change, progress)


async def clear_shadow(engine: Engine, account: int, by: str, kind: Decider, name: str) -> None:
    """Raises `NotFound`, also for a name without a shadow."""
    await take_out(engine, account, by, lambda state: trials.clear_shadow(state, kind, name))


async def set_rollout(
    engine: Engine,
    account: int,
    by: str,
    kind: Decider,
    name: str,
    number: int,
    percent: int,
    key: str,
    progress: Progress,
) -> None:
    """Give `percent` of the payments, chosen by their `key`, a version, once its windows are whole.

    Raises `NotFound`, `Invalid`, and `Conflict` for a name that is not published.
    """

    def change(state: Account) -> Change:
        check_publish_alone(state)
        return trials.set_rollout(state, kind, name, number, percent, key)

    await bring_in(engine, account, by, kind, name, number, change, progress)


async def clear_rollout(engine: Engine, account: int, by: str, kind: Decider, name: str) -> None:
    """Raises `NotFound`, also for a name without a rollout."""
    await take_out(engine, account, by, lambda state: trials.clear_rollout(state, kind, name))


class SetShadow(AccountVerb, frozen=True):
    """Evaluate a version beside the active one."""

    kind: Decider
    name: str
    version: int

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        account = self.number(engine)
        await set_shadow(engine, account, author, self.kind, self.name, self.version, progress)
        return Effect(version=self.version)


class ClearShadow(AccountVerb, frozen=True):
    """Evaluate the shadow no longer."""

    kind: Decider
    name: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        await clear_shadow(engine, self.number(engine), author, self.kind, self.name)
        return Effect()


class SetRollout(AccountVerb, frozen=True):
    """Give `percent` of the payments, chosen by the key `by`, a version."""

    kind: Decider
    name: str
    version: int
    percent: int
    by: str

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        await set_rollout(
            engine,
            self.number(engine),
            author,
            self.kind,
            self.name,
            self.version,
            self.percent,
            self.by,
            progress,
        )
        return Effect(version=self.version)


class ClearRollout(AccountVerb, frozen=True):
    """Give all payments the active version again."""

    kind: Decider
    name: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        await clear_rollout(engine, self.number(engine), author, self.kind, self.name)
        return Effect()
