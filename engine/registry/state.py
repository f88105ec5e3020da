"""The configuration as of one sequence number of the journal: immutable, folded from the changes up
to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from msgspec import structs

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.lists.spec import Spec
from tollkeeper.engine.registry import changes as c
from tollkeeper.engine.registry.persistent_map import PersistentMap
from tollkeeper.engine.registry.roles import OF_MERCHANTS, Role
from tollkeeper.engine.registry.scopes import KeyScope, NarrowScope, granted_scopes

MAX_SESSIONS = 10_000
"""The most open sessions; beyond it, the account with most of them loses its oldest."""
LASTING_MARKS = 10_000
"""So many of an account's alerts keep their marks whatever the clock says."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """`granted` are its `scopes` with bundles resolved; `owner` is the user responsible for it, if
    any. With `merchants`, which are its owner's, it reads only what belongs to these.

    Times in µs; `expires_at` and `revoked_at` are None while there is no end.
    """

    id: str
    account: int
    hash: bytes
    name: str
    scopes: tuple[KeyScope, ...]
    granted: frozenset[NarrowScope]
    created_at: int
    created_by: str
    expires_at: int | None = None
    revoked_at: int | None = None
    owner: str = ""
    merchants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountUser:
    """A person who may sign in; `since` (µs) and `set_by` are of the last change of the role.

    With `merchants`, they see only what belongs to these.
    """

    name: str
    role: Role
    since: int
    set_by: str
    merchants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """A sign-in of `owner`, valid before `ends_at` (µs). Its scopes are those of the key `parent`,
    or `scopes`, or, with both None, those of the user's role.
    """

    account: int
    owner: str
    parent: str | None
    scopes: tuple[KeyScope, ...] | None
    started_at: int
    ends_at: int

    @property
    def is_user(self) -> bool:
        """Whether the owner is one of the account's users."""
        return self.parent is None and self.scopes is None


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable version of a file: `VersionStored` with the time (µs) and the author."""

    kind: c.ProgramKind
    name: str
    number: int
    text: str
    uses: Mapping[str, str]
    checksum: str
    language: int
    program: bytes
    stored_at: int
    stored_by: str


@dataclass(frozen=True, slots=True)
class Activation:
    """Version `number` applies from `applies_from` (µs) on."""

    applies_from: int
    number: int


@dataclass(frozen=True, slots=True)
class Rollout:
    version: int
    percent: int
    by: c.RolloutKey


@dataclass(frozen=True, slots=True)
class Lineage:
    """All versions of one file, `versions[n - 1]` being version n, and which of them are in use.

    `active` is the last one activated, None when the name is not published. `activations` are
    those since it was last unpublished, in the order of the journal. At `until` (µs), None for no
    end, `former` becomes active again; when that is None, the name is unpublished. `ended_shadows`
    says when (µs) a version was last a shadow, by its number.
    """

    versions: tuple[Version, ...] = ()
    active: int | None = None
    until: int | None = None
    former: int | None = None
    activations: tuple[Activation, ...] = ()
    shadow: int | None = None
    ended_shadows: Mapping[int, int] = field(default_factory=dict)
    rollout: Rollout | None = None


ProposalState: TypeAlias = Literal["waiting", "approved", "refused", "alone"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed change; the state `alone` means that it was made without approval.

    Times in µs; `decided_by`, `decided_at` and `reason` are of the last decision about it; `until`
    is when entries that were put without approval expire.
    """

    number: int
    change: c.Proposable
    base: str
    note: str
    backtest: c.BacktestFigures | None
    warnings: tuple[Violation, ...]
    by: str
    at: int
    state: ProposalState = "waiting"
    decided_by: str | None = None
    decided_at: int | None = None
    reason: str = ""
    until: int | None = None


@dataclass(frozen=True, slots=True)
class AlertMark:
    """The state of an alert; `by` and `at` (µs) are of its last change, None before the first."""

    state: c.AlertState
    by: str | None
    at: int | None
    note: str


