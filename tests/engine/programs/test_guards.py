"""What a condition, or those before it, has made sure of is not warned of again."""

from __future__ import annotations

import pytest

from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames

NOT_VISA = 'not (method.card.network == "visa")'


def warned(*lines: str) -> list[str]:
    text = "\n".join(["rule a", *(f"  {line}" for line in lines)])
    return [found.code for found in read_file(text.encode(), KnownNames()).diagnostics]


@pytest.mark.parametrize(
    "negation",
    [
        NOT_VISA,
        'method.card.presence != "card_present"',
        'not (device.fingerprint.provider == "basic")',
        'device.fingerprint.id not in ["d-1"]',
        'not (device.client.kind == "browser")',
        'backend.client.os != "linux"',
        "not device.client.consistent",
    ],
)
def test_a_field_is_missing_with_the_record_that_it_belongs_to(negation: str) -> None:
    assert warned(f"condition b when {negation} then deny") == ["missing-under-not"]


@pytest.mark.parametrize(
    "guard",
    [
        "method.card is present",
        "method.card.network is present",
        'method.card.bin starts with "4111"',
        "has_card",
    ],
)
def test_a_record_is_there_once_a_field_of_it_is(guard: str) -> None:
    lets = ["let has_card = method.card is present"] if guard == "has_card" else []
    condition = f"condition b when {guard} and {NOT_VISA} then deny"
    assert warned(*lets, condition) == []


def test_what_every_payment_has_is_never_missing() -> None:
    assert warned('condition b when not (merchant.id == "m-1") then deny') == []


def test_a_record_that_is_there_says_nothing_of_its_optional_fields() -> None:
    condition = (
        'condition b when method.card is present and method.card.bin != "41111111" then deny'
    )
    assert warned(condition) == ["missing-under-not"]


@pytest.mark.parametrize(
    "earlier",
    [
        'currency != "USD"',
        "not is_dollar",
        'not (currency in ["USD", "CAD"])',
        'currency not in ["USD"]',
    ],
)
def test_a_condition_met_by_other_currencies_guards_the_amounts_behind_it(earlier: str) -> None:
    lets = ['let is_dollar = currency == "USD"'] if "is_dollar" in earlier else []
    conditions = (
        f"condition b when {earlier} then allow",
        "condition c when amount > 9.00 then deny",
    )
    assert warned(*lets, *conditions) == []


def test_a_condition_met_by_one_currency_guards_nothing() -> None:
    conditions = (
        'condition b when currency == "USD" then allow',
        "condition c when amount > 9.00 then deny",
    )
    assert warned(*conditions) == ["no-currency"]
