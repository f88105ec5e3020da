"""The account's settings over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, structs

from tollkeeper.api.http.answers import ThresholdsView
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.error_answers import refusal
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import ACCOUNT
from tollkeeper.engine.publish.set_settings import set_settings
from tollkeeper.engine.registry.changes import AccountSettings, RolloutKey
from tollkeeper.engine.registry.settings import (
    MAX_CHARGEBACK,
    MAX_CLOCK_SKEW_MS,
    MAX_RATE,
    MAX_RETENTION_DAYS,
    guarded_settings,
    show_settings,
)
from tollkeeper.engine.registry.state import Account

Share = Annotated[float, Meta(ge=0, le=1)]


class ThresholdsChange(Struct, forbid_unknown_fields=True):
    """Thresholds to change; a member that is left out stays as it is."""

    challenge: Share | UnsetType = UNSET
    deny: Share | UnsetType = UNSET


class ExtraCodesChange(Struct, forbid_unknown_fields=True):
    """Extra response codes; a list of codes replaces the former list of its kind."""

    currency: list[Annotated[str, Meta(pattern="^[A-Z]{3}$")]] | UnsetType = UNSET
    country: list[Annotated[str, Meta(pattern="^[A-Z]{2}$")]] | UnsetType = UNSET
    category_code: list[Annotated[str, Meta(pattern="^[0-9]{4}$")]] | UnsetType = UNSET


class ApprovalsChange(Struct, forbid_unknown_fields=True):
    """Approval settings to change; a member that is left out stays as it is."""

    publish: bool | UnsetType = UNSET
    thresholds: bool | UnsetType = UNSET
    lists: bool | UnsetType = UNSET


_Currency = Annotated[str, Meta(pattern="^[A-Z]{3}$")]
_RateText = Annotated[str, Meta(pattern=r"^(?=.*[1-9])[0-9]{1,12}(\.[0-9]{1,10}0*)?$")]
_RateNumber = Annotated[float, Meta(gt=0, le=MAX_RATE)]


class CostsView(Struct, frozen=True):
    """The cost of mistakes: the fee of a `chargeback`, in any currency; the `margin`, as a share of
    the amount; the share of people who leave at a challenge.
    """

    chargeback: Annotated[float, Meta(ge=0, le=MAX_CHARGEBACK)]
    margin: Share
    challenge_lost: Share


class CostsChange(Struct, forbid_unknown_fields=True):
    """Costs to change; a member that is left out stays as it is."""

    chargeback: Annotated[float, Meta(ge=0, le=MAX_CHARGEBACK)] | UnsetType = UNSET
    margin: Share | UnsetType = UNSET
    challenge_lost: Share | UnsetType = UNSET


class HoldoutView(Struct, frozen=True):
    """The `percent` of users, devices or orders whose payments pass although they are denied."""

    percent: Annotated[float, Meta(ge=0, le=100)]
    by: RolloutKey


class HoldoutChange(Struct, forbid_unknown_fields=True):
    """Holdout settings to change; a member that is left out stays as it is."""

    percent: Annotated[float, Meta(ge=0, le=100)] | UnsetType = UNSET
    by: RolloutKey | UnsetType = UNSET


_TYPES = {
    **get_type_hints(AccountSettings, include_extras=True),
    "thresholds": ThresholdsView,
    "costs": CostsView,
    "holdout": HoldoutView,
}
_SETTINGS = [(field.name, _TYPES[field.name]) for field in structs.fields(AccountSettings)]
_CHANGES = {
    **_TYPES,
    "thresholds": ThresholdsChange,
    "rates": dict[_Currency, dict[_Currency, _RateText | _RateNumber]],
    "time_zone": Annotated[str, Meta(pattern="^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$")],
    "retention_days": Annotated[int, Meta(ge=1, le=MAX_RETENTION_DAYS)],
    "clock_skew_ms": Annotated[int, Meta(ge=0, le=MAX_CLOCK_SKEW_MS)],
    "extra_codes": ExtraCodesChange,
    "approvals": ApprovalsChange,
    "costs": CostsChange,
    "holdout": HoldoutChange,
    "merchant_lists": list[str],
}

AccountView = defstruct("AccountView", [("name", str), *_SETTINGS], frozen=True)
AccountChange = defstruct(
    "AccountChange",
    [("name", str | UnsetType, UNSET)]
    + [(name, _CHANGES[name] | UnsetType, UNSET) for name, _ in _SETTINGS],
    namespace={
        "__doc__": "A setting left out keeps its value. `name` may come back as it was read; it "
        "can't be changed."
    },
    forbid_unknown_fields=True,
)


class WindowsUse(Struct, frozen=True):
    """How many elements the account's windows hold, and the limit.

    `over_cap` is true if a window was dropped to stay within the limit; aggregates over it are then
    missing.
    """

    entries: int
    cap: int
    over_cap: bool


class AccountAnswer(Struct, frozen=True):
    account: AccountView  # type: ignore[valid-type]


class AccountRead(Struct, frozen=True):
    """`guarded` are the settings whose change needs another person's approval now."""

    account: AccountView  # type: ignore[valid-type]
    windows: WindowsUse
    guarded: list[str]


class AccountBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings to change. `windows` and `guarded` are accepted and ignored, so that an answer may
    be sent back.
    """

    account: AccountChange  # type: ignore[valid-type]
    windows: WindowsUse | UnsetType = UNSET
    guarded: list[str] | UnsetType = UNSET


class SentAccount(Struct, frozen=True, forbid_unknown_fields=True):
    """An `AccountBody` whose settings are not checked yet."""

    account: dict[str, Any]
    windows: Any = None
    guarded: Any = None


@operation(
    "GET",
    "/v1/account",
    "read_account",
    tag=ACCOUNT,
    summary="Read the account's settings",
    doc=(
        "Thresholds, default rule, time zone, exchange rates, retention, clock skew, extra "
        "codes, approvals, costs, holdout and shared lists; also how much of their limit "
        "the account's windows use, and which settings need another person's approval now."
    ),
    scope="settings:read",
    answers={200: Answer("The settings.")},
)
async def read_account(request: Request) -> AccountRead:
    status = await request.engine.windows.status(request.key.account)
    windows = WindowsUse(status.entries, status.cap, status.over_cap)
    guarded = sorted(guarded_settings(request.account))
    return AccountRead(account_view(request.account), windows, guarded)


@operation(
    "PUT",
    "/v1/account",
    "change_account",
    tag=ACCOUNT,
    summary="Change the account's settings",
    doc="""Only the members that are sent change. They take effect together and at once, and the audit log records them.

- `thresholds`: the score from which the account challenges, and from which it denies, two decimals.
- `default_rule`: applied when a payment names no rule.
- `time_zone`: the zone of `hour` and `weekday` in rules.
- `rates[from][to]`: the price of one unit of `from` in `to`.
- `retention_days`: how long payments are kept.
- `clock_skew_ms`: how far a timestamp may lie in the future.
- `extra_codes`: currencies, countries and category codes that the ISO lists lack.
- `approvals`: what another person must approve: `publish` for publishing, rolling out, rolling back and unpublishing; `thresholds` for thresholds, the default rule, the holdout and retention; `lists` for adding or removing entries of a list or table. Once any is true, `approvals` itself can only be changed by a proposal.
- `costs`: what mistakes cost, for evaluating thresholds.
- `holdout`: the share of users, devices or orders whose payments pass although they are denied, so that their outcomes show how many denials are wrong.
- `merchant_lists`: the lists and tables that users who are limited to some merchants may read.

Unknown members are refused, and so is null, except for `default_rule`.
""",
    scope="settings:write",
    demand="change",
    sent=Body(
        AccountBody,
        {
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
    answers={200: Answer("The settings as they are now.")},
    refusals=(503,),
    errors={
        "thresholds": Example(
            "challenge above deny",
            refusal(
                "account.thresholds.challenge",
                "out_of_range",
                "`challenge` may not be above `deny`",
            ),
        )
    },
)
async def change_account(request: Request) -> AccountAnswer:
    settings = without_name(request.account, (await read_json(request, SentAccount)).account)
    await set_settings(request.engine, request.key.account, request.key.id, settings)
    return AccountAnswer(account_view(request.account))


def without_name(account: Account, settings: dict[str, Any]) -> dict[str, Any]:
    """Remove the account's name from the settings: answers show it, so it may be sent back."""
    is_own = settings.get("name") == account.name
    return {name: value for name, value in settings.items() if not (is_own and name == "name")}


def account_view(account: Account) -> Any:
    """Return the settings as in the interface, with the account's name."""
    settings = {"name": account.name, **show_settings(account.settings)}
    return msgspec.convert(settings, AccountView)


ROUTES = (read_account, change_account)
