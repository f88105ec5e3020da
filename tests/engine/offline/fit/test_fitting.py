"""Fitting: a scorecard's text and a labelled history in, the text with new numbers out."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from tollkeeper.api.terminal.traffic import ONE_DAY, label_items, traffic
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.examples import examples_in_file
from tollkeeper.engine.offline.fit.fitting import FitError, fit_calibration, fit_weights
from tollkeeper.engine.offline.testing.streams import StreamError
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames

START = datetime(2025, 6, 2, tzinfo=UTC)
SCORECARD = """\
# Kept: this comment.
scorecard mine "Kept title"
  baseline 0.5   # a guess

  let tries = count(payments by user.id over 1h)

  signal many_tries "Tries of a user"
    adds 0.2 * min(tries - 1, 5)      # kept, too
  signal dear "A large amount"
    adds -1.0 when amount > 100 and currency == "BRL"
  signal unseen "Nobody does it"
    adds 2.50 when amount > 999999 and currency == "BRL"
  signal whole
    adds tries / 1000

  test "kept"
    given amount = 5.00
    expect score >= 0.1
"""


def payment(number, user, amount, label):
    at = START + timedelta(seconds=10 * number)
    sent = {
        "id": f"p-{number}",
        "type": "purchase",
        "currency": "BRL",
        "amount": amount,
        "timestamp": at.isoformat(),
        "method": {"type": "pix"},
        "merchant": {"id": "m-1"},
        "user": {"id": user},
    }
    return {"payment": sent, "label": label}


def history(folder: Path, lines) -> Path:
    path = folder / "labelled.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    return path


def shoppers(count=600):
    """People pay once, one in five payments is a bot's that tries again and again."""
    chance = random.Random(1)
    for number in range(count):
        bot = chance.random() < 0.2
        user = "bot" if bot else f"u-{number}"
        yield payment(number, user, chance.choice((5, 500)), int(bot))


def fitted(folder: Path, lines, text=SCORECARD, progress=lambda _share: None):
    program = read_file(text.encode(), KnownNames()).program
    examples = examples_in_file(program, history(folder, lines), progress, Environment())
    return fit_weights(text, program, examples)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return fitted(tmp_path_factory.mktemp("history"), shoppers())


def test_only_the_numbers_change(found):
    changed = [
        (before, after)
        for before, after in zip(SCORECARD.splitlines(), found.text.splitlines(), strict=True)
        if before != after
    ]
    assert [re.sub(r"-?\d+\.\d+", "#", before, count=1) for before, _ in changed] == [
        "  baseline #   # a guess",
        "    adds # * min(tries - 1, 5)      # kept, too",
        '    adds # when amount > 100 and currency == "BRL"',
    ]
    for before, after in changed:
        number = r"-?\d+(\.\d+)?"
        assert re.sub(number, "#", before, count=1) == re.sub(number, "#", after, count=1)


def test_the_new_text_says_what_the_result_says(found):
    program = read_file(found.text.encode(), KnownNames()).program
    assert program.baseline == found.baseline_after
    told = {each.signal: each.after for each in found.weights}
    assert f"adds {told['many_tries']:g} * min" in found.text
    assert set(told) == {"many_tries", "dear", "unseen"}


def test_a_weight_of_hundreds_keeps_its_zeros(tmp_path):
    large = SCORECARD.replace("adds 2.50 when", "adds 2000 when")
    found = fitted(tmp_path, shoppers(), large)
    assert "adds 2000 when" in found.text
    assert found.weights[2].after == 2000


def test_what_bots_do_weighs_more_and_calibration_gets_better(found):
    weights = {each.signal: each for each in found.weights}
    assert weights["many_tries"].after > weights["many_tries"].before
    assert weights["dear"].before < weights["dear"].after < 0
    assert found.after.calibration_error < found.before.calibration_error
    assert found.after.roc_auc > 0.95
    assert found.learned == 420
    assert found.judged == 180


def test_a_signal_that_nobody_met_keeps_its_weight(found):
    weights = {each.signal: each for each in found.weights}
    assert weights["unseen"].met == 0
    assert weights["unseen"].after == weights["unseen"].before


def test_what_comes_later_is_not_known_earlier(tmp_path):
    lines = list(shoppers())
    later = [
        payment(600 + number, line["payment"]["user"]["id"], 5, None)
        for number, line in enumerate(lines)
    ]
    assert fitted(tmp_path, lines).text == fitted(tmp_path, [*lines, *later]).text


def test_progress_is_told_up_to_the_whole(tmp_path):
    told = []
    fitted(tmp_path, shoppers(), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.parametrize(
    ("lines", "part"),
    [
        ([], "first 70 %"),
        ([payment(n, "u", 5, 0) for n in range(20)], "first 70 %"),
        ([payment(n, "u", 5, int(n == 1)) for n in range(20)], "last 30 %"),
    ],
)
def test_a_history_of_one_label_is_refused(tmp_path, lines, part):
    with pytest.raises(FitError) as raised:
        fitted(tmp_path, lines)
    assert str(raised.value) == f"the {part} of the labelled payments need both labels, 0 and 1"


def test_an_update_of_an_unknown_payment_is_refused_with_its_line(tmp_path):
    lines = [payment(0, "u", 5, 0), {"update": {"id": "p-9", "status": "failed"}}]
    with pytest.raises(StreamError, match="line 2: there is no payment `p-9` before this"):
        fitted(tmp_path, lines)


def test_a_second_payment_of_one_id_is_refused_with_its_line(tmp_path):
    with pytest.raises(StreamError, match="line 2: there is a payment `p-0` already"):
        fitted(tmp_path, [payment(0, "u", 5, 0), payment(0, "u", 5, 0)])


def test_the_shipped_scorecard_can_be_fitted(tmp_path):
    shipped = Path(__file__).parents[4] / "rules" / "bot_behaviour.rule"
    plan = replace(ONE_DAY.scaled(0.05), bots=ONE_DAY.bots)
    found = fitted(tmp_path, label_items(traffic(9, START, plan), START), text=shipped.read_text())
    reading = read_file(found.text.encode(), KnownNames())
    assert [each for each in reading.diagnostics if each.severity == "error"] == []
    signs = [(each.before > 0) == (each.after > 0) for each in found.weights]
    assert all(signs)


def test_calibration_keeps_the_order_and_makes_a_score_come_true(tmp_path):
    text = SCORECARD.replace("adds tries / 1000", "curves tries rising { < 2: 0, else 0.5 }")
    text = text.replace("adds 0.2 *", "adds 6 *")
    program = read_file(text.encode(), KnownNames()).program
    path = history(tmp_path, shoppers())
    examples = examples_in_file(program, path, lambda _share: None, Environment())
    found = fit_calibration(text, program, examples)
    assert found.after.calibration_error < found.before.calibration_error
    assert found.after.roc_auc == pytest.approx(found.before.roc_auc)
    factors = {round(each.after / each.before, 2) for each in found.weights}
    assert factors == {3.0}
    assert not read_file(found.text.encode(), KnownNames()).diagnostics
    assert "rising { < 2: 0, else 1.5 }" in found.text


def test_a_signal_without_a_number_has_no_calibration(tmp_path):
    program = read_file(SCORECARD.encode(), KnownNames()).program
    path = history(tmp_path, shoppers())
    examples = examples_in_file(program, path, lambda _share: None, Environment())
    with pytest.raises(FitError, match="`whole` adds no number"):
        fit_calibration(SCORECARD, program, examples)
