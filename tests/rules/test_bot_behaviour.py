"""The shipped scorecard: every signal explained and tested, bots told from people as it claims."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

import msgspec
import pytest

from tollkeeper.api.terminal.traffic import ONE_DAY, label_items, traffic
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.labelled import read_labelled
from tollkeeper.engine.offline.fit.replay import score_history
from tollkeeper.engine.offline.fit.weighed import weights
from tollkeeper.engine.offline.testing.coverage import coverage, marks
from tollkeeper.engine.programs.load import SHIPPED, shipped_program, shipped_scorecard
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.tests.rules.running import run_file

START = datetime(2025, 6, 2, tzinfo=UTC)
PLAN = replace(ONE_DAY.scaled(0.1), bots=ONE_DAY.bots)
SEED = 77
DOCS = (SHIPPED.parent / "docs" / "scorecard.md").read_text()
SIGNALS = shipped_program().signals
WEIGHTS = weights(shipped_program())


@pytest.fixture(scope="module")
def scores():
    """The scores (hundredths) of a day of a small shop under attack, by kind."""
    items = list(traffic(SEED, START, PLAN))
    kinds = {
        item.body["payment"]["id"]: (item.bot, item.kind)
        for item in items
        if "payment" in item.body
    }
    lines = map(msgspec.json.encode, label_items(items, START))

    found = defaultdict(list)
    for each in score_history(read_labelled(lines), shipped_scorecard(), Environment()):
        found[kinds[each.facts.payment.id]].append(each.score)
    return found


def share(scores, threshold):
    return sum(score >= threshold for score in scores) / len(scores)


def of(scores, bot):
    return [score for (is_bot, _), several in scores.items() if is_bot == bot for score in several]


@pytest.mark.parametrize("signal", SIGNALS, ids=lambda signal: signal.name)
def test_every_signal_has_a_title_that_a_person_understands(signal):
    assert signal.title is not None
    assert signal.title[0].isupper()


@pytest.mark.parametrize(
    ("signal", "weight"),
    list(zip(SIGNALS, WEIGHTS, strict=True)),
    ids=[each.name for each in SIGNALS],
)
def test_the_docs_give_the_reason_of_every_weight(signal, weight):
    row = re.search(rf"^\| `{signal.name}` \| (\S+) \|", DOCS, re.MULTILINE)
    assert row is not None
    assert float(row[1].replace("−", "-")) == weight.value


def test_every_signal_is_met_and_refused_by_a_test_of_the_file():
    path = SHIPPED / "bot_behaviour.rule"
    file, runs = run_file(path)
    seen = {mark for each in runs for mark in marks(each.ran)}
    missed = coverage(path.name, file, seen).missed
    assert [goal.name for goal in missed if goal.mark.seen != "mattered"] == []


def test_scripts_and_headless_browsers_are_found_from_the_first_payment(scores):
    for family in ("naive_script", "headless_browser"):
        assert share(scores[True, family], Thresholds().challenge) > 0.75


def test_most_payments_of_bots_are_challenged(scores):
    assert share(of(scores, bot=True), Thresholds().challenge) > 0.6


def test_few_people_are_challenged_and_hardly_anyone_is_denied(scores):
    people = of(scores, bot=False)
    assert share(people, Thresholds().challenge) < 0.015
    assert share(people, Thresholds().deny) < 0.003


@pytest.mark.parametrize(
    "kind", ["family", "office", "carrier", "app", "flash_sale", "renewal", "traveller"]
)
def test_what_many_people_share_makes_no_bot_of_them(scores, kind):
    assert median(scores[False, kind]) <= 3
    assert share(scores[False, kind], Thresholds().challenge) < 0.03
