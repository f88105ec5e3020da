"""Propose a change, and approve it, refuse it, or make it alone in need."""

from __future__ import annotations

from msgspec import structs

from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.activate import bring_in, take_out
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry import proposals
from tollkeeper.engine.registry.changes import (
    Activated,
    BacktestFigures,
    Change,
    Deactivated,
    Proposable,
    RolloutSet,
    SettingsChanged,
)
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.versions import Terms, activate, deactivate, end_publication
from tollkeeper.engine.runtime import Engine


async def make_proposal(
    engine: Engine,
    account: int,
    by: str,
    change: Proposable,
    note: str,
    backtest: BacktestFigures | None = None,
) -> int:
    """The proposal's number. Raises `Invalid`, `Conflict`."""
    async with engine.changing:
        state = engine.state.accounts[account]
        proposed = proposals.propose(state, change, note, backtest, engine.clock())
        await make_change(engine, account, by, proposed)
        return proposed.number


async def approve(engine: Engine, account: int, by: str, number: int, progress: Progress) -> None:
    """Make the proposed change, for good where it was made alone before.

    Raises what `check_approval` does, and what making the change does.
    """

    def check(state: Account) -> Proposable:
        change = proposals.check_approval(state, number, by, engine.clock()).change
        if isinstance(change, Deactivated):
            return Deactivated(change.kind, change.name, proposal=number)
        return structs.replace(change, proposal=number)

    change = check(engine.state.accounts[account])
    match change:
        case SettingsChanged():
            async with engine.changing:
                state = engine.state.accounts[account]
                wanted = check(state)
                assert isinstance(wanted, SettingsChanged)
                new = {name: getattr(wanted.settings, name) for name in wanted.changed}
                settings = structs.replace(state.settings, **new)
                made = SettingsChanged(settings, wanted.changed, number)
                await make_change(engine, account, by, made)
        case Deactivated():
            await take_out(engine, account, by, check)
        case Activated() | RolloutSet():
            of = change.kind, change.name, change.number
            await bring_in(engine, account, by, *of, check, progress)


async def refuse(engine: Engine, account: int, by: str, number: int, reason: str) -> None:
    """Refuse a proposal; what was made alone and still decides gives way at once.

    Raises `NotFound`, `Conflict`, `Invalid`.
    """

    def change(state: Account) -> Change:
        refused = proposals.refuse_proposal(state, number, reason, engine.clock())
        proposal = state.proposals[number]
        if not proposals.is_in_force(state, proposal):
            return refused
        assert isinstance(proposal.change, Activated)
        back = end_publication(state, proposal.change.kind, proposal.change.name)
        return structs.replace(back, reason=reason, proposal=number)

    async with engine.changing:
        await make_change(engine, account, by, change(engine.state.accounts[account]))


async def publish_alone(
    engine: Engine,
    account: int,
    by: str,
    number: int,
    until: int,
    reason: str,
    progress: Progress,
) -> None:
    """Publish what is proposed before anybody approves it, until a time within a day.

    It waits for a second signature. Raises what `check_alone` does, and what `bring_in` does.
    """

    def change(state: Account) -> Change:
        proposed = proposals.check_alone(state, number, until, reason, engine.clock())
        of = proposed.kind, proposed.name, proposed.number
        made = activate(state, *of, Terms(untested=proposed.untested, until=until, reason=reason))
        return structs.replace(made, proposal=number, alone=True)

    found = proposals.find_proposal(engine.state.accounts[account], number)
    proposals.check_alone(engine.state.accounts[account], number, until, reason, engine.clock())
    assert isinstance(found.change, Activated)
    of = found.change.kind, found.change.name, found.change.number
    await bring_in(engine, account, by, *of, change, progress)


class Propose(AccountVerb, frozen=True):
    """Propose a change that another person makes by approving it; the effect's `count` is its number."""

    change: Proposable
    note: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        account = self.number(engine)
        # What could not be made is not proposed.
        state = engine.state.accounts[account]
        if isinstance(self.change, Activated):
            change = self.change
            activate(state, change.kind, change.name, change.number, Terms(until=change.until))
        elif isinstance(self.change, Deactivated):
            deactivate(state, self.change.kind, self.change.name)
        return Effect(count=await make_proposal(engine, account, author, self.change, self.note))


class Approve(AccountVerb, frozen=True):
    """Approve a proposal, as another person than the one who made it."""

    proposal: int

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        await approve(engine, self.number(engine), author, self.proposal, progress)
        return Effect()


class Refuse(AccountVerb, frozen=True):
    """Refuse a proposal, or take one's own back."""

    proposal: int
    reason: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        await refuse(engine, self.number(engine), author, self.proposal, self.reason)
        return Effect()


class PublishAlone(AccountVerb, frozen=True):
    """Publish a proposal before anybody approves it, until a time (µs) within a day."""

    proposal: int
    until: int
    reason: str

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        number = self.number(engine)
        await publish_alone(
            engine, number, author, self.proposal, self.until, self.reason, progress
        )
        return Effect()
