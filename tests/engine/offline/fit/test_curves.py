"""Curves from labels: what they find, the bounds that they keep, and the text that comes of them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.curves import (
    MOST_ADDED,
    MOST_TAKEN,
    PENALTIES,
    Steps,
    estimate_curves,
    held_out_logits,
    reach,
)
from tollkeeper.engine.offline.fit.examples import examples_in_file
from tollkeeper.engine.offline.fit.fitting import FitError, fit_curves
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.checker.curves import MAX_CURVES
from tollkeeper.grammar.formatter import format_file

START = datetime(2025, 6, 2, tzinfo=UTC)
SCORECARD = """\
scorecard mine "Kept title"
  baseline 0.05  # a guess

  let payments_of_user = count(payments by user.id over 1h)
  let since_last = interval(payments by user.id)
  let of_merchant = count(payments by merchant.id over 30d)

  signal dear "A large amount"
    adds 1 when amount > 100 and currency == "BRL"

  signal own "The author's own steps"
    curves amount falling { < 10: 0, else -0.5 }

  test "kept"
    given amount = 5.00
    expect score < 0.9
"""


def lines(count=1000):
    """People pay now and then; bots pay again within seconds, in campaigns of a dozen."""
    chance = random.Random(2)
    for number in range(count):
        bot = number % 50 < 12
        user = f"bot-{number // 50}" if bot else f"u-{chance.randrange(100)}"
        at = START + timedelta(seconds=20 * number)
        sent = {
            "id": f"p-{number}",
            "type": "purchase",
            "currency": "BRL",
            "amount": chance.choice((5, 50)),
            "timestamp": at.isoformat(),
            "method": {"type": "pix"},
            "merchant": {"id": "m-1"},
            "user": {"id": user},
        }
        yield {"payment": sent, "label": int(bot)}


def fitted(folder, text=SCORECARD):
    path = folder / "labelled.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, lines())))
    program = read_file(text.encode(), KnownNames()).program
    examples = examples_in_file(program, path, lambda _share: None, Environment())
    return fit_curves(text, program, examples)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return fitted(tmp_path_factory.mktemp("curves"))


def test_the_new_text_is_a_scorecard_in_its_layout_with_the_author_kept(found, snapshot):
    assert found.text == format_file(found.text)
    read = read_file(found.text.encode(), KnownNames())
    assert "error" not in {each.severity for each in read.diagnostics}
    assert 'adds 1 when amount > 100 and currency == "BRL"' in found.text
    assert "falling { < 10: " in found.text
    assert found.text == snapshot


def test_what_labels_say_is_found_on_later_time_and_on_campaigns_never_learned_from(found):
    assert found.after.roc_auc > max(0.95, found.before.roc_auc)
    before, after = found.left_out
    assert after.roc_auc > max(0.95, before.roc_auc)
    assert "payments_of_user_by_labels" in {each.signal for each in found.curves}


def test_what_is_fitted_again_keeps_its_signals(found, tmp_path):
    again = fitted(tmp_path, found.text)
    signals = [line for line in found.text.splitlines() if line.startswith("  signal")]
    assert [line for line in again.text.splitlines() if line in signals] == signals


def test_a_scorecard_without_a_value_that_differs_is_refused(tmp_path):
    text = "scorecard mine\n  baseline 0.05\n"
    with pytest.raises(FitError, match="no curve has anything to read"):
        fitted(tmp_path, text)


curve_ways = st.sampled_from([(1,), (-1,), (1, -1)])


@given(
    st.lists(curve_ways, min_size=1, max_size=4),
    st.integers(0, 2**32),
    st.floats(-8, 8),
)
@settings(max_examples=25, deadline=None)
def test_curves_always_keep_to_their_ways_and_their_reach(ways, seed, strength):
    chance = np.random.default_rng(seed)
    curves = [
        Steps(chance.integers(0, 6, 200), 4, each, chance.integers(5), False) for each in ways
    ]
    author = chance.normal(-2, 1, 200)
    labels = (chance.random(200) < expit(author + strength * (curves[0].places > 2))).astype(float)
    estimated = estimate_curves(curves, author, labels, min(PENALTIES))
    taken, added = reach(estimated.amounts)
    assert taken <= MOST_TAKEN
    assert added <= MOST_ADDED
    for curve, amounts in zip(curves, estimated.amounts, strict=True):
        rises = np.diff(amounts.steps)
        assert curve.ways != (1,) or (rises >= 0).all()
        assert curve.ways != (-1,) or (rises <= 0).all()
        assert amounts.steps[curve.common] == 0
    moved = estimated.added(curves) - estimated.baseline
    assert (moved >= -taken - 1e-9).all()
    assert (moved <= added + 1e-9).all()


def test_without_a_second_campaign_nothing_is_left_out():
    curves = [Steps(np.array([0, 0, 1, 1]), 1, (1,), 0, False)]
    labels = np.array([0.0, 0, 1, 1])
    assert held_out_logits(curves, np.zeros(4), labels, np.array([0, 1, 2, 2]), 30) is None


def labelled_steps(chance):
    """The step of each of 2,000 payments on one curve, and labels: bots are mostly on the last step."""
    labels = (chance.random(2000) < 0.1).astype(float)
    places = np.where(
        labels > 0, chance.choice((1, 3), 2000, p=(0.2, 0.8)), chance.integers(0, 3, 2000)
    )
    return places, labels


def test_inputs_that_say_the_same_share_what_they_add():
    places, labels = labelled_steps(np.random.default_rng(1))
    curves = [Steps(places, 3, (1,), 1, False)] * 2
    one, other = estimate_curves(curves, np.full(2000, -2.0), labels, max(PENALTIES)).amounts
    assert one.steps[-1] > 0.1
    assert one.steps == pytest.approx(other.steps, abs=0.02)


@pytest.mark.parametrize("way", [1, -1])
def test_a_curve_that_adds_to_bots_takes_nothing_from_the_step_that_most_people_are_on(way):
    places, labels = labelled_steps(np.random.default_rng(2))
    ordered = places if way > 0 else 3 - places
    curve = Steps(ordered, 3, (way,), 1 if way > 0 else 2, False)
    (found,) = estimate_curves([curve], np.full(2000, -2.0), labels, min(PENALTIES)).amounts
    assert found.steps[curve.common] == 0
    assert found.steps.max() > 1
    assert found.steps[::-1][0 if way > 0 else -1] == found.steps.max()


def test_no_more_curves_add_anything_than_a_file_may_have_and_the_authors_stay():
    several = MAX_CURVES + 5
    numbers = np.arange(2000)
    labels = (numbers < 10 * several).astype(float)
    curves = [
        Steps(np.where((labels > 0) & (numbers % several == each), 3, 1), 3, (1,), 1, False)
        for each in range(several)
    ]
    curves[-1] = curves[-1]._replace(authored=True)
    amounts = estimate_curves(curves, np.full(2000, -2.0), labels, min(PENALTIES) / 8).amounts
    assert sum(each.range() > 0 for each in amounts) == MAX_CURVES
    assert amounts[-1].range() > 0