@dataclass(frozen=True, slots=True)
class ListState:
    """A list or table: its spec, the journal's id of its content, and the sequence number of its
    last change.

    `content` is 0 until the entries are first replaced as a whole.
    """

    spec: Spec
    content: int
    changed: int


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that notices are sent to; `kinds` are those it gets, each from a sequence number
    on.

    `changed` is the sequence number of its last change.
    """

    url: str
    secrets: tuple[c.SealedSecret | str, ...]
    kinds: Mapping[c.NoticeKind, int]
    only: c.DecidedFilter
    paused: bool
    changed: int


@dataclass(frozen=True, slots=True)
class OpenErasure:
    """An erasure that was requested and has not ended; `sealed` as in `ErasureAsked`."""

    sealed: bytes | None
    by: str


@dataclass(frozen=True, slots=True)
class Account:
    """`keys` by id, revoked ones included. `suspended_at` (µs) and `suspended_by` are None unless
    the account is suspended. `shipped` is the scorecard, as version 0, that decides where `files`
    has none; None in an account that an older release made, until it is opened.

    `test` is the number of its test account, `live` that of the account whose test account it is.
    A test account has the files, the settings and the shipped scorecard of its live one, and is
    suspended with it. `settings_changed` is the sequence number from which its settings hold;
    `rates_changed` are those of all changes of its rates, oldest first.

    `link_makers` are, by user name, the users and keys that ever made sign-in links for it; they
    stay when the user is removed, as the name may be given again. `erasures` are the open
    ones, by the SHA-256, in hex, of the person's identifier.
    """

    number: int
    name: str
    created_at: int
    settings: c.AccountSettings = field(default_factory=c.AccountSettings)
    settings_changed: int = 0
    rates_changed: tuple[int, ...] = ()
    keys: PersistentMap[str, ApiKey] = field(default_factory=PersistentMap)
    users: PersistentMap[str, AccountUser] = field(default_factory=PersistentMap)
    link_makers: PersistentMap[str, frozenset[str]] = field(default_factory=PersistentMap)
    files: PersistentMap[tuple[c.ProgramKind, str], Lineage] = field(default_factory=PersistentMap)
    lists: PersistentMap[str, ListState] = field(default_factory=PersistentMap)
    webhooks: PersistentMap[str, Webhook] = field(default_factory=PersistentMap)
    proposals: PersistentMap[int, Proposal] = field(default_factory=PersistentMap)
    alert_marks: PersistentMap[tuple[int, int], AlertMark] = field(default_factory=PersistentMap)
    searches: PersistentMap[str, str] = field(default_factory=PersistentMap)
    erasures: PersistentMap[str, OpenErasure] = field(default_factory=PersistentMap)
    shipped: Version | None = None
    test: int | None = None
    live: int | None = None
    suspended_at: int | None = None
    suspended_by: str | None = None


@dataclass(frozen=True, slots=True)
class DeletedAccount:
    """What is kept of a deleted account; times in µs."""

    number: int
    name: str
    created_at: int
    deleted_at: int
    deleted_by: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """`sequence` is that of the last change folded in. `keys` are those not revoked, by hash;
    `sessions` those that nobody has ended, by hash, some past their end among them. `deleted` are
    the deleted accounts by their numbers, which are never reused.
    """

    sequence: int = 0
    accounts: Mapping[int, Account] = field(default_factory=dict)
    numbers: PersistentMap[str, int] = field(default_factory=PersistentMap)
    keys: Mapping[bytes, ApiKey] = field(default_factory=dict)
    sessions: PersistentMap[bytes, Session] = field(default_factory=PersistentMap)
    deleted: PersistentMap[int, DeletedAccount] = field(default_factory=PersistentMap)


def fold_change(state: Configuration, recorded: c.RecordedChange) -> Configuration:
    """The state after one more change."""
    return fold_changes(state, (recorded,))


def fold_changes(state: Configuration, recorded: Iterable[c.RecordedChange]) -> Configuration:
    """The state after all of them, given in the journal's order."""
    # What each payment looks up are dicts, copied once for all changes.
    accounts, keys = {**state.accounts}, {**state.keys}
    sequence, numbers, deleted = state.sequence, state.numbers, state.deleted
    sessions = state.sessions
    for each in _leave_out_overtaken(recorded):
        sequence, change = each.sequence, each.change
        if isinstance(change, c.AccountDeleted):
            former = _delete_account(accounts, each)
            numbers = numbers.without(former.name)
            deleted = deleted.with_item(former.number, former)
        else:
            if isinstance(change, c.AccountCreated):
                numbers = numbers.with_item(change.name, each.account)
            _change_account(accounts, each)
        _change_keys(keys, accounts, each)
        sessions = _fold_sessions(sessions, each)
    return Configuration(sequence, accounts, numbers, keys, sessions, deleted)


def _leave_out_overtaken(
    recorded: Iterable[c.RecordedChange],
) -> Iterator[c.RecordedChange]:
    """The changes without those of a list's entries that are followed by another one of the same list
    before anything else changes: a state has only the last one's number, and a service whose lists
    are kept by a program has hardly any other changes.
    """
    last: dict[tuple[int, str], c.RecordedChange] = {}
    for each in recorded:
        change = each.change
        if isinstance(change, c.EntriesChanged) and change.proposal is None:
            list_ = each.account, change.list
            last.pop(list_, None)  # so that they stay in order
            last[list_] = each
        else:
            yield from last.values()
            last.clear()
            yield each
    yield from last.values()


