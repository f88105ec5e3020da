"""The operations on the account: its settings, its audit log, erasures, its webhooks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, structs

from tollkeeper.api.http.account import WindowsShown
from tollkeeper.api.http.erasures import Asked, Erasure
from tollkeeper.api.http.openapi.errors import refusal
from tollkeeper.api.http.openapi.operation import (
    Content,
    Example,
    Operation,
    answered,
    query_parameter,
)
from tollkeeper.api.http.openapi.parameters import CURSOR, SINCE, Cursor, limit
from tollkeeper.api.http.openapi.payments import Thresholds
from tollkeeper.engine.registry.changes import Settings
from tollkeeper.engine.registry.webhooks import MAX_SECRET, MAX_URL, MIN_SECRET

TAG = "Account"


class ThresholdsChange(Struct, forbid_unknown_fields=True):
    """Either may be left out."""

    challenge: float | UnsetType = UNSET
    deny: float | UnsetType = UNSET


class ExtraCodesChange(Struct, forbid_unknown_fields=True):
    """Those of one kind replace all that were there."""

    currency: list[str] | UnsetType = UNSET
    country: list[str] | UnsetType = UNSET
    category_code: list[str] | UnsetType = UNSET


_SHOWN = {**get_type_hints(Settings, include_extras=True), "thresholds": Thresholds}
_SETTINGS = [(field.name, _SHOWN[field.name]) for field in structs.fields(Settings)]
_SENT = {
    **_SHOWN,
    "thresholds": ThresholdsChange,
    "rates": dict[str, dict[str, str | float]],
    "extra_codes": ExtraCodesChange,
}

AccountShown = defstruct("AccountShown", [("name", str), *_SETTINGS])
AccountChange = defstruct(
    "AccountChange",
    [("name", str | UnsetType, UNSET)]
    + [(name, _SENT[name] | UnsetType, UNSET) for name, _ in _SETTINGS],
    namespace={
        "__doc__": "A setting left out keeps its value. `name` may come back as it was read; it "
        "can't be changed."
    },
    forbid_unknown_fields=True,
)

Url = Annotated[str, Meta(max_length=MAX_URL, examples=["https://shop.example/alerts"])]
Secret = Annotated[str, Meta(min_length=MIN_SECRET, max_length=MAX_SECRET)]


class AuditItem(Struct):
    """Who changed what, when; `by` is a key's id or a command."""

    at: str
    by: str
    action: str
    subject: str
    detail: dict[str, Any]


class WebhookSent(Struct, forbid_unknown_fields=True):
    """An address, with one secret, or two while one replaces the other."""

    url: Url
    secrets: Annotated[list[Secret], Meta(min_length=1, max_length=2)]


class WebhookShown(Struct):
    """A webhook with the number of its secrets, which are never shown."""

    url: str
    secrets: int


class WebhookRemoved(Struct):
    url: str


class DeliveryShown(Struct):
    """One alert on its way to one address; `status` and `error` are those of the last attempt.

    `next_at` is there while it is pending, `delivered_at` once it is delivered.
    """

    id: str
    alert: str
    url: str
    state: Literal["pending", "delivered", "dropped"]
    attempts: int
    status: int | None
    error: str | None
    next_at: str | None
    delivered_at: str | None


_ERASURE = {
    "erasure": {
        "person": "7cb3cbfcc0a9f0e6bbd8b9a4b7ae0fbba2bc4b1b1cd9c9d1e4c1c3c6c1b9a2d4",
        "payments": 12,
        "events": 3,
        "alerts": 1,
        "list_entries": {"blocked": 1},
    }
}

_WEBHOOK = {
    "webhook": {
        "url": "https://shop.example/alerts",
        "secrets": ["an-example-secret-of-32-letters"],
    }
}

