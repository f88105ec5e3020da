"""Everything that can change what is configured, as the journal keeps it.

An entry of kind `change` holds one of these with its author; its sequence number, account and time
are the journal's own columns. The audit log is these entries read back (`audit.py`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.decision import Action
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.spec import Spec
from tollkeeper.engine.registry.roles import Role
from tollkeeper.engine.registry.scopes import KeyScope

ProgramKind: TypeAlias = Literal["rule", "scorecard", "event", "definitions"]
RolloutKey: TypeAlias = Literal["user", "device", "order"]
NoticeKind: TypeAlias = Literal[
    "alert.raised", "payment.decided", "payment.updated", "label.created", "rule.published"
]


class Thresholds(Struct, frozen=True):
    """In hundredths of the score: challenge from, deny from."""

    challenge: int = 50
    deny: int = 85


class ExtraCodes(Struct, frozen=True):
    """Codes that the account accepts beyond the ISO lists."""

    currency: tuple[str, ...] = ()
    country: tuple[str, ...] = ()
    category_code: tuple[str, ...] = ()


class Approvals(Struct, frozen=True):
    """What another person must approve: what is published, what thresholds hold, what lists hold."""

    publish: bool = False
    thresholds: bool = False
    lists: bool = False


class Costs(Struct, frozen=True):
    """What mistakes cost an account: `chargeback` (hundredths of any currency) beside the amount of
    a fraud that passes; of a person's payment that is denied its `margin`, and of one that is
    challenged the share `challenge_lost` of that, both in basis points.
    """

    chargeback: int = 1500
    margin: int = 1000
    challenge_lost: int = 300


class Holdout(Struct, frozen=True):
    """Of a hundred keys, `percent` (in hundredths) whose payments pass though they are denied."""

    percent: int = 0
    by: RolloutKey = "user"


class AccountSettings(Struct, frozen=True):
    """An account's configuration; `settings.py` says what is allowed.

    `rates[from][to]` is the price of one unit of `from` in `to`, as decimal text. `merchant_lists` are
    those that users who see some merchants alone may read.
    """

    thresholds: Thresholds = Thresholds()
    default_rule: str | None = None
    time_zone: str = "UTC"
    rates: dict[str, dict[str, str]] = {}
    retention_days: int = 365
    clock_skew_ms: int = 0
    extra_codes: ExtraCodes = ExtraCodes()
    approvals: Approvals = Approvals()
    costs: Costs = Costs()
    holdout: Holdout = Holdout()
    merchant_lists: tuple[str, ...] = ()


class AccountCreated(Struct, frozen=True, tag="account_created"):
    """The account's number is the entry's own.

    `live` is the number of the account whose test account this is, None for one that is live.
    """

    name: str
    live: int | None = None


class AccountSuspended(Struct, frozen=True, tag="account_suspended"):
    """Nothing may be asked with the account's keys, and nothing is sent for it."""


class AccountResumed(Struct, frozen=True, tag="account_resumed"):
    """The account is as it was before it was suspended."""


class AccountDeleted(Struct, frozen=True, tag="account_deleted"):
    """The account's last change: of all before it, its creation alone is kept."""


class SettingsChanged(Struct, frozen=True, tag="settings_changed"):
    """`changed` names the settings that differ from those before; `proposal` is the number of the one
    that asked for it, if one did, here and in other changes.
    """

    settings: AccountSettings
    changed: tuple[str, ...]
    proposal: int | None = None


class KeyCreated(Struct, frozen=True, tag="key_created"):
    """`id` is the part of the key that may be shown, `hash` the SHA-256 of all of it.

    `name` is what people call it; it is good before `expires_at` (µs), None for no end. `owner` is
    the user who answers for it, empty where nobody does.
    """

    id: str
    hash: bytes
    scopes: tuple[KeyScope, ...]
    name: str = ""
    expires_at: int | None = None
    owner: str = ""


class KeyRevoked(Struct, frozen=True, tag="key_revoked"):
    id: str


class UserSet(Struct, frozen=True, tag="user_set"):
    """From now on a person of this name may sign in, as what the role says; with `merchants`, they
    see what is of these alone.
    """

    name: str
    role: Role
    merchants: tuple[str, ...] = ()


class UserRemoved(Struct, frozen=True, tag="user_removed"):
    """The user's sessions are over."""

    name: str


