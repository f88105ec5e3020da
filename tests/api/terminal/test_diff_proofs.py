"""`toll diff --prove`: what changed in meaning, and the payment that tells two rules apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tollkeeper.cli import main

RULE = """rule limits
  condition testing
    when amount < 10.00 and currency == "EUR"
    then deny
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.rule").write_text(RULE)
    return tmp_path


def diff(folder: Path, after: str, *options: str) -> Result:
    (folder / "b.rule").write_text(after)
    command = ["diff", str(folder / "a.rule"), str(folder / "b.rule"), *options]
    return CliRunner().invoke(main, command)


def test_a_changed_bound_is_shown_with_the_payment_that_it_decides_anew(folder: Path) -> None:
    drawn = diff(folder, RULE.replace("10.00", "10.01"), "--prove")
    assert drawn.exit_code == 1
    lines = drawn.stdout.splitlines()
    assert lines[0] == "changed condition `testing` threshold: 10.00 → 10.01"
    assert lines[1] == "✗ limits: the versions of `limits` decide this payment differently"
    assert 'given amount = 10.00, currency = "EUR"' in lines[3]
    assert "✓ limits: `testing` meets more than before, such as" in lines


def test_a_rewording_is_proved_to_decide_alike(folder: Path) -> None:
    reworded = RULE.replace("amount < 10.00 and", "not (amount >= 10.00) and")
    proved = diff(folder, reworded, "--prove", "--json")
    assert proved.exit_code == 0
    found = json.loads(proved.stdout)
    assert found["differences"] != []
    assert [(each["claim"], each["answer"]) for each in found["proofs"]] == [("same", "proved")]


def test_what_is_not_settled_ends_as_neither_alike_nor_different(folder: Path) -> None:
    text = RULE.replace("amount < 10.00 and", r"user.email matches /\bx\b/ and")
    (folder / "a.rule").write_text(text)
    unsettled = diff(folder, text.replace(r"\bx", r"\b[x]"), "--prove")
    assert (unsettled.exit_code, "not proved" in unsettled.stdout) == (3, True)
    assert diff(folder, RULE).exit_code == 0


def test_only_rules_are_proved(folder: Path) -> None:
    (folder / "a.rule").write_text("definitions d\n  let small = amount < 5.00\n")
    refused = diff(folder, "definitions d\n  let small = amount < 6.00\n", "--prove")
    assert refused.exit_code == 2
    assert "only rules can be proved to decide alike" in refused.stderr


def test_payments_that_refute_something_are_added_to_a_file_once_and_each_by_its_own_name(
    folder: Path,
) -> None:
    file = folder / "a.rule"
    promises = ('"one" when amount < 3.00 never deny', '"two" when currency == "EUR" always allow')
    file.write_text(RULE + "".join(f"  must {each}\n" for each in promises))
    proves = ["prove", str(file), "--as-test", str(file)]
    said = [toll(*proves).stderr.splitlines()[0] for _ in range(2)]
    assert said == [f"{count} written to {file}" for count in ("2 tests", "0 tests")]
    assert [line for line in file.read_text().splitlines() if "test " in line] == [
        '  test "counterexample"',
        '  test "counterexample 2"',
    ]


def test_the_thresholds_of_an_account_count(folder: Path) -> None:
    text = 'rule limits\n  must "low scores pass" when score < 0.50 never deny\n'
    (folder / "low.rule").write_text(text)
    data = ["--data", str(folder / "data")]
    shop = ["--account", "shop", *data]
    assert toll("accounts", "create", "shop", *data).exit_code == 0
    changed = ["thresholds.challenge=0.2", "thresholds.deny=0.3"]
    assert toll("accounts", "set", "shop", *changed, *data).exit_code == 0
    proves = ["prove", str(folder / "low.rule")]
    assert [toll(*proves).exit_code, toll(*proves, *shop).exit_code] == [0, 1]
    refused = toll("publish", str(folder / "low.rule"), *shop)
    assert (refused.exit_code, "broken-must" in refused.stderr) == (1, True)
    (folder / "a.rule").write_text("rule limits\n")
    drawn = [
        diff(folder, "rule limits\n  otherwise allow\n", "--prove", *given).stdout
        for given in ([], shop)
    ]
    assert ["score = 0.50" in drawn[0], "score = 0.20" in drawn[1]] == [True, True]


def toll(*given: str) -> Result:
    return CliRunner().invoke(main, given)