OPERATIONS = (
    Operation(
        "get",
        "/v1/account",
        "read_account",
        TAG,
        "Read the account's settings",
        "Thresholds, default rule, time zone, exchange rates, retention, clock skew, extra codes; "
        "and how much the account's windows hold of what they may.",
        "admin",
        {200: answered("The settings.", {"account": AccountShown, "windows": WindowsShown})},
    ),
    Operation(
        "put",
        "/v1/account",
        "change_account",
        TAG,
        "Change the account's settings",
        """Only what is sent changes. All of them take effect at once, and stand in the audit log.

- `thresholds`: the score from which the account challenges, and from which it denies, two decimals.
- `default_rule`: applied when a payment names no rule.
- `time_zone`: of `hour` and `weekday` in rules.
- `rates[from][to]`: the price of one unit of `from` in `to`.
- `retention_days`: how long payments are kept.
- `clock_skew_ms`: how far a timestamp may lie in the future.
- `extra_codes`: currencies, countries and category codes that the ISO lists lack.

A member that is no setting is refused, and so is null, but for `default_rule`.
""",
        "admin",
        {200: answered("The settings as they are now.", {"account": AccountShown})},
        (503,),
        (),
        Content(
            {"account": AccountChange},
            examples={
                "thresholds": Example(
                    "stricter thresholds, two seconds of clock skew",
                    {
                        "account": {
                            "thresholds": {"challenge": 0.4, "deny": 0.8},
                            "clock_skew_ms": 2000,
                        }
                    },
                )
            },
        ),
        {
            "thresholds": Example(
                "challenge above deny",
                refusal(
                    "account.thresholds.challenge",
                    "out_of_range",
                    "`challenge` may not be above `deny`",
                ),
            )
        },
    ),
    Operation(
        "get",
        "/v1/audit",
        "read_audit",
        TAG,
        "Read who changed what, newest first",
        "Keys, settings, versions, lists and webhooks; no secret is shown.",
        "admin",
        {200: answered("A page.", {"audit": list[AuditItem], "cursor": Cursor})},
        (422, 503),
        (SINCE, CURSOR, limit()),
    ),
    Operation(
        "post",
        "/v1/erasures",
        "erase_person",
        TAG,
        "Erase one person's data",
        """It goes for good, and in one request, which takes longer the more history the account has. Sent again it erases what came since, or what a run that was cut off had left.

- Of the person's payments: user, device, backend, metadata and the card's digits. What was decided stays, and so do amount, merchant, status and attempts.
- Of events that name the person: free texts and addresses.
- Of alerts that show something of these: keys and values.
- Entries of lists and tables whose value is the identifier, or an e-mail address that stands beside it in a payment. They are your configuration: `list_entries` tells of each list how many went.

The audit log keeps when, by whom and how much, with a hash in place of the identifier.""",
        "admin",
        {
            200: answered(
                "What was erased.", {"erasure": Erasure}, erased=Example("a customer", _ERASURE)
            )
        },
        (422, 503),
        (),
        Content(Asked, examples={"user": Example("a customer", {"user": "u-1"})}),
    ),
    Operation(
        "get",
        "/v1/webhooks",
        "list_webhooks",
        TAG,
        "List the webhooks",
        "Where alerts are sent.",
        "admin",
        {200: answered("All of them.", {"webhooks": list[WebhookShown]})},
    ),
    Operation(
        "put",
        "/v1/webhooks",
        "set_webhook",
        TAG,
        "Send alerts to an address",
        "A new address, or new secrets for one that is there. It starts with `https://` and is a "
        "public one, both when it is set and whenever its name is resolved. Each delivery is signed with every "
        "secret, so that a receiver can change from one to the other.",
        "admin",
        {200: answered("Alerts are sent there.", {"webhook": WebhookShown})},
        (503,),
        (),
        Content({"webhook": WebhookSent}, examples={"webhook": Example("one secret", _WEBHOOK)}),
    ),
    Operation(
        "delete",
        "/v1/webhooks",
        "remove_webhook",
        TAG,
        "Send no more alerts to an address",
        "Deliveries that are still pending are dropped.",
        "admin",
        {200: answered("Nothing is sent there any more.", {"webhook": WebhookRemoved})},
        (404, 503),
        (query_parameter("url", "The webhook's address.", example="https://shop.example/alerts"),),
    ),
    Operation(
        "get",
        "/v1/webhooks/deliveries",
        "list_deliveries",
        TAG,
        "List deliveries, newest first",
        "Each alert on its way to each address, with its attempts.",
        "admin",
        {200: answered("A page.", {"deliveries": list[DeliveryShown], "cursor": Cursor})},
        (422, 503),
        (CURSOR, limit()),
    ),
)
