"""An account's settings: validated, shown, and converted for use."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Context, Decimal
from functools import cache
from typing import Any, TypeAlias, cast, get_args
from zoneinfo import available_timezones

import msgspec

from tollkeeper.engine.intake.codes import CURRENCIES
from tollkeeper.engine.intake.field_rules import printable_name
from tollkeeper.engine.intake.limits import Limits
from tollkeeper.engine.intake.violations import Violation, ViolationType
from tollkeeper.engine.lists.environment import RATE_SCALE
from tollkeeper.engine.registry.changes import (
    AccountSettings,
    Approvals,
    Costs,
    ExtraCodes,
    Holdout,
    RolloutKey,
    SettingsChanged,
    Thresholds,
)
from tollkeeper.engine.registry.errors import Forbidden, Invalid
from tollkeeper.engine.registry.state import Account

MAX_RETENTION_DAYS = 3650
MAX_CLOCK_SKEW_MS = 60_000
MAX_EXTRA_CODES = 100
MAX_RATE = 10**12
MAX_CHARGEBACK = 10**7
HUNDREDTHS = 100
BASIS_POINTS = 10_000
_GUARDED = ("thresholds", "default_rule", "holdout", "retention_days")
"""Settings that affect decisions, or remove data for good; they need the approval that thresholds
need.
"""

# More digits than `_DECIMAL` accepts, so that no multiplication rounds.
_EXACT = Context(prec=200)
_DECIMAL = re.compile(r"[0-9]{1,38}(\.[0-9]{1,38})?")
_CODES = {
    "currency": re.compile(r"[A-Z]{3}"),
    "country": re.compile(r"[A-Z]{2}"),
    "category_code": re.compile(r"[0-9]{4}"),
}

_KEYS: tuple[str, ...] = get_args(RolloutKey)

_Report: TypeAlias = Callable[[str, ViolationType, str], None]


def change_settings(account: Account, requested: Mapping[str, object]) -> SettingsChanged | None:
    """The change to the requested settings; None when nothing changes.

    `requested` has the form that `show_settings` gives. A member left out keeps its value; an unknown
    one is refused, and so is null unless it is the setting's default. Numbers may be `Decimal`.
    Raises `Invalid` with all violations, each at its path from `account`.
    """
    violations: list[Violation] = []

    def report(path: str, type_: ViolationType, message: str) -> None:
        violations.append(Violation(f"account.{path}", type_, message))

    _refuse_others(requested, _READERS, "", report)
    new = {
        name: read(account, requested, report)
        for name, read in _READERS.items()
        if name in requested
    }
    if violations:
        raise Invalid(violations)
    changed = tuple(name for name in new if new[name] != getattr(account.settings, name))
    if not changed:
        return None
    return SettingsChanged(msgspec.structs.replace(account.settings, **new), changed)


def guarded_settings(account: Account) -> set[str]:
    """The settings whose change needs another person's approval.

    That includes which changes need approval.
    """
    approvals = account.settings.approvals
    guarded = {*_GUARDED} if approvals.thresholds else set()
    return guarded if approvals == Approvals() else guarded | {"approvals"}


def check_settings_alone(account: Account, change: SettingsChanged) -> None:
    """Raise `Forbidden` for a change that needs another person's approval."""
    if met := guarded_settings(account).intersection(change.changed):
        message = "another person must approve this: propose it"
        raise Forbidden(f"account.{min(met)}", message)


def show_settings(settings: AccountSettings) -> dict[str, Any]:
    """The settings in the API's form: thresholds, costs and the hold-out's percent as numbers,
    rates as decimal text.
    """
    shown: dict[str, Any] = msgspec.to_builtins(settings)
    shown["thresholds"] = _as_numbers(settings.thresholds, HUNDREDTHS)
    shown["costs"] = {
        **_as_numbers(settings.costs, BASIS_POINTS),
        "chargeback": settings.costs.chargeback / HUNDREDTHS,
    }
    shown["holdout"]["percent"] /= HUNDREDTHS
    return shown


def _as_numbers(scaled: msgspec.Struct, scale: int) -> dict[str, float]:
    return {name: value / scale for name, value in msgspec.structs.asdict(scaled).items()}


def scaled_rates(settings: AccountSettings) -> dict[tuple[str, str], int]:
    """`rates` by (from, to), times 10 ** RATE_SCALE."""
    return {
        (from_, to): int(Decimal(rate).scaleb(RATE_SCALE))
        for from_, prices in settings.rates.items()
        for to, rate in prices.items()
    }


def account_limits(settings: AccountSettings, limits: Limits) -> Limits:
    """The limits for the account's payments: the operator's, with the account's own settings."""
    extra = settings.extra_codes
    return msgspec.structs.replace(
        limits,
        clock_skew=settings.clock_skew_ms * 1000,
        currencies=limits.currencies.union(extra.currency),
        countries=limits.countries.union(extra.country),
        category_codes=limits.category_codes.union(extra.category_code),
    )


