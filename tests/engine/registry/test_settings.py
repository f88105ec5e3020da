from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.registry.settings import (
    account_limits,
    change_settings,
    scaled_rates,
    show_settings,
)
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.versions import encode_file, store_version

NEW = Account(1, "shop", 0)

# Settings that are never acceptable, with the places that are named.
REFUSED = [
    ({"thresholds": 0.5}, ["account.thresholds"]),
    ({"thresholds": {"challenge": "0.5"}}, ["account.thresholds.challenge"]),
    ({"thresholds": {"challenge": True}}, ["account.thresholds.challenge"]),
    ({"thresholds": {"challenge": -0.01}}, ["account.thresholds.challenge"]),
    ({"thresholds": {"deny": 1.01}}, ["account.thresholds.deny"]),
    ({"thresholds": {"deny": 0.855}}, ["account.thresholds.deny"]),
    ({"thresholds": {"deny": 10**5000}}, ["account.thresholds.deny"]),
    ({"thresholds": {"deny": float("nan")}}, ["account.thresholds.deny"]),
    ({"rates": {"EUR": {"USD": float("inf")}}}, ["account.rates.EUR.USD"]),
    ({"rates": {"EUR": {"USD": 10**5000}}}, ["account.rates.EUR.USD"]),
    ({"thresholds": {"challenge": 0.9}}, ["account.thresholds.challenge"]),
    ({"default_rule": 3}, ["account.default_rule"]),
    ({"default_rule": "nobody"}, ["account.default_rule"]),
    ({"time_zone": "America/Sao_Paolo"}, ["account.time_zone"]),
    ({"time_zone": "../../etc/passwd"}, ["account.time_zone"]),
    ({"time_zone": "America"}, ["account.time_zone"]),
    ({"time_zone": -3}, ["account.time_zone"]),
    ({"rates": []}, ["account.rates"]),
    ({"rates": {"EUR": 1}}, ["account.rates.EUR"]),
    ({"rates": {"EUR": {"USD": "0"}}}, ["account.rates.EUR.USD"]),
    ({"rates": {"EUR": {"USD": "-1"}}}, ["account.rates.EUR.USD"]),
    ({"rates": {"EUR": {"USD": "1e3"}}}, ["account.rates.EUR.USD"]),
    ({"rates": {"EUR": {"USD": "1,08"}}}, ["account.rates.EUR.USD"]),
    ({"rates": {"EUR": {"USD": "١"}}}, ["account.rates.EUR.USD"]),
    ({"rates": {"EUR": {"USD": "1.08321234567"}}}, ["account.rates.EUR.USD"]),
    ({"rates": {"EUR": {"USD": "1." + "0" * 36 + "1"}}}, ["account.rates.EUR.USD"]),
    ({"thresholds": {"deny": Decimal("0.9" + "0" * 36 + "1")}}, ["account.thresholds.deny"]),
    ({"rates": {"EUR": {"USD": "1000000000001"}}}, ["account.rates.EUR.USD"]),
    ({"rates": {"EUR": {"USD": None}}}, ["account.rates.EUR.USD"]),
    ({"rates": {"EUR": {"EUR": "1"}}}, ["account.rates.EUR.EUR"]),
    ({"rates": {"EUR": {"usd": "1"}}}, ["account.rates.EUR.usd"]),
    ({"rates": {"XXQ": {"USD": "1"}}}, ["account.rates.XXQ"]),
    ({"retention_days": 0}, ["account.retention_days"]),
    ({"retention_days": 3651}, ["account.retention_days"]),
    ({"retention_days": 1.5}, ["account.retention_days"]),
    ({"retention_days": True}, ["account.retention_days"]),
    ({"clock_skew_ms": -1}, ["account.clock_skew_ms"]),
    ({"clock_skew_ms": 60_001}, ["account.clock_skew_ms"]),
    ({"costs": 15}, ["account.costs"]),
    ({"costs": {"chargeback": -1}}, ["account.costs.chargeback"]),
    ({"costs": {"margin": 1.5}}, ["account.costs.margin"]),
    ({"costs": {"challenge_lost": 0.00001}}, ["account.costs.challenge_lost"]),
    ({"costs": {"fee": 1}}, ["account.costs.fee"]),
    ({"holdout": {"percent": 101}}, ["account.holdout.percent"]),
    ({"holdout": {"percent": 0.125}}, ["account.holdout.percent"]),
    ({"holdout": {"by": "card"}}, ["account.holdout.by"]),
    ({"holdout": {"by": ["user"]}}, ["account.holdout.by"]),
    ({"extra_codes": []}, ["account.extra_codes"]),
    ({"extra_codes": {"currency": "BTC"}}, ["account.extra_codes.currency"]),
    ({"extra_codes": {"currency": ["BTC", "bit"]}}, ["account.extra_codes.currency[1]"]),
    ({"extra_codes": {"country": ["XKX"]}}, ["account.extra_codes.country[0]"]),
    ({"extra_codes": {"category_code": [5999]}}, ["account.extra_codes.category_code[0]"]),
    ({"extra_codes": {"category_code": ["5999"] * 101}}, ["account.extra_codes.category_code"]),
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize(("asked", "fields"), REFUSED)
def test_a_setting_that_is_not_allowed_is_refused_at_its_place(asked, fields):
    with pytest.raises(Invalid) as refused:
        change_settings(NEW, asked)
    assert [v.field for v in refused.value.violations] == fields


def test_all_that_is_wrong_comes_back_together(snapshot):
    asked = {
        "thresholds": {"challenge": 0.915, "deny": 2},
        "default_rule": "chekout",
        "time_zone": "Mars",
        "rates": {"EUR": {"USD": "free", "XXQ": "1.0"}},
        "retention_days": 0,
        "clock_skew_ms": "5",
        "extra_codes": {"currency": ["bitcoin"]},
    }
    with pytest.raises(Invalid) as refused:
        change_settings(NEW, asked)
    lines = [f"{v.field}  {v.type}: {v.message}" for v in refused.value.violations]
    assert "\n".join(lines) == snapshot


@given(st.dictionaries(st.sampled_from([*AccountSettings.__struct_fields__, "other"]), json_values))
def test_any_json_is_either_settings_or_refused(asked):
    try:
        change = change_settings(NEW, asked)
    except Invalid as refused:
        fields = [violation.field for violation in refused.violations]
    else:
        fields = []
        assert change is None or change.changed
    assert all(field.startswith("account.") for field in fields)


def test_what_is_left_out_stays_as_it_was(registry):
    registry.record(change_settings(registry.account, {"thresholds": {"challenge": 0.4}}))
    registry.record(change_settings(registry.account, {"time_zone": "America/Sao_Paulo"}))
    settings = registry.account.settings
    assert (settings.thresholds.challenge, settings.thresholds.deny) == (40, 85)
    assert settings.time_zone == "America/Sao_Paulo"


def test_null_is_taken_where_it_is_the_default(registry, rule):
    registry.record(store_version(registry.account, encode_file(rule()), "text", {}))
    registry.record(change_settings(registry.account, {"default_rule": "checkout"}))
    registry.record(change_settings(registry.account, {"default_rule": None}))
    assert registry.account.settings == AccountSettings()


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        (dict.fromkeys(set(AccountSettings.__struct_fields__) - {"default_rule"}), None),
        ({"thresholds": {"challenge": None, "deny": None}}, {"challenge", "deny"}),
        ({"rates": {"EUR": None}}, {"EUR"}),
        ({"extra_codes": {"currency": None}}, {"currency"}),
    ],
)
def test_null_is_refused_elsewhere(asked, fields):
    with pytest.raises(Invalid) as refused:
        change_settings(NEW, asked)
    found = refused.value.violations
    assert {each.type for each in found} == {"null"}
    assert {each.field.rpartition(".")[2] for each in found} == (fields or set(asked))


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"treshold": {}}, "account.treshold"),
        ({"thresholds": {"dney": 0.9}}, "account.thresholds.dney"),
        ({"extra_codes": {"mcc": []}}, "account.extra_codes.mcc"),
        ({"x" * 300: 1}, "account.…"),
    ],
)
def test_what_no_setting_is_named_is_refused(asked, field):
    with pytest.raises(Invalid) as refused:
        change_settings(NEW, asked)
    (found,) = refused.value.violations
    assert (found.field, found.type) == (field, "unknown_member")


