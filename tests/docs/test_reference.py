"""docs/reference.md says what the code says, and the examples in docs/language.md are rules."""

from __future__ import annotations

import re

import pytest

from tollkeeper.docs.generate import DOCS, DOCUMENT, REFERENCE, openapi, reference
from tollkeeper.engine.facts.reference import find_fields
from tollkeeper.engine.offline.rule_files import known_files, rule_files
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.catalogue import CODES
from tollkeeper.grammar.functions import AGGREGATES, FUNCTIONS

RULES = re.findall(r"```rule\n(.*?)```", (DOCS / "language.md").read_text(), re.DOTALL)


def test_the_reference_is_not_stale() -> None:
    assert REFERENCE.read_text() == reference(), "run `make docs`"


def test_the_openapi_document_is_not_stale() -> None:
    assert DOCUMENT.read_text() == openapi(), "run `make docs`"


def test_the_reference_names_everything_that_a_rule_can_say() -> None:
    text = REFERENCE.read_text()
    for name in (*FUNCTIONS, *AGGREGATES, *CODES, *(field.name for field in find_fields(""))):
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


def test_fields_are_found_by_part_of_their_name_or_by_pattern() -> None:
    assert [field.name for field in find_fields("fingerprint.id")] == ["device.fingerprint.id"]
    assert {field.name for field in find_fields("transactions.connector.*")} == {
        "transactions.connector.id",
        "transactions.connector.type",
        "transactions.connector.response_code",
    }
    assert find_fields("no such field") == ()


def test_a_field_says_its_type_in_words() -> None:
    words = {field.name: field.type for field in find_fields("")}
    assert words["score"] == "number from 0 to 1, 2 decimals"
    assert words["method.card.presence"] == '"card_not_present" | "card_present"'
    assert words["device.ip_address"] == "ip"
    assert re.fullmatch(r"one of \d+ codes", words["currency"])