def _thresholds(account: Account, requested: Mapping[str, object], report: _Report) -> Thresholds:
    wanted = _object(requested["thresholds"], "thresholds", report)
    _refuse_others(wanted, ("challenge", "deny"), "thresholds.", report)
    old = account.settings.thresholds
    challenge = _decimal(wanted, "thresholds.challenge", old.challenge, report)
    deny = _decimal(wanted, "thresholds.deny", old.deny, report)
    if challenge > deny:
        message = "`challenge` may not be above `deny`"
        report("thresholds.challenge", "out_of_range", message)
    return Thresholds(challenge, deny)


def _decimal(
    wanted: Mapping[str, object],
    path: str,
    old: int,
    report: _Report,
    *,
    scale: int = HUNDREDTHS,
    most: int = 1,
) -> int:
    """A number from 0 to `most`, times `scale`; `old` where it is left out or refused."""
    name = path.rpartition(".")[2]
    if name not in wanted:
        return old
    value = wanted[name]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        _report_type(path, value, "this is a number", report)
        return old
    number = _exact(value)
    if not number.is_finite() or not 0 <= number <= most:
        report(path, "out_of_range", f"this is from 0 to {most}")
        return old
    scaled = _EXACT.multiply(number, scale)
    if scaled != int(scaled):
        report(path, "precision", f"this has at most {len(str(scale)) - 1} decimals")
        return old
    return int(scaled)


def _default_rule(account: Account, requested: Mapping[str, object], report: _Report) -> str | None:
    name = requested["default_rule"]
    if name is None:
        return None
    if not isinstance(name, str):
        report("default_rule", "invalid_type", "the default rule is a rule's name or null")
        return None
    if ("rule", name) not in account.files:
        report("default_rule", "invalid_value", f"there is no rule `{name}`")
    return name


def _time_zone(_account: Account, requested: Mapping[str, object], report: _Report) -> str:
    name = requested["time_zone"]
    if not isinstance(name, str):
        _report_type("time_zone", name, "a time zone is a string", report)
        return ""
    if name not in _time_zones():
        message = f"there is no time zone `{name}`; one is `America/Sao_Paulo`"
        report("time_zone", "invalid_value", message)
    return name


@cache
def _time_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _rates(
    account: Account, requested: Mapping[str, object], report: _Report
) -> dict[str, dict[str, str]]:
    extra = requested.get("extra_codes")
    codes = extra.get("currency") if isinstance(extra, Mapping) else None
    known = codes if isinstance(codes, Sequence) else account.settings.extra_codes.currency
    rates: dict[str, dict[str, str]] = {}
    for from_, prices in _object(requested["rates"], "rates", report).items():
        _check_currency(f"rates.{from_}", from_, known, report)
        for to, price in _object(prices, f"rates.{from_}", report).items():
            path = f"rates.{from_}.{to}"
            _check_currency(path, to, known, report)
            if from_ == to:
                report(path, "invalid_value", "the rate of a currency in itself is always 1")
            rates.setdefault(from_, {})[to] = _rate(price, path, report)
    return rates


def _check_currency(path: str, code: str, extra: Sequence[object], report: _Report) -> None:
    if code not in CURRENCIES and code not in extra:
        report(path, "invalid_value", f"`{code}` is not a currency of ISO 4217")


def _rate(price: object, path: str, report: _Report) -> str:
    if isinstance(price, bool) or not isinstance(price, str | int | float | Decimal):
        _report_type(path, price, 'a rate is a decimal such as "1.0832"', report)
        return ""
    text = price if isinstance(price, str) else f"{_exact(price):f}"
    if not _DECIMAL.fullmatch(text):
        report(path, "invalid_format", 'a rate is a decimal such as "1.0832"')
        return ""
    rate = _EXACT.normalize(Decimal(text))
    if not 0 < rate <= MAX_RATE:
        report(path, "out_of_range", f"a rate is above 0 and at most {MAX_RATE}")
        return ""
    exponent = rate.as_tuple().exponent
    assert isinstance(exponent, int)
    if -exponent > RATE_SCALE:
        report(path, "precision", f"a rate has at most {RATE_SCALE} decimals")
    return f"{rate:f}"


def _exact(value: float | Decimal) -> Decimal:
    # A double stands for the shortest decimal that reads as it: the one that was written.
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _retention_days(_account: Account, requested: Mapping[str, object], report: _Report) -> int:
    return _whole_number(
        requested["retention_days"], "retention_days", 1, MAX_RETENTION_DAYS, report
    )


def _clock_skew_ms(_account: Account, requested: Mapping[str, object], report: _Report) -> int:
    return _whole_number(requested["clock_skew_ms"], "clock_skew_ms", 0, MAX_CLOCK_SKEW_MS, report)


_SMALL = 1e15
"""Larger numbers are whole too, but no setting takes them."""


