"""All changes of the configuration, in the form in which the journal stores them.

An entry of kind `change` holds one of these with its author; its sequence number, account and time
are the journal's own columns. The audit log is these entries read back (`audit.py`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.decision import Action
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.entries import Entry, ListEntry
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
    """Which changes need another person's approval: publications, thresholds, entries of lists."""

    publish: bool = False
    thresholds: bool = False
    lists: bool = False


class Costs(Struct, frozen=True):
    """What wrong decisions cost an account.

    A fraud that passes costs its amount and `chargeback` (hundredths, in any currency). A
    legitimate payment that is denied costs its `margin`, one that is challenged the share
    `challenge_lost` of the margin; both are in basis points.
    """

    chargeback: int = 1500
    margin: int = 1000
    challenge_lost: int = 300


class Holdout(Struct, frozen=True):
    """The share of denied payments to let pass: `percent` (in hundredths) of the values of `by`."""

    percent: int = 0
    by: RolloutKey = "user"


class AccountSettings(Struct, frozen=True):
    """An account's configuration; `settings.py` says what is allowed.

    `rates[from][to]` is the price of one unit of `from` in `to`, as decimal text. `merchant_lists`
    are the lists that users limited to some merchants may read.
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
    """The account's number is in the entry.

    `live` is the number of the live account that a test account belongs to, None for a live one.
    """

    name: str
    live: int | None = None


class AccountSuspended(Struct, frozen=True, tag="account_suspended"):
    """The account's keys are refused, and no notices are sent for it."""


class AccountResumed(Struct, frozen=True, tag="account_resumed"):
    """The account is no longer suspended."""


class AccountDeleted(Struct, frozen=True, tag="account_deleted"):
    """The account's last change: of all earlier ones only the creation is kept."""


class SettingsChanged(Struct, frozen=True, tag="settings_changed"):
    """`changed` names the settings that differ from before. `proposal`, here and in other changes,
    is the number of the proposal that led to the change, if any.
    """

    settings: AccountSettings
    changed: tuple[str, ...]
    proposal: int | None = None


class KeyCreated(Struct, frozen=True, tag="key_created"):
    """`id` is the public part of the key, `hash` the SHA-256 of all of it.

    `name` is for people; the key is valid before `expires_at` (µs), None for no end. `owner` is the
    user responsible for it, empty for none.
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
    """A user was added or changed: a person of this name may sign in with the scopes of the role.

    With `merchants`, the user sees only what belongs to these.
    """

    name: str
    role: Role
    merchants: tuple[str, ...] = ()


class UserRemoved(Struct, frozen=True, tag="user_removed"):
    """The user may no longer sign in, and their sessions have ended."""

    name: str


class SessionStarted(Struct, frozen=True, tag="session_started"):
    """Somebody signed in; `hash` is the SHA-256 of the secret in their browser, valid before
    `ends_at` (µs).

    The session's scopes are those of the key with the id `parent`, or `scopes` for an owner who is
    neither a key nor a user. A user's session has neither: it has the scopes of their role.
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
    """Somebody made a link that signs the user in."""

    name: str


class VersionStored(Struct, frozen=True, tag="version_stored"):
    """A checked file; `program` is the encoded result of the checker (`programs.py`).

    `uses` are the texts of the definitions it imports, by name. `checksum` is the SHA-256, in hex,
    of the text and of these. `language` is the version of the language it was checked under.
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
    """A version became active; a rollout of the name ends with it.

    `applies_from` (µs) is the time from which an event type's version applies, None for at once.
    `untested` says that its author skipped its tests. At `until` (µs) the version that was active
    before without an end becomes active again; that is recorded as an activation with `ended`.
    `reason` is the author's. `alone` says that the required approval was skipped.
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
    """`ended` says that the version's publication ended at its time."""

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
    """Version `number` decides `percent` of the payments, chosen by the value of `by`."""

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
    """Entries to put into a list, or to remove from it by their values.

    `entries` are kept until the proposal is decided.
    """

    list: str
    action: Literal["put", "remove"]
    count: int
    entries: tuple[ListEntry, ...]


Proposable: TypeAlias = Activated | Deactivated | RolloutSet | SettingsChanged | EntriesWanted
"""The changes that can be proposed for another person's approval."""


