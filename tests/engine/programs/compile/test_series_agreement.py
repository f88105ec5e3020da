"""What a record brings to a series, `EXPR of payments` included, is what the interpreter says of it."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import structs

from tollkeeper.engine.programs.compile.counting import Counting
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.explain import Inputs, scope_of
from tollkeeper.engine.programs.compile.interpreter import EvaluationScope, evaluate
from tollkeeper.engine.programs.compile.reckoning import carry
from tollkeeper.engine.programs.compile.series import compile_series
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.names import METADATA_NUMBER
from tollkeeper.grammar.walk import parts
from tollkeeper.tests.engine.programs.compile.payments import ENVIRONMENT, VOCABULARY, payment
from tollkeeper.tests.engine.programs.compile.programs import SCALARS, Maker, rule

RECORDS = 30
ENTRIES = (
    *("a", 42, True, None, {}, [], ["a", 42, True], [0.3, "", None, 1e300], {"x": "a", "y": 1}),
    *(
        {"x": {"y": "a"}},
        {"x": {"y": True}},
        {"x": {"y": 0.3}},
        {"x": ["a", 1]},
        {"x": {"y": [""]}},
    ),
)
PROGRAMS = int(os.environ.get("TOLLKEEPER_PROGRAMS", "40"))
_OF_NOW = (p.Score,)
"""What a historical record doesn't have."""


@st.composite
def series(draw: Any) -> p.Series:
    """A series over payments, of any value that a record has, mostly with a `where`."""
    maker = Maker(draw)
    key = p.Fact(*maker.place(), t.String(), ("user", "id"))
    value: p.Expression = maker.make(maker.pick(SCALARS), 3)
    if maker.chance(25):
        value = _entry(maker)
    elif maker.chance(10):
        value = p.EntryCount(*maker.place(), t.Number(0), replace(_entry(maker), type=t.Metadata()))
    where = maker.make("boolean", 2) if maker.chance(70) else None
    if maker.chance(25):
        kind = maker.pick(("text", "number", "boolean"))
        wanted, entries = maker.make(kind, 1), replace(_entry(maker), type=t.Metadata())
        where = p.InEntry(*maker.place(), t.Boolean(), wanted, entries, maker.chance(50))
    for root in (value, where):
        for part in parts(root) if root is not None else ():
            assume(not (isinstance(part, _OF_NOW) or _reads_settings(part)))
    return p.Series("payments", None, (key,), where, value)


@st.composite
def several_series(draw: Any) -> tuple[tuple[p.Let, ...], tuple[p.Series, ...]]:
    """Lets of payments, and series over payments and over transactions that read them."""
    maker = Maker(draw)
    for index in range(draw(st.integers(0, 3))):
        place, span = maker.place()
        maker.lets.append(p.Let(f"l{place}", span, maker.make(("boolean", "number")[index % 2], 3)))
    keys = [maker.fact(VOCABULARY.payment[name]) for name in ("user.id", "currency")]
    found = []
    for _ in range(draw(st.integers(1, 5))):
        collection = maker.pick(("payments", "transactions"))
        of = "element" if collection == "transactions" else "payment"
        where = maker.make("boolean", 3, of) if maker.chance(70) else None
        value = maker.make(maker.pick(SCALARS), 3, of) if maker.chance(50) else None
        # The same parts again, as the signals of a scorecard have them.
        before = [each for each in found if each.collection == collection]
        if before and maker.chance(50):
            where = maker.pick(before).where
        by = tuple(keys[: maker.pick((1, 2))])
        found.append(p.Series(collection, None, by, where, value))
    for root in (*(let.value for let in maker.lets), *(w for s in found for w in _roots(s))):
        for part in parts(root):
            assume(not (isinstance(part, _OF_NOW) or _reads_settings(part)))
    return tuple(maker.lets), tuple(found)


def _roots(of: p.Series) -> list[p.Expression]:
    return [part for part in (of.where, of.value) if part is not None]


def _entry(maker: Maker) -> p.MetadataFact:
    inner = maker.pick(((), ("x",), ("x", "y")))
    kind = maker.pick((METADATA_NUMBER, t.String(), t.Boolean()))
    return p.MetadataFact(*maker.place(), kind, maker.pick("abc"), inner)


def _reads_settings(part: p.Expression) -> bool:
    """Whether the account's time zone is read."""
    match part:
        case p.Call(function="hour" | "weekday", arguments=(_,)):
            return True
        case _:
            return False


@given(series(), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_record_brings_what_the_interpreter_says(of: p.Series, missing: bool, seed: int) -> None:
    compiled = compile_series(of, Digests(()), VOCABULARY)
    together = Counting({"one": (of, missing)}, Digests(()), VOCABULARY)(("one",))
    random = Random(seed)
    for _ in range(RECORDS):
        record = payment(random)
        metadata = {name: random.choice(ENTRIES) for name in "abc"}
        record = structs.replace(record, payment=structs.replace(record.payment, metadata=metadata))
        scope = scope_of(rule(()), Inputs(record, (), ENVIRONMENT, None), VOCABULARY)
        key = evaluate(of.by[0], scope)
        taken = of.where is None or evaluate(of.where, scope) is True
        assert of.value is not None
        brought = [carry(evaluate(of.value, scope), of.value.type)] if taken else []
        of_record = (record, None, None, ENVIRONMENT, None)
        assert list(compiled.values(*of_record)) == brought
        assert compiled.key(*of_record) == (None if key is None else (key,))
        is_put = key is not None and taken and (missing or brought != [None])
        for function in (together.count, together.add):
            put: list[Any] = []

            def take(*element: Any, into: list[Any] = put) -> None:
                into.append(element)

            function(*of_record, 7, [take])
            assert put == ([(7, key, brought[0])] if is_put else [])


@given(several_series(), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))
def test_series_counted_together_put_what_the_interpreter_says_of_each(
    drawn: tuple[tuple[p.Let, ...], tuple[p.Series, ...]], missing: bool, seed: int
) -> None:
    lets, several = drawn
    named = {str(index): (each, missing) for index, each in enumerate(several)}
    together = Counting(named, Digests(lets), VOCABULARY)(tuple(named))
    random = Random(seed)
    for _ in range(RECORDS):
        record = payment(random)
        program = replace(rule(()), lets=lets)
        scope = scope_of(program, Inputs(record, (), ENVIRONMENT, None), VOCABULARY)

        def put_by(
            function: Any, inputs: tuple[Any, ...] = (record, None, None, ENVIRONMENT, None)
        ) -> tuple[Any, list[list[Any]]]:
            put: list[list[Any]] = [[] for _ in several]
            takers = [lambda *element, into=into: into.append(element) for into in put]
            return function(*inputs, 7, takers), put

        groups, put = put_by(together.count)
        assert put_by(together.add)[1] == put
        for index, of in enumerate(several):
            key = tuple(evaluate(part, scope) for part in of.by)
            group = None if None in key else key[0] if len(key) == 1 else key
            assert groups[together.positions[index]] == group
            is_inner = of.collection == "transactions"
            elements = record.payment.transactions if is_inner else (None,)
            brought = [_brought(of, replace(scope, element=each)) for each in elements or ()]
            items = [item for each in brought for item in each if missing or item is not None]
            assert put[index] == ([] if group is None else [(7, group, item) for item in items])


def _brought(of: p.Series, scope: EvaluationScope) -> list[Any]:
    """The item of one payment or transaction, when its `where` is definitely true."""
    if of.where is not None and evaluate(of.where, scope) is not True:
        return []
    return [True if of.value is None else carry(evaluate(of.value, scope), of.value.type)]