def _change_account(accounts: dict[int, Account], recorded: c.RecordedChange) -> None:
    """Put the account after a change, and its test account, among the accounts."""
    if isinstance(recorded.change, c.AccountCreated):
        account = Account(recorded.account, recorded.change.name, recorded.at)
        if recorded.change.live is not None:
            live = accounts[recorded.change.live]
            accounts[live.number] = replace(live, test=account.number)
            empty = {
                name: ListState(each.spec, 0, recorded.sequence)
                for name, each in live.lists.items()
            }
            account = _share(live, replace(account, live=live.number, lists=PersistentMap(empty)))
    else:
        account = accounts[recorded.account]
        for fold in (_fold_account, _fold_access, _fold_proposal, _fold_erasure):
            account = fold(account, recorded)
    accounts[recorded.account] = account
    if account.test is not None:
        accounts[account.test] = _share(account, accounts[account.test])


def _delete_account(accounts: dict[int, Account], recorded: c.RecordedChange) -> DeletedAccount:
    account = accounts.pop(recorded.account)
    if account.live is not None:
        accounts[account.live] = replace(accounts[account.live], test=None)
    return DeletedAccount(
        account.number, account.name, account.created_at, recorded.at, recorded.by
    )


_SHARED = (
    "files",
    "settings",
    "settings_changed",
    "rates_changed",
    "shipped",
    "suspended_at",
    "suspended_by",
)


def _share(live: Account, test: Account) -> Account:
    """The test account, with the files and settings of its live account."""
    if all(getattr(test, name) is getattr(live, name) for name in _SHARED):
        return test
    return replace(test, **{name: getattr(live, name) for name in _SHARED})


def _change_keys(
    keys: dict[bytes, ApiKey], accounts: Mapping[int, Account], recorded: c.RecordedChange
) -> None:
    """Keep the keys that are not revoked, by hash; `accounts` are those after the change."""
    number = recorded.account
    match recorded.change:
        case c.KeyCreated(id=id_, hash=hash_):
            keys[hash_] = accounts[number].keys[id_]
        case c.UserSet(name=name):
            for key in accounts[number].keys.values():
                if key.owner == name and key.hash in keys:
                    keys[key.hash] = key
        case c.KeyRevoked(id=id_):
            keys.pop(accounts[number].keys[id_].hash, None)
        case c.AccountDeleted():
            for hash_ in [hash_ for hash_, key in keys.items() if key.account == number]:
                del keys[hash_]


def _without_sessions(
    sessions: PersistentMap[bytes, Session], are_over: Callable[[Session], bool]
) -> PersistentMap[bytes, Session]:
    for hash_, session in sessions.items():
        if are_over(session):
            sessions = sessions.without(hash_)
    return sessions


def _fold_sessions(
    sessions: PersistentMap[bytes, Session], recorded: c.RecordedChange
) -> PersistentMap[bytes, Session]:
    """The sessions after a change; a session ends with its key or its user."""
    number, change = recorded.account, recorded.change
    match change:
        case c.SessionStarted():
            session = Session(
                account=number,
                owner=change.owner,
                parent=change.parent,
                scopes=change.scopes,
                started_at=recorded.at,
                ends_at=change.ends_at,
            )
            if len(sessions) >= MAX_SESSIONS:
                sessions = _make_room(sessions, recorded.at)
            return sessions.with_item(change.hash, session)
        case c.SessionEnded():
            return sessions.without(change.hash)
        case c.KeyRevoked(id=id_):
            return _without_sessions(
                sessions, lambda each: (each.account, each.parent) == (number, id_)
            )
        case c.UserRemoved(name=name):
            return _without_sessions(
                sessions,
                lambda each: each.is_user and (each.account, each.owner) == (number, name),
            )
        case c.AccountDeleted():
            return _without_sessions(sessions, lambda each: each.account == number)
        case _:
            return sessions


def _make_room(sessions: PersistentMap[bytes, Session], at: int) -> PersistentMap[bytes, Session]:
    """Fewer sessions than `MAX_SESSIONS`: those that have not ended at `at` (µs), or without one."""
    kept = {hash_: each for hash_, each in sessions.items() if at < each.ends_at}
    if len(kept) >= MAX_SESSIONS:
        fullest = most_frequent(each.account for each in kept.values())
        del kept[next(hash_ for hash_, each in kept.items() if each.account == fullest)]
    return PersistentMap(kept)


