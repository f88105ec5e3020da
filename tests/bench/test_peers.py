"""Every engine of the rule benchmark decides the same twelve conditions alike."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.bench import peers
from tollkeeper.bench.peers.documents import PATHS, documents, inputs, situation
from tollkeeper.bench.peers.hand_written import decide
from tollkeeper.bench.rules import (
    EXPENSIVE,
    TWELVE,
    VOCABULARY,
    Row,
    checked,
    growing,
    sharing_rule,
    show_rows,
)
from tollkeeper.engine.programs.compile.python import compile_rule
from tollkeeper.tests.examples import examples

BODIES = list(documents(11, 400))
COMPILED = compile_rule(checked(TWELVE), VOCABULARY)
EXPECTED = [decide(*situation(body)) for body in BODIES]


@pytest.fixture(scope="module", params=peers.DISTRIBUTIONS)
def peer(request):
    name, found = peers.load(request.param)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def test_the_twelve_conditions_and_none_are_each_some_payments_outcome():
    outcomes = Counter(decide(*situation(body)) for body in documents(11, 4000))
    assert set(outcomes) == set(range(-1, 12))


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 2**32))
def test_the_compiled_rule_always_decides_as_the_hand_written_function(seed):
    for body in documents(seed, 20):
        given = situation(body)
        assert COMPILED(*given) == decide(*given)


def test_a_peer_decides_inputs_in_its_own_form_as_the_hand_written_function(peer):
    prepared = [peer.prepare(inputs(json.loads(body))) for body in BODIES]
    assert [peer.decide(each) for each in prepared] == EXPECTED


def test_a_peer_decides_a_dict_as_the_hand_written_function(peer):
    assert [peer.decide_inputs(inputs(json.loads(body))) for body in BODIES] == EXPECTED


def test_a_peer_decides_json_as_the_hand_written_function(peer):
    assert [peer.decide_json(body) for body in BODIES] == EXPECTED


def test_inputs_and_paths_find_the_same_values():
    for body in BODIES:
        document = json.loads(body)
        found = {name: _at(document, path) for name, path in PATHS.items()}
        found["device"] = None if found["device"] is None else True
        assert found == inputs(document)


def test_an_engine_that_is_not_installed_is_named(monkeypatch, capsys):
    monkeypatch.setitem(peers.DISTRIBUTIONS, "absent", "absent-engine")
    assert peers.load("absent") == ("absent-engine", None)
    show_rows([Row("From JSON", "absent-engine", None, None)])
    assert "| absent-engine | not installed |  |" in capsys.readouterr().out


@pytest.mark.parametrize("text", [growing(500), sharing_rule(500, EXPENSIVE)])
def test_a_rule_that_measures_growth_meets_no_condition(text):
    compiled = compile_rule(checked(text), VOCABULARY)
    assert {compiled(*situation(body)) for body in BODIES} == {-1}


def _at(document, path):
    for name in path.split("."):
        document = None if document is None else document.get(name)
    return document
