"""A number is what was written, not the nearest double (docs/api.md, docs/language.md)."""

from __future__ import annotations

from fractions import Fraction
from math import floor, isclose

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import json

from tollkeeper.engine.facts.clients import read_client
from tollkeeper.engine.facts.facts import derive
from tollkeeper.engine.intake.exact_numbers import double_of, has_two_decimals
from tollkeeper.engine.intake.payment import MAX_AMOUNT, Payment
from tollkeeper.engine.intake.read import read_creation
from tollkeeper.engine.programs.compile.functions import metadata_number
from tollkeeper.grammar.types import METADATA_SCALE
from tollkeeper.tests.examples import examples

NOW = 1_768_478_400_000_000
# Up to here doubles lie closer than the 6th decimal, so that one of them reads as any number.
FINE = 2**33

digits = st.text("0123456789", min_size=1, max_size=14)
zeros = st.integers(0, 25).map(lambda count: "0" * count)
whole = digits.map(lambda text: text.lstrip("0") or "0")
fraction = st.just("") | st.builds(
    "".join, st.tuples(st.just("."), digits, zeros, st.just("") | digits)
)
exponent = st.just("") | st.builds(
    "{}{}".format, st.sampled_from(["e", "E+", "e-"]), st.integers(0, 30)
)
written = st.builds("".join, st.tuples(st.sampled_from(["", "", "-"]), whole, fraction, exponent))


@settings(max_examples=examples(500))
@given(written)
def test_two_decimals_are_always_told_as_exact_arithmetic_would(text: str) -> None:
    assert has_two_decimals(text) == ((Fraction(text) * 100).denominator == 1)


@settings(max_examples=examples(500))
@given(written)
def test_an_amount_is_always_accepted_by_its_exact_value(text: str) -> None:
    body = b'{"payment":{"type":"purchase","currency":"BRL","method":{"type":"pix"},"merchant":{"id":"m"},"amount":%b}}'
    read = read_creation(body % text.encode(), NOW)
    exact = Fraction(text)
    if 0 <= exact <= MAX_AMOUNT and (exact * 100).denominator == 1:
        assert isinstance(read, Payment)
        stored = json.decode(json.encode(read), type=Payment)
        assert [derive(each, NOW, read_client).amount for each in (read, stored)] == [
            exact * 100
        ] * 2
    else:
        assert isinstance(read, tuple)
        assert [violation.field for violation in read] == ["payment.amount"]


@settings(max_examples=examples(500))
@given(written.filter(lambda text: not text.lstrip("-").isdigit()))
def test_a_metadata_number_always_reads_as_what_was_written(text: str) -> None:
    double = double_of(text)
    if abs(double) < FINE:
        millionths = Fraction(text) * 10**METADATA_SCALE
        half_away = floor(abs(millionths) + Fraction(1, 2))
        assert metadata_number(double) == (half_away if millionths >= 0 else -half_away)
    else:
        assert isclose(double, float(text), rel_tol=1e-15)