def most_frequent(accounts: Iterable[int]) -> int:
    """The account that occurs most often."""
    return Counter(accounts).most_common(1)[0][0]


def _fold_account(account: Account, recorded: c.RecordedChange) -> Account:
    change = recorded.change
    match change:
        case c.AccountSuspended():
            return replace(account, suspended_at=recorded.at, suspended_by=recorded.by)
        case c.AccountResumed():
            return replace(account, suspended_at=None, suspended_by=None)
        case c.SettingsChanged():
            return _set_settings(account, change.settings, recorded.sequence)
        case c.ListMade():
            made = ListState(change.spec, content=0, changed=recorded.sequence)
            return _put(account, "lists", change.name, made)
        case c.EntriesChanged():
            entries = replace(account.lists[change.list], changed=recorded.sequence)
            return _put(account, "lists", change.list, entries)
        case c.ListReplaced():
            spec = account.lists[change.list].spec
            replaced = ListState(spec, change.content, recorded.sequence)
            return _put(account, "lists", change.list, replaced)
        case c.WebhookSet():
            before = account.webhooks.get(change.url)
            known = {} if before is None else before.kinds
            kinds = {kind: known.get(kind, recorded.sequence) for kind in change.kinds}
            webhook = Webhook(
                change.url, change.secrets, kinds, change.only, change.paused, recorded.sequence
            )
            return _put(account, "webhooks", change.url, webhook)
        case c.WebhookRemoved():
            return _remove(account, "webhooks", change.url)
        case c.ScorecardShipped(name, text, checksum, language, program):
            stored = c.VersionStored("scorecard", name, 0, text, {}, checksum, language, program)
            return replace(account, shipped=_version(stored, recorded))
        case c.Proposed():
            proposal = Proposal(**structs.asdict(change), by=recorded.by, at=recorded.at)
            return _put(account, "proposals", change.number, proposal)
        case c.AlertMarked():
            return _mark_alert(account, change, recorded)
        case c.SearchSaved():
            return _put(account, "searches", change.name, change.query)
        case c.SearchDropped():
            return _remove(account, "searches", change.name)
        case _ if isinstance(change, c.VersionChange):
            file = (change.kind, change.name)
            lineage = _fold_lineage(account.files.get(file, Lineage()), change, recorded)
            return _put(account, "files", file, lineage)
        case _:
            return account


def _fold_access(account: Account, recorded: c.RecordedChange) -> Account:
    """Fold the changes of keys, users and sign-in links."""
    change = recorded.change
    match change:
        case c.KeyCreated():
            return _put(account, "keys", change.id, _new_key(account, change, recorded))
        case c.KeyRevoked():
            revoked = replace(account.keys[change.id], revoked_at=recorded.at)
            return _put(account, "keys", change.id, revoked)
        case c.UserSet():
            user = AccountUser(change.name, change.role, recorded.at, recorded.by, change.merchants)
            for id_, key in account.keys.items():
                if key.owner == user.name:
                    account = _put(account, "keys", id_, _limit_key(key, user.merchants))
            return _put(account, "users", user.name, user)
        case c.UserLinkMade():
            return _note_link(account, change.name, recorded.by)
        case c.UserRemoved():
            return _remove(account, "users", change.name)
        case _:
            return account


def _set_settings(account: Account, settings: c.AccountSettings, sequence: int) -> Account:
    changed = account.rates_changed
    if settings.rates != account.settings.rates:
        changed = (*changed, sequence)
    return replace(account, settings=settings, settings_changed=sequence, rates_changed=changed)


def _mark_alert(account: Account, change: c.AlertMarked, recorded: c.RecordedChange) -> Account:
    """Set an alert's mark, and drop those older than every alert that is kept: an alert is at most a
    minute newer than its marks, and is removed within an hour when `retention_days` are over. The
    newest `LASTING_MARKS` stay: a clock far ahead would have all of them dropped."""
    alert, marks = (change.sequence, change.number), account.alert_marks
    # A mark that is set again becomes the last, so that the oldest is the first.
    mark = AlertMark(change.state, recorded.by, recorded.at, change.note)
    marks = marks.without(alert).with_item(alert, mark)
    oldest = recorded.at - (account.settings.retention_days + 1) * DAY
    for each in marks:
        if len(marks) <= LASTING_MARKS or (marks[each].at or 0) >= oldest:
            break
        marks = marks.without(each)
    return replace(account, alert_marks=marks)


