from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.facts.facts import derive
from tollkeeper.engine.facts.vocabulary import vocabulary
from tollkeeper.engine.intake.codes import CATEGORY_CODES, COUNTRIES, CURRENCIES
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import build_contents
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.lists.spec import ListSpec, TableSpec
from tollkeeper.engine.programs.compile.python import compile_rule
from tollkeeper.engine.registry.programs import decode_program, encode_program
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.vocabulary import Vocabulary
from tollkeeper.tests.examples import examples

STORED = Path(__file__).parent / "stored"
SHIPPED = sorted((Path(__file__).parents[3] / "rules").rglob("*.rule"))

_numbers = st.integers(-(10**40), 10**40)
_types = (
    st.sampled_from([t.Boolean(), t.Ip(), t.Instant(), t.Duration(), t.Metadata(), t.Headers()])
    | st.builds(
        t.Number,
        st.none() | st.integers(0, 38),
        st.none() | st.decimals(allow_nan=False, allow_infinity=False),
        st.none() | st.just(Decimal("1E+12")),
    )
    | st.builds(t.String, st.none() | st.lists(st.text(), max_size=3).map(tuple))
)
_spans = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda ends: p.Span(*ends))
_head = {"id": st.integers(0, 10**6), "span": _spans, "type": _types}
_values = st.booleans() | _numbers | st.text() | st.floats(allow_nan=False, allow_infinity=False)
_constants = st.builds(p.Constant, **_head, value=_values)
_leaves = (
    _constants
    | st.builds(p.Fact, **_head, path=st.lists(st.text()).map(tuple))
    | st.builds(p.MetadataFact, **_head, key=st.text())
    | st.builds(
        p.InNetworks,
        **_head,
        value=_constants,
        networks=st.lists(st.tuples(st.integers(0, 2**128 - 1), st.integers(0, 128))).map(tuple),
        negated=st.booleans(),
    )
)


def _nested(inner):
    series = st.builds(
        p.Series,
        collection=st.just("payments"),
        event=st.none(),
        by=st.lists(inner, max_size=2).map(tuple),
        where=st.none() | inner,
        value=st.none() | inner,
    )
    return (
        st.builds(p.Compare, **_head, operator=st.just("<="), left=inner, right=inner)
        | st.builds(p.Or, **_head, operands=st.lists(inner, max_size=3).map(tuple))
        | st.builds(
            p.History,
            **_head,
            function=st.just("count"),
            series=series,
            keys=st.lists(inner, max_size=2).map(tuple),
            over=st.none() | _numbers,
        )
    )


_expressions = st.recursive(_leaves, _nested, max_leaves=5)
_tables = st.builds(
    p.TableUse, st.text(), st.just("prefix"), st.dictionaries(st.text(), _types, max_size=3)
)
_rules = st.builds(
    p.Rule,
    name=st.text(),
    title=st.none() | st.text(),
    lists=st.just((p.ListUse("trusted", "string"),)),
    tables=st.lists(_tables, max_size=2).map(tuple),
    lets=st.lists(st.builds(p.Let, st.text(), _spans, _expressions), max_size=2).map(tuple),
    conditions=st.lists(
        st.builds(
            p.Condition,
            st.integers(0, 9),
            _spans,
            st.text(),
            st.none(),
            _expressions,
            st.just("deny"),
        ),
        max_size=2,
    ).map(tuple),
    otherwise=st.none() | st.just("allow"),
    histories=st.just(()),
    tests=st.just(()),
)


@settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(_rules)
def test_a_stored_program_always_comes_back_as_it_was(rule):
    # Equality alone would take 1, 1.0 and true for the same.
    assert repr(decode_program(encode_program(rule))) == repr(rule)


@pytest.mark.parametrize("kind", ["scorecard", "definitions"])
def test_the_other_kinds_come_back_too(kind, request):
    program = request.getfixturevalue(kind)
    assert decode_program(encode_program(program)) == program


def test_tests_are_left_to_the_text(rule):
    with_tests = replace(rule(), tests=("a test",))
    assert decode_program(encode_program(with_tests)) == rule()


@cache
def words() -> Vocabulary:
    codes: Mapping[str, frozenset[str]] = {
        "currency": CURRENCIES,
        "country": COUNTRIES,
        "category_code": CATEGORY_CODES,
    }
    return vocabulary({name: tuple(sorted(known)) for name, known in codes.items()})


def checked(path: Path) -> p.Program | None:
    text = path.read_text()
    return check(parse(text).file, text, words(), KnownNames()).program


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_file_comes_back_as_it_was_checked(path):
    program = checked(path)
    if program is None:
        pytest.skip("the file takes in definitions or events")
    if not isinstance(program, p.Definitions):
        program = replace(program, tests=())
    assert repr(decode_program(encode_program(program))) == repr(program)


@pytest.mark.parametrize("path", sorted(STORED.glob("*.json")), ids=lambda path: path.stem)
def test_what_was_stored_by_an_earlier_release_still_loads(path):
    # These files are never made anew: they are what accounts have on disk.
    program = decode_program(zlib.compress(path.read_bytes()))
    assert [condition.name for condition in program.conditions] == ["renewal", "abroad", "many"]


PLAIN = {
    "id": "1",
    "type": "purchase",
    "status": "initiated",
    "timestamp": "2030-01-31T12:00:00Z",
    "currency": "BRL",
    "amount": 129.9,
    "method": {"type": "credit_card"},
    "merchant": {"id": "shop"},
    "device": {"ip_address": "203.0.113.7"},
}


@pytest.mark.parametrize(
    ("differs", "declines", "condition"),
    [
        ({}, 0, None),
        ({}, 6, "many"),
        ({"device": None, "merchant": {"id": "gym"}}, 6, "renewal"),
        ({"device": {"ip_address": "198.51.100.1"}}, 0, "abroad"),
        ({"device": {"ip_address": "10.0.0.1"}}, 0, None),
        ({"amount": 2.5}, None, None),
        ({"amount": 2.5, "metadata": {"sku": "gift-7"}}, None, "many"),
        ({"user": {"email": "ana@MAIL7.example"}}, None, "many"),
    ],
)
def test_a_stored_rule_decides_as_it_did_when_it_was_stored(differs, declines, condition):
    # `stored/language_1.rule` is what it said.
    stored = decode_program(zlib.compress((STORED / "language_1.json").read_bytes()))
    columns = {"country": "string", "asn": "number"}
    entries = [
        ListEntry("203.0.113.0/24", '["BR",null]'),
        ListEntry("198.51.100.0/24", '["PT","1"]'),
    ]
    environment = Environment(
        lists={"trusted": build_contents(ListSpec("string"), [ListEntry("gym")])},
        tables={"places": build_contents(TableSpec("network", columns), entries)},
    )
    sent = {name: value for name, value in (PLAIN | differs).items() if value is not None}
    facts = derive(msgspec.convert(sent, Payment), 0, lambda _: None)
    met = compile_rule(stored, words())(facts, None, (declines,), environment)
    assert (stored.conditions[met].name if met >= 0 else None) == condition
