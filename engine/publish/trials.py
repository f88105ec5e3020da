"""Trials of a version: as a shadow beside the active version, or rolled out to part of the
payments."""

from __future__ import annotations

from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.activate import bring_in, take_out
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry.changes import Change
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.trials import (
    Decider,
    clear_rollout,
    clear_shadow,
    set_rollout,
    set_shadow,
)
from tollkeeper.engine.registry.versions import check_publish_alone
from tollkeeper.engine.runtime import Engine


class SetShadow(AccountVerb, frozen=True):
    """Evaluate a version beside the active one, once its windows are whole.

    Raises `NotFound`, and `Invalid` when a list it declares is there with another type.
    """

    kind: Decider
    name: str
    version: int

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        version = self.kind, self.name, self.version
        account = self.number(engine)
        await bring_in(
            engine, account, author, *version, lambda state: set_shadow(state, *version), progress
        )
        return Effect(version=self.version)


class ClearShadow(AccountVerb, frozen=True):
    """Stop evaluating the shadow. Raises `NotFound`, also for a name without a shadow."""

    kind: Decider
    name: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        account = self.number(engine)
        await take_out(
            engine, account, author, lambda state: clear_shadow(state, self.kind, self.name)
        )
        return Effect()


class SetRollout(AccountVerb, frozen=True):
    """Let a version decide `percent` of the payments, chosen by the key `by`, once its windows are
    whole.

    Raises `NotFound`, `Invalid`, and `Conflict` for a name that is not published.
    """

    kind: Decider
    name: str
    version: int
    percent: int
    by: str

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        version = self.kind, self.name, self.version

        def change(state: Account) -> Change:
            check_publish_alone(state)
            return set_rollout(state, *version, self.percent, self.by)

        await bring_in(engine, self.number(engine), author, *version, change, progress)
        return Effect(version=self.version)


class ClearRollout(AccountVerb, frozen=True):
    """Let the active version decide all payments again. Raises `NotFound`, also without a rollout."""

    kind: Decider
    name: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        account = self.number(engine)
        await take_out(
            engine, account, author, lambda state: clear_rollout(state, self.kind, self.name)
        )
        return Effect()