def test_nothing_changes_when_all_is_as_it_was():
    assert change_settings(NEW, show_settings(AccountSettings())) is None


def test_a_change_names_what_changed(registry):
    asked = {"thresholds": {"deny": 0.9}, "time_zone": "UTC", "clock_skew_ms": 2000}
    assert change_settings(registry.account, asked).changed == ("thresholds", "clock_skew_ms")


def test_the_default_rule_is_one_that_the_account_has(registry, rule):
    registry.record(store_version(registry.account, encode_file(rule()), "text", {}))
    registry.record(change_settings(registry.account, {"default_rule": "checkout"}))
    assert registry.account.settings.default_rule == "checkout"


@given(
    challenge=st.integers(0, 100), more=st.integers(0, 100), form=st.sampled_from([float, Decimal])
)
def test_every_threshold_of_two_decimals_is_taken_exactly(challenge, more, form):
    deny = min(challenge + more, 100)
    asked = {"challenge": form(f"{challenge / 100}"), "deny": form(f"{deny / 100}")}
    change = change_settings(NEW, {"thresholds": asked})
    thresholds = change.settings.thresholds if change else NEW.settings.thresholds
    assert (thresholds.challenge, thresholds.deny) == (challenge, deny)
    assert show_settings(AccountSettings(thresholds))["thresholds"] == {
        "challenge": challenge / 100,
        "deny": deny / 100,
    }


@given(st.decimals(min_value="0.0000000001", max_value=10**12, places=10))
def test_every_rate_of_ten_decimals_is_kept_exactly(rate):
    change = change_settings(NEW, {"rates": {"EUR": {"USD": f"{rate:f}"}}})
    assert scaled_rates(change.settings) == {("EUR", "USD"): int(rate * 10**10)}


def test_an_extra_currency_has_rates_too():
    asked = {"extra_codes": {"currency": ["BTC"]}, "rates": {"BTC": {"USD": "64000"}}}
    assert change_settings(NEW, asked).settings.rates == {"BTC": {"USD": "64000"}}


def test_extra_codes_and_skew_reach_the_bounds_of_payments():
    asked = {
        "clock_skew_ms": 1500,
        "extra_codes": {"currency": ["BTC"], "country": ["XK"], "category_code": ["0001"]},
    }
    limits = account_limits(change_settings(NEW, asked).settings, DEFAULT_LIMITS)
    assert limits.clock_skew == 1_500_000
    assert limits.currencies == DEFAULT_LIMITS.currencies | {"BTC"}
    assert limits.countries == DEFAULT_LIMITS.countries | {"XK"}
    assert limits.category_codes == DEFAULT_LIMITS.category_codes | {"0001"}
