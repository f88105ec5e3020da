"""What authors write out of habit: what is said of it, and what the first fix makes of it."""

from __future__ import annotations

import pytest

from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.fixes import apply_fixes
from tollkeeper.grammar.render import Source, as_text

AGE = "age(payments by user.id)"
CONDITIONS = {
    "includes": 'user.email includes "x"',
    "like": 'user.email like "x%"',
    "like_end": 'user.email like "%x"',
    "like_both": 'user.email LIKE "%x%"',
    "like_pattern": 'user.email like "x_y%"',
    "round_list": 'type in ("purchase","verify")',
    "round_list_of_one": 'type in ("verify")',
    "decimal_comma": "score > 9,99",
    "percent": "score > 50%",
    "currency": "amount > 500 EUR",
    "spelled_unit": f"{AGE} > 1hour or {AGE} > 3d",
    "minutes": "count(payments by user.id over 60min) > 2",
    "week": "count(payments by user.id over 1w) > 2",
    "apart": "count(payments by user.id over 1 h) > 2",
    "seconds": f"{AGE} >= 60",
    "quoted_duration": f'{AGE} >= "7d"',
    "header": 'device.headers.user_agent == "x"',
    "transactions": 'transactions.status == "declined"',
    "past_midnight": "hour(timestamp) between 22 and 5",
    "downwards": "score between 0.9 and 0.1",
    "range": "score > 1",
    "decimals": "score == 0.555",
}
FILES = {
    "comment": "rule r\n  // hi\n  condition c when score > 0.5 then deny\n",
    "no_header": "condition c when score > 0.5 then deny\n",
    "quoted_action": 'rule r\n  condition c when score > 0.5 then "deny"\n',
    "file_and_values": 'rule r\n  test "t" given history "f", amount = 5.00 expect default\n',
}
TEXTS = {
    name: f"rule r\n  condition c when {written} then deny\n"
    for name, written in CONDITIONS.items()
} | FILES


@pytest.mark.parametrize("name", TEXTS)
def test_a_habit_is_told_how_it_is_said_here(name, snapshot):
    text = TEXTS[name]
    found = [each for each in read_file(text.encode(), KnownNames()).diagnostics if each.help]
    fixed = apply_fixes(text, [fix for each in found for fix in each.fixes[:1]])
    assert f"{as_text(Source.of('habit.rule', text), found)}\nfixed:\n{fixed}" == snapshot


@pytest.mark.parametrize("name", sorted(TEXTS.keys() - {"like_pattern"}))
def test_the_first_fix_leaves_no_error(name):
    text = TEXTS[name]
    found = read_file(text.encode(), KnownNames()).diagnostics
    fixed = apply_fixes(text, [fix for each in found for fix in each.fixes[:1]])
    again = read_file(fixed.encode(), KnownNames()).diagnostics
    # `9,99` is past the score's range, whatever is meant.
    assert not [each for each in again if each.severity == "error"] or name == "decimal_comma"


def test_given_values_may_follow_a_file_on_one_line():
    text = 'rule r\n  condition c when score > 0.5 then deny\n  test "t" '
    text += 'given history "f" given amount = 5.00 expect deny\n'
    assert not [
        e for e in read_file(text.encode(), KnownNames()).diagnostics if e.severity == "error"
    ]
