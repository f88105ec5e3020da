"""The codes that are written out are those of the libraries that follow the standards."""

from __future__ import annotations

from typing import get_args

import iso18245
import pycountry

from tollkeeper.engine.intake.codes import (
    CATEGORY_CODES,
    COUNTRIES,
    CURRENCIES,
    MEANINGS,
    ResponseMeaning,
)


def test_the_currencies_are_those_of_iso_4217() -> None:
    assert {currency.alpha_3 for currency in pycountry.currencies} == CURRENCIES


def test_the_countries_are_those_of_iso_3166() -> None:
    assert {country.alpha_2 for country in pycountry.countries} == COUNTRIES


def test_the_category_codes_are_those_of_iso_18245() -> None:
    assert {category.mcc for category in iso18245.get_all_mccs()} == CATEGORY_CODES


def test_every_meaning_but_other_has_response_codes():
    assert {*MEANINGS.values(), "other"} == set(get_args(ResponseMeaning))
    assert "other" not in MEANINGS.values()