class MovedPayments(Struct, frozen=True):
    """How many payments would go from one action to another; None is no recommendation."""

    was: str | None
    now: str | None
    payments: int


class BacktestFigures(Struct, frozen=True):
    """The figures of a backtest of a proposed version; times as RFC 3339."""

    since: str
    until: str
    payments: int
    changed: int
    moved: tuple[MovedPayments, ...]


class Proposed(Struct, frozen=True, tag="proposed"):
    """A change that waits for approval; `base` identifies what it would replace, and `warnings` are
    those of its version, first what was not tried of it.
    """

    number: int
    change: Proposable
    base: str
    note: str
    backtest: BacktestFigures | None = None
    warnings: tuple[Violation, ...] = ()


class ProposalRefused(Struct, frozen=True, tag="proposal_refused"):
    number: int
    reason: str


AlertState: TypeAlias = Literal["open", "acknowledged", "closed"]


class AlertMarked(Struct, frozen=True, tag="alert_marked"):
    """The alert at this place of the journal was acknowledged, closed or reopened."""

    sequence: int
    number: int
    state: AlertState
    note: str


class SearchSaved(Struct, frozen=True, tag="search_saved"):
    """A search of payments was saved under a name."""

    name: str
    query: str


class SearchDropped(Struct, frozen=True, tag="search_dropped"):
    name: str


class ListMade(Struct, frozen=True, tag="list_made"):
    name: str
    spec: Spec


class EntriesChanged(Struct, frozen=True, tag="entries_changed"):
    """Entries added, renewed or removed; `values` holds up to `lists.MAX_AUDITED_VALUES` of them.

    `proposal`, `reason` and `alone` as in `Activated`. Entries put `alone` expire at `until` (µs)
    at the latest; `ended` says that such entries were removed again.
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
    """All entries were replaced by those of `content`, an id of the journal."""

    list: str
    content: int
    count: int


class SealedSecret(Struct, frozen=True, omit_defaults=True):
    """A webhook's secret, encrypted with the folder's key; it signs before `until` (µs), None for
    no end."""

    sealed: bytes
    until: int | None = None


class DecidedFilter(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A filter of decisions by action, rule and condition id; an empty member matches all."""

    action: tuple[Action, ...] = ()
    rule: tuple[str, ...] = ()
    condition: tuple[str, ...] = ()


class WebhookSet(Struct, frozen=True, tag="webhook_set", omit_defaults=True):
    """Notices of these kinds are sent to `url`, signed with each of `secrets`; none while `paused`.

    Journals of earlier releases have unencrypted secrets, until they are opened. A webhook's former
    changes have no secrets any more.
    """

    url: str
    secrets: tuple[SealedSecret | str, ...]
    kinds: tuple[NoticeKind, ...] = ("alert.raised",)
    only: DecidedFilter = DecidedFilter()
    paused: bool = False


class WebhookRemoved(Struct, frozen=True, tag="webhook_removed"):
    url: str


class ErasureAsked(Struct, frozen=True, tag="erasure_asked", omit_defaults=True):
    """One person's erasure was requested; `person` is the SHA-256, in hex, of the identifier.

    `sealed` is the identifier, encrypted with the folder's key; None once nothing is left to erase.
    """

    person: str
    sealed: bytes | None = None


class PersonErased(Struct, frozen=True, tag="person_erased"):
    """One person's data was erased, as requested; `person` as in `ErasureAsked`.

    The numbers of payments, events and alerts that held data of the person, and of removed entries
    by list.
    """

    person: str
    payments: int
    events: int
    alerts: int
    list_entries: dict[str, int]


class ScorecardShipped(Struct, frozen=True, tag="scorecard_shipped"):
    """The shipped scorecard from here on, which decides where the account has published none.

    The fields are those of `VersionStored`, as checked by the first release that shipped this text.
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
    | ErasureAsked
    | PersonErased
    | ScorecardShipped
)


class RecordedChange(Struct, frozen=True):
    """A change in the journal: `at` in µs, `by` a key's id or a command, `request` the id of the
    HTTP request that made it.
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


def decode_change(entry: Entry) -> RecordedChange:
    """The change in an entry of kind `change`. Raises `msgspec.ValidationError`."""
    read = _decode(entry.body)
    return RecordedChange(
        entry.sequence, entry.arrived, entry.account, read.by, read.change, read.request
    )
