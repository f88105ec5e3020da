"""Changes that need another person's approval: proposed, approved, refused, or made without it.

A proposal contains the change. The change that is made in the end has the proposal's number, so
approving a proposal and making its change are one entry of the journal.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.entries import Addition, ListEntry, Removal
from tollkeeper.engine.lists.contents import Contents, held_entry
from tollkeeper.engine.registry.accounts import check_live
from tollkeeper.engine.registry.changes import (
    Activated,
    BacktestFigures,
    EntriesChanged,
    EntriesWanted,
    Proposable,
    ProposalRefused,
    Proposed,
    SettingsChanged,
)
from tollkeeper.engine.registry.errors import Conflict, Forbidden, Invalid, NotFound
from tollkeeper.engine.registry.lists import addition, removal
from tollkeeper.engine.registry.state import Account, Proposal
from tollkeeper.engine.registry.users import origin_of, person_of
from tollkeeper.engine.registry.versions import MAX_REASON

LASTS: Final = 7 * DAY
"""How long a proposal can be approved (µs)."""
LONGEST_ALONE: Final = DAY
"""The longest that a change without approval may last (µs)."""
MAX_PROPOSALS: Final = 100


def propose(
    account: Account,
    change: Proposable,
    note: str,
    backtest: BacktestFigures | None,
    warnings: tuple[Violation, ...],
    now: int,
) -> Proposed:
    """Raises `Invalid` for an empty note, `Conflict` when too many proposals wait."""
    check_live(account)
    _check_reason("note", note)
    if sum(is_waiting(each, now) for each in account.proposals.values()) >= MAX_PROPOSALS:
        raise Conflict("proposal", f"{MAX_PROPOSALS} proposals wait already: decide some of them")
    number, base = len(account.proposals) + 1, base_of(account, change)
    return Proposed(number, change, base, note, backtest, warnings)


def base_of(account: Account, change: Proposable) -> str:
    """Identifies what the change would replace, so that a proposal can tell when that has changed."""
    if isinstance(change, EntriesWanted):
        # Entries do not replace others: the list may change, and the proposal stays valid.
        return f"list {change.list}"
    if isinstance(change, SettingsChanged):
        return repr([getattr(account.settings, name) for name in change.changed])
    lineage = account.files.get((change.kind, change.name))
    return "none" if lineage is None or lineage.active is None else f"version {lineage.active}"


def find_proposal(account: Account, number: int) -> Proposal:
    """Raises `NotFound`."""
    proposal = account.proposals.get(number)
    if proposal is None:
        raise NotFound("proposal", f"there is no proposal {number}")
    return proposal


def is_waiting(proposal: Proposal, now: int) -> bool:
    """Whether it can still be decided; one made without approval can still be approved."""
    return proposal.state == "alone" or (proposal.state == "waiting" and now < proposal.at + LASTS)


def check_approval(account: Account, number: int, by: str, now: int) -> Proposal:
    """The proposal that `by` may approve now.

    Raises `NotFound`, `Conflict` for one that is decided, expired or void, and `Forbidden` unless
    `by` is a user who did not propose it, and neither of the two made a sign-in link for the other.
    """
    proposal = _waiting(account, number, now)
    person = person_of(account, by)
    if person not in account.users:
        message = "only a person approves: sign in as a user, or with a key that a user answers for"
        raise Forbidden("approval", message)
    proposer = origin_of(account, proposal.by)
    if person == proposer:
        raise Forbidden("approval", "another person approves than the one who proposed")
    for maker, other in ((proposer, person), (person, proposer)):
        if maker in _possible_impersonators(account, other):
            # With such a link the one could have signed in as the other.
            message = f"`{maker}` made a link that signs `{other}` in: another person approves"
            raise Forbidden("approval", message)
    _require_not_void(account, proposal, now)
    return proposal


def _require_not_void(account: Account, proposal: Proposal, now: int) -> None:
    reason = why_void(account, proposal, now)
    if reason is not None:
        raise Conflict("proposal", reason)


def why_void(account: Account, proposal: Proposal, now: int) -> str | None:
    """Why a waiting proposal can't take effect any more; None where it can."""
    change = proposal.change
    if isinstance(change, Activated) and change.until is not None and change.until <= now:
        return "the time until which it was to hold is over"
    if isinstance(change, Activated) and (change.applies_from or now) < now:
        return "the time from which it was to apply is over"
    if isinstance(change, EntriesWanted) and all(
        entry.expires_at is not None and entry.expires_at <= now for entry in change.entries
    ):
        return "the entries are over"
    if not is_in_force(account, proposal) and base_of(account, change) != proposal.base:
        return "what it would take the place of has changed: propose it anew"
    return None


