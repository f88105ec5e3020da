"""The lists of codes that fields are checked against."""

from __future__ import annotations

import iso18245
import pycountry

CURRENCIES = frozenset(currency.alpha_3 for currency in pycountry.currencies)
"""ISO 4217."""

COUNTRIES = frozenset(country.alpha_2 for country in pycountry.countries)
"""ISO 3166-1 alpha-2."""

CATEGORY_CODES = frozenset(category.mcc for category in iso18245.get_all_mccs())
"""ISO 18245, with the codes that the card schemes assign in its ranges."""
