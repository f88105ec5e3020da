"""Conditions are learned from labelled history, hold on later time, and decide as they were counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from tollkeeper.api.terminal.testing.run import run_tests
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.offline.backtest.backtest import candidate_of
from tollkeeper.engine.offline.backtest.files import backtest_files, file_history
from tollkeeper.engine.offline.backtest.replay import ReplayedPayment, try_candidate
from tollkeeper.engine.offline.outcomes import NothingToLearnError
from tollkeeper.engine.offline.suggest.atoms import Atom, atoms_of
from tollkeeper.engine.offline.suggest.columns import SuggestionColumn, families
from tollkeeper.engine.offline.suggest.examine import examine
from tollkeeper.engine.offline.suggest.incidents import incidents
from tollkeeper.engine.offline.suggest.search import SearchAims, SearchSpace, cover, wilson
from tollkeeper.engine.offline.suggest.suggest import (
    Suggestion,
    holds_when_quiet,
    quiet_share,
    suggest,
)
from tollkeeper.engine.offline.suggest.table import (
    PaymentTable,
    labels_by_score,
    labels_known,
    read_files,
)
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.registry.state import Account
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule
from tollkeeper.tests.engine.offline.suggest.conftest import ATTACKS, PER_ATTACK, SECRETS

AIMS = SearchAims(precision=0.85)


def untold(_share: float) -> None:
    pass


@pytest.fixture(scope="module")
def table(history: Path) -> PaymentTable:
    return read_files([history], 0, labels_known({}), untold)


@pytest.fixture(scope="module")
def suggestion(table: PaymentTable) -> Suggestion:
    return suggest(table, AIMS, "suggested", "deny", untold)


def test_a_suggestion_is_a_rule_with_its_figures_and_tests(
    suggestion: Suggestion, snapshot: SnapshotAssertion
) -> None:
    assert suggestion.text == snapshot
    assert suggestion.incidents == ATTACKS
    assert suggestion.frauds == ATTACKS * PER_ATTACK
    assert suggestion.together.recall > 0.5
    assert suggestion.together.precision is not None
    assert suggestion.together.precision > 0.9


def test_the_rule_has_nothing_to_warn_of_and_passes_its_own_tests(
    suggestion: Suggestion, tmp_path: Path
) -> None:
    assert read_file(suggestion.text.encode(), KnownNames()).diagnostics == ()
    (tmp_path / "suggested.rule").write_text(suggestion.text)
    found = run_tests([tmp_path])
    assert found.faults == ()


def test_no_identity_of_the_history_is_in_the_rule(suggestion: Suggestion) -> None:
    for secret in SECRETS:
        assert secret not in suggestion.text.replace("someone@mail.example", "")


def test_the_rule_decides_the_payments_that_were_counted(
    suggestion: Suggestion, table: PaymentTable, history: Path
) -> None:
    rule = read_file(suggestion.text.encode(), KnownNames()).program
    assert isinstance(rule, Rule)
    candidate = candidate_of(rule, Account(0, "files", 0))
    decided = {
        each.id: each.now.condition
        for each in try_candidate(candidate, file_history([history], rule, {}), 0)
        if isinstance(each, ReplayedPayment)
    }
    later = set(table.ids[int(0.8 * len(table)) :])
    bad = {id_ for id_, fraud in zip(table.ids, table.fraud, strict=True) if fraud}
    met = {id_ for id_, condition in decided.items() if condition is not None} & later
    assert len(met & bad) == suggestion.together.stopped
    assert len(met - bad) == suggestion.together.people


def test_labels_that_say_nothing_suggest_nothing(table: PaymentTable) -> None:
    shuffled = np.random.default_rng(3).permutation(table.fraud)
    blind = PaymentTable(
        **{
            **{name: getattr(table, name) for name in PaymentTable.__dataclass_fields__},
            "fraud": shuffled,
        }
    )
    assert suggest(blind, AIMS, "suggested", "deny", untold).conditions == ()


def test_what_one_condition_would_have_stopped_is_left_to_others_when_it_does_not_hold() -> None:
    fraud = np.arange(100) < 40
    wide, narrow = np.arange(100) < 40, np.arange(100) < 30
    atoms = [
        Atom(name, SuggestionColumn(name, name, name), held)
        for name, held in (("wide", wide), ("narrow", narrow))
    ]
    space = SearchSpace(atoms, np.arange(100), fraud, np.arange(40))
    found = cover(space, SearchAims(), 0.0, lambda each, _before: each.atoms != (0,), untold)
    assert [each.atoms for each in found.taken] == [(1,)]
    assert [each.atoms for each in found.dropped] == [(0,)]


def test_what_only_a_loud_campaign_pays_for_does_not_hold() -> None:
    fraud = np.arange(1000) < 200
    met = np.arange(1000) < 205
    assert holds_when_quiet(met, fraud, quiet=0.2, precision=0.9)
    assert not holds_when_quiet(met, fraud, quiet=0.02, precision=0.9)
    assert holds_when_quiet(met & fraud, fraud, quiet=0.0, precision=0.9)
    assert not holds_when_quiet(met & ~met, fraud, quiet=0.2, precision=0.9)


@given(st.data())
def test_what_holds_when_fraud_is_thin_holds_when_there_is_more(data: Any) -> None:
    count = data.draw(st.integers(1, 60))
    flags = st.lists(st.booleans(), min_size=count, max_size=count).map(np.array)
    met, fraud = data.draw(flags), data.draw(flags)
    thin, more = sorted(data.draw(st.tuples(st.integers(0, 100), st.integers(0, 100))))
    if holds_when_quiet(met, fraud, thin / 100, 0.9):
        assert holds_when_quiet(met, fraud, more / 100, 0.9)


def test_the_quietest_quarter_is_found_among_eighths_of_the_payments() -> None:
    shares = np.array([5, 1, 9, 9, 3, 9, 9, 9])
    fraud = (np.arange(10) < shares[:, np.newaxis]).ravel()
    assert quiet_share(fraud) == pytest.approx(0.2)
    assert quiet_share(fraud[:3]) == 1


def test_what_is_left_out_is_read_by_no_condition(table: PaymentTable) -> None:
    without = families() - {"amount"}
    assert {atom.column.family for atom in atoms_of(table, 1, without)} == {"amount"}


def test_payments_without_a_known_outcome_are_set_aside_and_counted(history: Path) -> None:
    known = labels_known({"f-0-0": "unsure", "h-1": "unsure"})
    table = read_files([history], 0, known, untold)
    assert table.set_aside == {"unsure": 2}
    assert not {"f-0-0", "h-1"} & set(table.ids)


def test_labels_are_read_however_lines_say_them(
    history: Path, table: PaymentTable, tmp_path: Path
) -> None:
    lines = []
    for line in map(json.loads, history.read_text().splitlines()):
        lines.append(line)
        match line:
            case {"payment": payment, "label": 1} if len(lines) % 2:
                del line["label"]
                lines.append({"label": {"payment": payment["id"], "label": "fraud"}})
            case {"payment": payment}:
                payment["metadata"] = {"note": "other\u2028lines"}
    unnamed = next(line["payment"] for line in lines if line.get("label") == 1)
    lines = [line for line in lines if line.get("update", {}).get("id") != unnamed["id"]]
    del unnamed["id"]
    path = tmp_path / "history.jsonl"
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    path.write_text(text, encoding="utf-8-sig")
    again = read_files([path], 0, labels_known({}), untold)
    assert again.fraud.tolist() == table.fraud.tolist()


def test_a_score_stands_in_for_labels_only_where_it_is_recorded(history: Path) -> None:
    with pytest.raises(NothingToLearnError, match="no fraud"):
        read_files([history], 0, labels_by_score(85), untold)


def test_payments_are_one_incident_when_something_links_them_within_hours() -> None:
    linked = incidents(
        [0, 1, 2, 7 * HOUR, 20 * HOUR],
        [("a", None), ("b", "x"), ("a", "x"), (None, "y"), ("a", "y")],
    )
    assert len(set(linked[:3].tolist())) == 1
    assert len(set(linked.tolist())) == 3


@given(st.integers(0, 400), st.integers(0, 400))
def test_a_bound_of_a_share_lies_on_its_side_of_the_share(hits: int, others: int) -> None:
    of = hits + others
    low, high = wilson(hits, of), wilson(hits, of, 1)
    assert 0 <= low <= high <= 1
    if of:
        assert low - 1e-9 <= hits / of <= high + 1e-9


@given(st.data())
def test_what_is_taken_is_counted_as_a_plain_count_does(data: Any) -> None:
    count = data.draw(st.integers(8, 120))
    flags = st.lists(st.booleans(), min_size=count, max_size=count).map(np.array)
    fraud = data.draw(flags)
    atoms = [
        Atom(f"a{number}", SuggestionColumn(f"a{number}", f"a{number}", f"f{number}"), held)
        for number, held in enumerate(data.draw(st.lists(flags, min_size=1, max_size=6)))
    ]
    space = SearchSpace(atoms, np.arange(count), fraud, np.arange(int(fraud.sum())))
    aims = SearchAims(price=1, precision=0.1, people=0.5, incidents=1)
    hit = np.zeros(count, bool)
    held = data.draw(st.lists(st.booleans(), min_size=15, max_size=15))
    found = cover(space, aims, 0.0, lambda _each, _before: held.pop(), untold)
    for taken in found.taken:
        met = np.logical_and.reduce([atoms[index].holds for index in taken.atoms])
        bad, good = int((met & fraud).sum()), int((met & ~fraud).sum())
        assert int(np.bitwise_count(taken.fraud).sum()) == bad
        assert int(np.bitwise_count(taken.honest).sum()) == good
        hit |= met
    assert (hit & ~fraud).sum() <= 0.5 * (~fraud).sum()
    assert not {each.atoms for each in found.taken} & {each.atoms for each in found.dropped}


def test_it_is_proved_beside_what_is_active_and_taken_through_later_time(
    suggestion: Suggestion, history: Path
) -> None:
    rule = read_file(suggestion.text.encode(), KnownNames()).program
    assert isinstance(rule, Rule)

    def examined(active: list[Rule]) -> Suggestion:
        return examine(
            suggestion,
            active,
            lambda made, since: backtest_files([history], made, {}, since, {}, untold),
        )

    alone = examined([])
    assert {(each.reached, each.beyond) for each in alone.proved} == {("proved", "proved")}
    assert alone.backtest is not None
    met = sum(each.now.payments for each in alone.backtest.conditions if each.condition)
    assert met == suggestion.together.stopped + suggestion.together.people
    assert {each.beyond for each in examined([rule]).proved} == {"refuted"}