class SessionStarted(Struct, frozen=True, tag="session_started"):
    """Somebody signed in; `hash` is the SHA-256 of what their browser holds, good before `ends_at`
    (µs).

    `parent` is the id of the key that signed in, if one did; `scopes` what an owner whom the
    account does not know may do. A user has neither: their role says it.
    """

    hash: bytes
    owner: str
    ends_at: int
    parent: str | None = None
    scopes: tuple[KeyScope, ...] | None = None


class SessionEnded(Struct, frozen=True, tag="session_ended"):
    """Somebody signed out."""

    hash: bytes
    owner: str


class UserLinkMade(Struct, frozen=True, tag="user_link_made"):
    """Somebody was given a link that signs the user in."""

    name: str


class VersionStored(Struct, frozen=True, tag="version_stored"):
    """A file as it was checked: `program` is what the checker made of it (`programs.py`).

    `uses` are the texts of the definitions it takes in, by name. `checksum` is the SHA-256, in
    hex, of the text and of those. `language` is the version of the language it was checked under.
    """

    kind: ProgramKind
    name: str
    number: int
    text: str
    uses: dict[str, str]
    checksum: str
    language: int
    program: bytes


class Activated(Struct, frozen=True, tag="activated"):
    """`applies_from` (µs) is the time from which an event type's version is in force.

    None means from the moment of the change. A rollout of the name ends with it. `untested` says
    that its author did not want its tests to be asked. At `until` (µs) what was active for good
    before is active again, which an activation with `ended` tells of. `reason` is the author's.
    `alone` says that nobody else approved, where somebody must.
    """

    kind: ProgramKind
    name: str
    number: int
    applies_from: int | None = None
    untested: bool = False
    until: int | None = None
    ended: bool = False
    reason: str = ""
    proposal: int | None = None
    alone: bool = False


class Deactivated(Struct, frozen=True, tag="deactivated"):
    """`ended` says that what was active had been published until now."""

    kind: ProgramKind
    name: str
    ended: bool = False
    reason: str = ""
    proposal: int | None = None


class ShadowSet(Struct, frozen=True, tag="shadow_set"):
    kind: ProgramKind
    name: str
    number: int


class ShadowCleared(Struct, frozen=True, tag="shadow_cleared"):
    kind: ProgramKind
    name: str


class RolloutSet(Struct, frozen=True, tag="rollout_set"):
    """`percent` of the payments, chosen by their `by`, get version `number`."""

    kind: ProgramKind
    name: str
    number: int
    percent: int
    by: RolloutKey
    proposal: int | None = None


class RolloutCleared(Struct, frozen=True, tag="rollout_cleared"):
    kind: ProgramKind
    name: str


class EntriesWanted(Struct, frozen=True, tag="entries_wanted"):
    """Entries to put into a list, or to remove from it: then their values count.

    `entries` are there until it is decided.
    """

    list: str
    action: Literal["put", "remove"]
    count: int
    entries: tuple[ListEntry, ...]


Proposable: TypeAlias = Activated | Deactivated | RolloutSet | SettingsChanged | EntriesWanted
"""What can wait for another person."""


class MovedPayments(Struct, frozen=True):
    """So many payments went from one action to another; None is no recommendation."""

    was: str | None
    now: str | None
    payments: int


class BacktestFigures(Struct, frozen=True):
    """What a backtest found of a proposed version, without the payments; times as RFC 3339."""

    since: str
    until: str
    payments: int
    changed: int
    moved: tuple[MovedPayments, ...]


class Proposed(Struct, frozen=True, tag="proposed"):
    """A change that waits; `base` names what it would take the place of."""

    number: int
    change: Proposable
    base: str
    note: str
    backtest: BacktestFigures | None = None


class ProposalRefused(Struct, frozen=True, tag="proposal_refused"):
    number: int
    reason: str


AlertState: TypeAlias = Literal["open", "acknowledged", "closed"]


class AlertMarked(Struct, frozen=True, tag="alert_marked"):
    """Somebody looks after the alert of this place of the journal, or it is over, or open again."""

    sequence: int
    number: int
    state: AlertState
    note: str


class SearchSaved(Struct, frozen=True, tag="search_saved"):
    """A search of payments has a name from now on, or another text."""

    name: str
    query: str


