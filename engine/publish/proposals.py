"""Propose a change, approve it, refuse it, or make it without approval in an emergency."""

from __future__ import annotations

from msgspec import structs

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.entries import Addition, Removal
from tollkeeper.engine.lists.contents import Contents
from tollkeeper.engine.make_change import change_account, make_change
from tollkeeper.engine.programs.event_versions import EventVersionPlan, applies_from
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.activate import bring_in, find_warnings, take_out
from tollkeeper.engine.publish.change_lists import decide_entries
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry import proposals
from tollkeeper.engine.registry.changes import (
    Activated,
    BacktestFigures,
    Change,
    Deactivated,
    EntriesWanted,
    Proposable,
    RolloutSet,
    SettingsChanged,
)
from tollkeeper.engine.registry.lists import make_wanted
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.versions import (
    Terms,
    activate,
    deactivate,
    end_publication,
    find_version,
)
from tollkeeper.engine.runtime import Engine


async def make_proposal(
    engine: Engine,
    account: int,
    by: str,
    change: Proposable,
    note: str,
    backtest: BacktestFigures | None = None,
    warnings: tuple[Violation, ...] = (),
) -> int:
    """The proposal's number; `warnings` say what was not tried of a version, and the others that it has
    are kept with them. Raises `NotFound`, `Invalid`, `Conflict`.
    """
    if isinstance(change, Activated):
        version = find_version(
            engine.state.accounts[account], change.kind, change.name, change.number
        )
        warnings = (*warnings, *await find_warnings(engine, account, version))
    async with engine.changing:
        state = engine.state.accounts[account]
        if isinstance(change, EntriesWanted):
            make_wanted(state, change, engine.active[account].contents[change.list])
            own = tuple(structs.replace(entry, by=by) for entry in change.entries)
            change = structs.replace(change, entries=own)
        proposed = proposals.propose(state, change, note, backtest, warnings, engine.clock())
        await make_change(engine, account, by, proposed)
        return proposed.number


class Propose(AccountVerb, frozen=True):
    """Propose a change that another person makes by approving it; the effect's `count` is its
    number."""

    change: Proposable
    note: str
    warnings: tuple[Violation, ...] = ()

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        account = self.number(engine)
        # A change that could not be made is not proposed.
        state = engine.state.accounts[account]
        if isinstance(self.change, Activated):
            change = self.change
            activate(state, change.kind, change.name, change.number, Terms(until=change.until))
            _check_contract(state, change, engine.clock())
        elif isinstance(self.change, Deactivated):
            deactivate(state, self.change.kind, self.change.name)
        number = await make_proposal(
            engine, account, author, self.change, self.note, warnings=self.warnings
        )
        return Effect(count=number)


class Approve(AccountVerb, frozen=True):
    """Approve a proposal, as another person than its author: the change is made, permanently where
    it was made without approval before.

    Raises what `check_approval` and making the change raise.
    """

    proposal: int

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        account, number = self.number(engine), self.proposal

        def put(state: Account, held: Contents) -> tuple[Change, Addition | Removal]:
            wanted = proposals.check_approval(state, number, author, engine.clock()).change
            assert isinstance(wanted, EntriesWanted)
            made, content = make_wanted(state, wanted, held)
            return structs.replace(made, proposal=number), content

        def check(state: Account) -> Activated | Deactivated | RolloutSet | SettingsChanged:
            change = proposals.check_approval(state, number, author, engine.clock()).change
            assert not isinstance(change, EntriesWanted)
            if isinstance(change, Activated):
                _check_contract(state, change, engine.clock())
            if isinstance(change, Deactivated):
                return Deactivated(change.kind, change.name, proposal=number)
            return structs.replace(change, proposal=number)

        def settle(state: Account) -> SettingsChanged:
            wanted = check(state)
            assert isinstance(wanted, SettingsChanged)
            new = {name: getattr(wanted.settings, name) for name in wanted.changed}
            return SettingsChanged(structs.replace(state.settings, **new), wanted.changed, number)

        proposed = proposals.find_proposal(engine.state.accounts[account], number).change
        if isinstance(proposed, EntriesWanted):
            count = len(proposed.entries)
            await decide_entries(engine, account, author, proposed.list, count, put)
            return Effect()
        change = check(engine.state.accounts[account])
        match change:
            case SettingsChanged():
                await change_account(engine, account, author, settle)
            case Deactivated():
                await take_out(engine, account, author, check)
            case Activated() | RolloutSet():
                version = change.kind, change.name, change.number
                await bring_in(engine, account, author, *version, check, progress)
        return Effect()