def _put(account: Account, part: str, key: Hashable, value: object) -> Account:
    """The account with one item of a mapping set."""
    changed: dict[str, Any] = {part: getattr(account, part).with_item(key, value)}
    return replace(account, **changed)


def _remove(account: Account, part: str, key: Hashable) -> Account:
    """The account without one item of a mapping."""
    changed: dict[str, Any] = {part: getattr(account, part).without(key)}
    return replace(account, **changed)


def _fold_proposal(account: Account, recorded: c.RecordedChange) -> Account:
    """Fold what the change decides about a proposal."""
    change = recorded.change
    number = getattr(change, "proposal", None)
    state: ProposalState = "approved"
    if isinstance(change, c.ProposalRefused):
        number, state = change.number, "refused"
    elif getattr(change, "ended", False):
        state = "refused"
    elif getattr(change, "alone", False):
        state = "alone"
    if number is None:
        return account
    proposal = account.proposals[number]
    wanted = proposal.change
    if isinstance(wanted, c.EntriesWanted) and state != "alone":
        wanted = structs.replace(wanted, entries=())
    decided = replace(
        proposal,
        change=wanted,
        until=change.until if isinstance(change, c.EntriesChanged) else None,
        state=state,
        decided_by=recorded.by,
        decided_at=recorded.at,
        reason="" if state == "approved" else getattr(change, "reason", ""),
    )
    return _put(account, "proposals", number, decided)


def _fold_erasure(account: Account, recorded: c.RecordedChange) -> Account:
    match recorded.change:
        case c.ErasureAsked(person, sealed):
            return _put(account, "erasures", person, OpenErasure(sealed, recorded.by))
        case c.PersonErased(person=person):
            return _remove(account, "erasures", person)
        case _:
            return account


def _new_key(account: Account, change: c.KeyCreated, recorded: c.RecordedChange) -> ApiKey:
    key = ApiKey(
        id=change.id,
        account=account.number,
        hash=change.hash,
        name=change.name,
        scopes=change.scopes,
        granted=granted_scopes(change.scopes),
        created_at=recorded.at,
        created_by=recorded.by,
        expires_at=change.expires_at,
        owner=change.owner,
    )
    owner = account.users.get(change.owner)
    return key if owner is None else _limit_key(key, owner.merchants)


def _limit_key(key: ApiKey, merchants: tuple[str, ...]) -> ApiKey:
    """The key, limited to these merchants; empty for no limit."""
    if key.merchants == merchants:
        return key
    granted = granted_scopes(key.scopes)
    return replace(
        key, merchants=merchants, granted=granted & OF_MERCHANTS if merchants else granted
    )


def _note_link(account: Account, user: str, by: str) -> Account:
    """Record who made a sign-in link. Links made by commands are not recorded: who can run commands
    on the folder can act as anybody anyway."""
    if by not in account.users and by not in account.keys:
        return account
    return _put(account, "link_makers", user, account.link_makers.get(user, frozenset()) | {by})


def _fold_lineage(lineage: Lineage, change: c.VersionChange, recorded: c.RecordedChange) -> Lineage:
    match change:
        case c.VersionStored():
            return replace(lineage, versions=(*lineage.versions, _version(change, recorded)))
        case c.Activated():
            applies_from = recorded.at if change.applies_from is None else change.applies_from
            activation = Activation(applies_from, change.number)
            # A version that was to end itself is not returned to.
            lasting = lineage.active if lineage.until is None else lineage.former
            return replace(
                lineage,
                active=change.number,
                until=change.until,
                former=None if change.until is None else lasting,
                activations=(*lineage.activations, activation),
                rollout=None,
            )
        case c.Deactivated():
            return Lineage(
                lineage.versions, shadow=lineage.shadow, ended_shadows=lineage.ended_shadows
            )
        case c.ShadowSet():
            return _set_shadow(lineage, change.number, recorded.at)
        case c.ShadowCleared():
            return _set_shadow(lineage, None, recorded.at)
        case c.RolloutSet():
            return replace(lineage, rollout=Rollout(change.number, change.percent, change.by))
        case c.RolloutCleared():
            return replace(lineage, rollout=None)


def _set_shadow(lineage: Lineage, number: int | None, at: int) -> Lineage:
    ended = lineage.ended_shadows
    if lineage.shadow is not None:
        ended = {**ended, lineage.shadow: at}
    return replace(lineage, shadow=number, ended_shadows=ended)


def _version(stored: c.VersionStored, recorded: c.RecordedChange) -> Version:
    return Version(**structs.asdict(stored), stored_at=recorded.at, stored_by=recorded.by)
