"""A change of the configuration: it applies from its sequence number on, and is journaled like a
payment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TypeVar

from tollkeeper.engine.enter_alerts import settle_transitions
from tollkeeper.engine.journal.entries import (
    Entry,
    Kind,
    ListChange,
)
from tollkeeper.engine.keep import count_transitions, withdraw_transitions
from tollkeeper.engine.lists.contents import Contents, build_contents
from tollkeeper.engine.monitors.alerts import EventOutcome
from tollkeeper.engine.monitors.lone_publications import lone_publication
from tollkeeper.engine.programs.active import ActivePrograms, Loaded, VersionId
from tollkeeper.engine.programs.load import load_account, with_contents
from tollkeeper.engine.registry.accounts import sharing
from tollkeeper.engine.registry.changes import Change, RecordedChange, encode_change
from tollkeeper.engine.registry.state import Account, fold_change
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.stored_records import encode_stored

T = TypeVar("T", bound=Change)

asked_by: ContextVar[str | None] = ContextVar("asked_by", default=None)
"""The id of the HTTP request that caused the change, also in background work that the request
started."""


async def make_change(
    engine: Engine,
    account: int,
    by: str,
    change: Change,
    content: ListChange | None = None,
    contents: Contents | None = None,
    compiled: Mapping[VersionId, Loaded] = {},
) -> None:
    """Apply a change and append it to the journal; returns once it is on disk.

    The caller holds `engine.changing`. Payments with later sequence numbers see the change while it
    is still being written. When the write fails, the journal loses those payments too, and the
    change is undone. For a change of a list's entries, `content` is what to write and `contents`
    what the list then holds. `compiled` are loaded versions that the change makes active. Raises
    `JournalError`.
    """
    state, active = engine.state, dict(engine.active)
    at = engine.arrivals.put_in_order(engine.clock())
    sequence = await engine.windows.take_sequence()
    recorded = RecordedChange(sequence, at, account, by, change)
    transitions = lone_publication(recorded)
    if content is None:
        put_in_force(engine, recorded, compiled=compiled)
    else:
        assert contents is not None
        put_in_force(engine, recorded, (content.list, contents))
    entry = Entry(
        sequence=sequence,
        account=account,
        kind=Kind.CHANGE,
        id=str(account),
        arrived=at,
        time=at,
        body=encode_change(by, change, asked_by.get()),
        outcome=encode_stored(EventOutcome(transitions=transitions)) if transitions else None,
    )
    count_transitions(engine.monitors, account, sequence, transitions)
    kept = None
    try:
        kept = engine.journal.append(entry, contents=() if content is None else (content,))
        await kept
    finally:
        # A cancelled request gets here too, and only after its entry was written or lost.
        if kept is None or kept.exception() is not None:
            engine.state, engine.active = state, active
            withdraw_transitions(engine.monitors, account, sequence, transitions)
    await settle_transitions(engine, account, sequence, transitions)


async def change_account(
    engine: Engine, account: int, by: str, decide: Callable[[Account], T | None]
) -> T | None:
    """Make the change that `decide` gives for the account as it is now, if any; returns it.

    Raises what `decide` raises, and `JournalError`.
    """
    async with engine.changing:
        change = decide(engine.state.accounts[account])
        if change is not None:
            await make_change(engine, account, by, change)
    return change


def put_in_force(
    engine: Engine,
    recorded: RecordedChange,
    listed: tuple[str, Contents] | None = None,
    compiled: Mapping[VersionId, Loaded] = {},
) -> None:
    """Set the engine's configuration and active programs to what they are after the change.

    `listed` is the list whose entries changed, with what it holds now."""
    before, account = engine.state, recorded.account
    engine.state = state = fold_change(before, recorded)
    if account not in state.accounts:
        engine.active.pop(account)
        return
    active = engine.active.get(account)
    if active is not None and listed is not None:
        engine.active[account] = with_contents(active, state.accounts[account], *listed)
    else:
        engine.active[account] = _reload(state.accounts[account], active, compiled)
    for other in sharing(state, account)[1:]:
        if state.accounts[other] is not before.accounts[other]:
            engine.active[other] = _reload(
                state.accounts[other], engine.active.get(other), compiled
            )


def _reload(
    account: Account, before: ActivePrograms | None, compiled: Mapping[VersionId, Loaded]
) -> ActivePrograms:
    contents = {} if before is None else dict(before.contents)
    loaded = {} if before is None else before.compiled()
    for name, entries in account.lists.items():
        if name not in contents:
            contents[name] = build_contents(entries.spec, ())
    return load_account(account, contents, {**loaded, **compiled})


def contents_of(engine: Engine, account: Account) -> Mapping[str, Contents]:
    """The contents of the account's lists and tables, read from the journal."""
    return {
        name: build_contents(
            entries.spec,
            (
                entry
                for batch in engine.journal.list_entries(account.number, name)
                for entry in batch
            ),
        )
        for name, entries in account.lists.items()
    }