def alone_until(account: Account, proposal: Proposal) -> int | None:
    """Until when (µs) a change that was made without approval holds; None for any other, and for a
    version that is no longer active.
    """
    change = proposal.change
    if isinstance(change, Activated) and is_in_force(account, proposal):
        return account.files[change.kind, change.name].until
    return proposal.until if proposal.state == "alone" else None


def _possible_impersonators(account: Account, person: str) -> set[str]:
    """The people who could have signed in as the person: they made a sign-in link for the person, or for
    one of these people.
    """
    impersonators: set[str] = set()
    unvisited = [person]
    while unvisited:
        makers = {
            origin_of(account, by) for by in account.link_makers.get(unvisited.pop(), ())
        } - impersonators
        impersonators |= makers
        unvisited += makers
    return impersonators


def refuse_proposal(account: Account, number: int, reason: str, now: int) -> ProposalRefused:
    """Raises `NotFound`, `Conflict`, `Invalid` without a reason."""
    _check_reason("reason", reason)
    return ProposalRefused(_waiting(account, number, now).number, reason)


def check_alone(
    account: Account, number: int, until: int, reason: str, now: int
) -> Activated | EntriesWanted:
    """The proposed change, to be made without approval until a time within a day.

    Raises `NotFound`, `Conflict`, and `Invalid` with all violations.
    """
    proposal = _waiting(account, number, now)
    _check_reason("reason", reason)
    change = proposal.change
    match change:
        case Activated(kind="rule" | "scorecard") | EntriesWanted(action="put"):
            pass
        case _:
            message = "only a version that decides and entries to put can be published alone"
            raise Conflict("proposal", message)
    if proposal.state == "alone":
        raise Conflict("proposal", "it was published alone already")
    _require_not_void(account, proposal, now)
    if not now < until <= now + LONGEST_ALONE:
        raise Invalid.at("until", "out_of_range", "what is published alone ends within 24 hours")
    return change


def is_in_force(account: Account, proposal: Proposal) -> bool:
    """Whether the change was made without approval and is still active."""
    change = proposal.change
    if proposal.state != "alone" or not isinstance(change, Activated):
        return False
    lineage = account.files[change.kind, change.name]
    return lineage.until is not None and lineage.active == change.number


def put_alone(
    wanted: EntriesWanted, contents: Contents, until: int, now: int
) -> tuple[EntriesChanged, Addition]:
    """The change that puts entries until a time (µs), or their own expiry if earlier.

    Raises `Conflict` when one of the values is in the list already: it would expire too.
    """
    for entry in wanted.entries:
        held = held_entry(contents, entry.value)
        if held is not None and (held.expires_at is None or held.expires_at > now):
            message = (
                f"`{entry.value}` stands in `{wanted.list}` already: only what is new is put alone"
            )
            raise Conflict("proposal", message)
    change, content = addition(wanted.list, _ending(wanted, until))
    return structs.replace(change, until=until, alone=True), content


def withdraw_alone(
    proposal: Proposal, wanted: EntriesWanted, contents: Contents, now: int
) -> tuple[EntriesChanged, Removal] | None:
    """The change that removes the entries that were put without approval and have not changed
    since; None when there are none.
    """
    if proposal.until is None or proposal.until <= now:
        return None
    values = []
    for entry in _ending(wanted, proposal.until):
        held = held_entry(contents, entry.value)
        if held is not None and held.expires_at == entry.expires_at:
            values.append(entry.value)
    return removal(wanted.list, tuple(values)) if values else None


def _ending(wanted: EntriesWanted, until: int) -> list[ListEntry]:
    return [
        structs.replace(
            each, expires_at=until if each.expires_at is None else min(until, each.expires_at)
        )
        for each in wanted.entries
    ]


def _waiting(account: Account, number: int, now: int) -> Proposal:
    proposal = find_proposal(account, number)
    if proposal.state in ("approved", "refused"):
        raise Conflict("proposal", f"proposal {number} is {proposal.state} already")
    if not is_waiting(proposal, now):
        raise Conflict("proposal", f"proposal {number} is older than 7 days: propose it anew")
    return proposal


def _check_reason(field: str, text: str) -> None:
    if not text.strip() or len(text) > MAX_REASON or not text.isprintable():
        message = f"say why, in at most {MAX_REASON} characters, none of them a control"
        raise Invalid.at(field, "invalid_format", message)