def _check_contract(account: Account, change: Activated, now: int) -> None:
    """Raise `Invalid` for an event type's version that breaks the contract at no announced time."""
    version = find_version(account, change.kind, change.name, change.number)
    planned = EventVersionPlan(change.applies_from is not None, change.applies_from)
    applies_from(account, version, planned, now)


class Refuse(AccountVerb, frozen=True):
    """Refuse a proposal, or withdraw one's own; a change made without approval is undone at once.

    Raises `NotFound`, `Conflict`, `Invalid`.
    """

    proposal: int
    reason: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        account, number, reason = self.number(engine), self.proposal, self.reason

        def change(state: Account) -> Change:
            refused = proposals.refuse_proposal(state, number, reason, engine.clock())
            proposal = state.proposals[number]
            if not proposals.is_in_force(state, proposal):
                return refused
            assert isinstance(proposal.change, Activated)
            back = end_publication(state, proposal.change.kind, proposal.change.name)
            return structs.replace(back, reason=reason, proposal=number)

        def remove(state: Account, held: Contents) -> tuple[Change, Removal | None]:
            refused = proposals.refuse_proposal(state, number, reason, engine.clock())
            proposal = state.proposals[number]
            assert isinstance(proposal.change, EntriesWanted)
            back = proposals.withdraw_alone(proposal, proposal.change, held, engine.clock())
            if back is None:
                return refused, None
            made, content = back
            return structs.replace(made, reason=reason, proposal=number, ended=True), content

        wanted = proposals.find_proposal(engine.state.accounts[account], number).change
        if isinstance(wanted, EntriesWanted):
            count = len(wanted.entries)
            await decide_entries(engine, account, author, wanted.list, count, remove)
            return Effect()
        await change_account(engine, account, author, change)
        return Effect()


class PublishAlone(AccountVerb, frozen=True):
    """Make a proposed change without approval, in an emergency, until a time (µs) within a day.

    The proposal stays open for approval. Raises what `check_alone` and `bring_in` raise.
    """

    proposal: int
    until: int
    reason: str

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        account, number = self.number(engine), self.proposal
        until, reason = self.until, self.reason

        def change(state: Account) -> Change:
            proposed = proposals.check_alone(state, number, until, reason, engine.clock())
            assert isinstance(proposed, Activated)
            version = proposed.kind, proposed.name, proposed.number
            made = activate(
                state, *version, Terms(untested=proposed.untested, until=until, reason=reason)
            )
            return structs.replace(made, proposal=number, alone=True)

        def put(state: Account, held: Contents) -> tuple[Change, Addition]:
            wanted = proposals.check_alone(state, number, until, reason, engine.clock())
            assert isinstance(wanted, EntriesWanted)
            made, content = proposals.put_alone(wanted, held, until, engine.clock())
            return structs.replace(made, reason=reason, proposal=number), content

        state = engine.state.accounts[account]
        proposed = proposals.check_alone(state, number, until, reason, engine.clock())
        if isinstance(proposed, EntriesWanted):
            count = len(proposed.entries)
            await decide_entries(engine, account, author, proposed.list, count, put)
            return Effect()
        version = proposed.kind, proposed.name, proposed.number
        await bring_in(engine, account, author, *version, change, progress)
        return Effect()
