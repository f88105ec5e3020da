"""Settings as a command sets them: one at a time."""

from __future__ import annotations

from tollkeeper.engine.publish.set_settings import read_assignments, with_rates

KEPT = {"EUR": {"USD": "1.05", "BRL": "6"}, "GBP": {"USD": "1.3"}}


def test_setting_one_rate_changes_one():
    asked = read_assignments(["rates.EUR.USD=1.1"])
    assert with_rates(asked, KEPT)["rates"] == {
        "EUR": {"USD": 1.1, "BRL": "6"},
        "GBP": {"USD": "1.3"},
    }


def test_a_rate_of_null_goes_and_the_others_stay():
    asked = read_assignments(["rates.GBP.USD=null"])
    assert with_rates(asked, KEPT)["rates"] == {"EUR": {"USD": "1.05", "BRL": "6"}}


def test_what_is_no_rate_is_left_to_the_settings_to_refuse():
    for asked in ({"time_zone": "UTC"}, {"rates": 1}, {"rates": {"EUR": 1}}):
        assert with_rates(asked, KEPT) == asked
