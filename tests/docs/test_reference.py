"""docs/reference.md says what the code says, and the examples in docs/language.md are rules."""

from __future__ import annotations

import re

import pytest

from tollkeeper.docs.generate import DOCS, DOCUMENT, LLMS, REFERENCE, llms, openapi, reference
from tollkeeper.engine.facts.reference import every_field, fits
from tollkeeper.engine.offline.rule_files import known_files, rule_files
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.engine.programs.reference import every_name
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.catalogue import CODES
from tollkeeper.grammar.functions import AGGREGATES, FUNCTIONS

RULES = re.findall(r"```rule\n(.*?)```", (DOCS / "language.md").read_text(), re.DOTALL)


def test_the_reference_is_not_stale() -> None:
    assert REFERENCE.read_text() == reference(), "run `make docs`"


def test_the_openapi_document_is_not_stale() -> None:
    assert DOCUMENT.read_text() == openapi(), "run `make docs`"


def test_the_text_for_assistants_is_not_stale() -> None:
    assert LLMS.read_text() == llms(), "run `make docs`"


def test_the_reference_names_everything_that_a_rule_can_say() -> None:
    text = REFERENCE.read_text()
    for name in (*FUNCTIONS, *AGGREGATES, *CODES, *(field.name for field in every_field())):
        assert f"`{name}" in text, name


@pytest.mark.parametrize("text", RULES, ids=lambda text: text.split()[0])
def test_each_example_is_free_of_diagnostics(text: str) -> None:
    assert read_file(text.encode(), known_files(rule_files([SHIPPED]))).diagnostics == ()


@pytest.mark.parametrize(
    "example", [each.example for each in (*FUNCTIONS.values(), *AGGREGATES.values())]
)
def test_the_example_of_each_function_and_aggregate_is_an_expression(example: str) -> None:
    text = f"rule a let b = {example} condition c when b is present then deny"
    found = read_file(text.encode(), known_files([])).diagnostics
    assert not [each.message for each in found if each.severity == "error"]


def names_fitting(pattern: str) -> list[str]:
    return [each.name for each in every_name() if fits(each.name, pattern)]


def test_names_are_found_by_part_of_them_or_by_pattern() -> None:
    assert names_fitting("fingerprint.id") == ["device.fingerprint.id"]
    assert set(names_fitting("transactions.connector.*")) == {
        "transactions.connector.id",
        "transactions.connector.type",
        "transactions.connector.response_code",
        "transactions.connector.meaning",
    }
    assert names_fitting("ip_network") == ["ip_network(ip, bits, [bits6])"]
    assert "payments_1h_per_card" in names_fitting("per_card")
    assert names_fitting("no such field") == []


def test_a_field_says_its_type_in_words() -> None:
    words = {field.name: field.type for field in every_field()}
    assert words["score"] == "number from 0 to 1, 2 decimals"
    assert words["method.card.presence"] == '"card_not_present" | "card_present"'
    assert words["device.ip_address"] == "ip"
    assert re.fullmatch(r"one of \d+ codes", words["currency"])