class SearchDropped(Struct, frozen=True, tag="search_dropped"):
    name: str


class ListMade(Struct, frozen=True, tag="list_made"):
    name: str
    spec: Spec


class EntriesChanged(Struct, frozen=True, tag="entries_changed"):
    """Entries added, renewed or removed; up to `lists.MAX_AUDITED_VALUES` of their values in full.

    `proposal`, `reason` and `alone` as in `Activated`: put alone, none stays beyond `until` (µs).
    `ended` says that those put alone were taken back.
    """

    list: str
    action: Literal["put", "remove"]
    count: int
    values: tuple[str, ...]
    proposal: int | None = None
    until: int | None = None
    ended: bool = False
    reason: str = ""
    alone: bool = False


class ListReplaced(Struct, frozen=True, tag="list_replaced"):
    """All entries replaced at once by those of `content`, the journal's name for them."""

    list: str
    content: int
    count: int


class SealedSecret(Struct, frozen=True, omit_defaults=True):
    """A webhook's secret, encrypted by the folder's key; it signs before `until` (µs), None for no
    end."""

    sealed: bytes
    until: int | None = None


class DecidedFilter(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The decisions that are meant: of one of these actions, rules and conditions, by their ids.

    Where none is named, any will do.
    """

    action: tuple[Action, ...] = ()
    rule: tuple[str, ...] = ()
    condition: tuple[str, ...] = ()


class WebhookSet(Struct, frozen=True, tag="webhook_set", omit_defaults=True):
    """Notices of these kinds are sent to `url`, signed with each of `secrets`; none while `paused`.

    A journal of before secrets were sealed has them as text until it is opened. One that a later
    change of the webhook replaced holds none.
    """

    url: str
    secrets: tuple[SealedSecret | str, ...]
    kinds: tuple[NoticeKind, ...] = ("alert.raised",)
    only: DecidedFilter = DecidedFilter()
    paused: bool = False


class WebhookRemoved(Struct, frozen=True, tag="webhook_removed"):
    url: str


class PersonErased(Struct, frozen=True, tag="person_erased"):
    """What was kept of one person is gone; `person` is the SHA-256, in hex, of the identifier.

    How many payments, events and alerts told of the person, and by list, how many entries went.
    """

    person: str
    payments: int
    events: int
    alerts: int
    list_entries: dict[str, int]


class ScorecardShipped(Struct, frozen=True, tag="scorecard_shipped"):
    """From here on this text decides where the account has published no scorecard of its own.

    Fields as those of `VersionStored`: what a release ships, as the first one that came with it
    checked it.
    """

    name: str
    text: str
    checksum: str
    language: int
    program: bytes


VersionChange: TypeAlias = (
    VersionStored
    | Activated
    | Deactivated
    | ShadowSet
    | ShadowCleared
    | RolloutSet
    | RolloutCleared
)
Change: TypeAlias = (
    AccountCreated
    | AccountSuspended
    | AccountResumed
    | AccountDeleted
    | SettingsChanged
    | KeyCreated
    | KeyRevoked
    | UserSet
    | UserRemoved
    | SessionStarted
    | SessionEnded
    | UserLinkMade
    | VersionChange
    | Proposed
    | ProposalRefused
    | AlertMarked
    | SearchSaved
    | SearchDropped
    | ListMade
    | EntriesChanged
    | ListReplaced
    | WebhookSet
    | WebhookRemoved
    | PersonErased
    | ScorecardShipped
)


class RecordedChange(Struct, frozen=True):
    """A change as it stands in the journal: `at` in µs, `by` a key's id or a command, `request` the
    id of the HTTP request that asked for it.
    """

    sequence: int
    at: int
    account: int
    by: str
    change: Change
    request: str | None = None


class _Body(Struct, frozen=True, omit_defaults=True):
    by: str
    change: Change
    request: str | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Body).decode


def encode_change(by: str, change: Change, request: str | None = None) -> bytes:
    """The body of the journal's entry."""
    return _encode(_Body(by, change, request))


def decode_change(sequence: int, at: int, account: int, body: bytes) -> RecordedChange:
    """The change in an entry of kind `change`; `at` in µs. Raises `msgspec.ValidationError`."""
    read = _decode(body)
    return RecordedChange(sequence, at, account, read.by, read.change, read.request)