def _whole_number(value: object, path: str, low: int, high: int, report: _Report) -> int:
    if isinstance(value, float | Decimal) and -_SMALL < value < _SMALL and value % 1 == 0:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        _report_type(path, value, "this is a whole number", report)
        return low
    if not low <= value <= high:
        report(path, "out_of_range", f"this is from {low} to {high}")
    return value


def _extra_codes(account: Account, requested: Mapping[str, object], report: _Report) -> ExtraCodes:
    wanted = _object(requested["extra_codes"], "extra_codes", report)
    _refuse_others(wanted, _CODES, "extra_codes.", report)
    read = {name: _codes(wanted[name], name, report) for name in _CODES if name in wanted}
    return msgspec.structs.replace(account.settings.extra_codes, **read)


def _codes(value: object, name: str, report: _Report) -> tuple[str, ...]:
    path = f"extra_codes.{name}"
    if not isinstance(value, list | tuple):
        _report_type(path, value, "this is an array of codes", report)
        return ()
    if len(value) > MAX_EXTRA_CODES:
        report(path, "out_of_range", f"there are at most {MAX_EXTRA_CODES} extra codes")
        return ()
    for place, code in enumerate(value):
        if not isinstance(code, str) or not _CODES[name].fullmatch(code):
            message = f"a code has the form {_CODES[name].pattern}"
            report(f"{path}[{place}]", "invalid_format", message)
            return ()
    return tuple(sorted(set(value)))


def _approvals(account: Account, requested: Mapping[str, object], report: _Report) -> Approvals:
    wanted = _object(requested["approvals"], "approvals", report)
    names = Approvals.__struct_fields__
    _refuse_others(wanted, names, "approvals.", report)
    read: dict[str, bool] = {}
    for name in names:
        if name in wanted:
            value = wanted[name]
            if not isinstance(value, bool):
                _report_type(f"approvals.{name}", value, "this is true or false", report)
            read[name] = value is True
    return msgspec.structs.replace(account.settings.approvals, **read)


def _costs(account: Account, requested: Mapping[str, object], report: _Report) -> Costs:
    wanted = _object(requested["costs"], "costs", report)
    _refuse_others(wanted, Costs.__struct_fields__, "costs.", report)
    old = account.settings.costs
    return Costs(
        _decimal(wanted, "costs.chargeback", old.chargeback, report, most=MAX_CHARGEBACK),
        _decimal(wanted, "costs.margin", old.margin, report, scale=BASIS_POINTS),
        _decimal(wanted, "costs.challenge_lost", old.challenge_lost, report, scale=BASIS_POINTS),
    )


def _holdout(account: Account, requested: Mapping[str, object], report: _Report) -> Holdout:
    wanted = _object(requested["holdout"], "holdout", report)
    _refuse_others(wanted, Holdout.__struct_fields__, "holdout.", report)
    old = account.settings.holdout
    percent = _decimal(wanted, "holdout.percent", old.percent, report, most=100)
    by = wanted.get("by", old.by)
    if by not in _KEYS:
        message = "this is `user`, `device` or `order`"
        if isinstance(by, str):
            report("holdout.by", "invalid_value", message)
        else:
            _report_type("holdout.by", by, message, report)
    return Holdout(percent, cast("RolloutKey", by))


def _merchant_lists(
    account: Account, requested: Mapping[str, object], report: _Report
) -> tuple[str, ...]:
    names = requested["merchant_lists"]
    if not isinstance(names, list | tuple):
        _report_type("merchant_lists", names, "this is an array of names of lists", report)
        return ()
    for place, name in enumerate(names):
        path = f"merchant_lists[{place}]"
        if not isinstance(name, str):
            _report_type(path, name, "a list's name is a string", report)
            return ()
        if name not in account.lists:
            report(path, "invalid_value", f"there is no list `{printable_name(name)}`")
            return ()
    return tuple(sorted(set(names)))


def _object(value: object, path: str, report: _Report) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        _report_type(path, value, "this is an object", report)
        return {}
    return value


def _report_type(path: str, value: object, message: str, report: _Report) -> None:
    report(path, "null" if value is None else "invalid_type", message)


def _refuse_others(
    members: Mapping[str, object], known: Collection[str], at: str, report: _Report
) -> None:
    """Report unknown members, so that a misspelt setting is not ignored silently."""
    for name in members:
        if name not in known:
            shown = printable_name(name)
            report(f"{at}{shown}", "unknown_member", f"there is no setting `{shown}`")


_READERS: Mapping[str, Callable[[Account, Mapping[str, object], _Report], object]] = {
    "thresholds": _thresholds,
    "default_rule": _default_rule,
    "time_zone": _time_zone,
    "rates": _rates,
    "retention_days": _retention_days,
    "clock_skew_ms": _clock_skew_ms,
    "extra_codes": _extra_codes,
    "approvals": _approvals,
    "costs": _costs,
    "holdout": _holdout,
    "merchant_lists": _merchant_lists,
}
