"""What the account can change is refused where records of history are looked at, and in keys."""

from __future__ import annotations

import pytest

from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.fixes import apply_fixes

RULE = "rule a\n{}\n  condition b when {} then deny\n"
ZONE_LET = "  let by_night = hour(timestamp) > 22"


@pytest.mark.parametrize(
    ("lets", "when"),
    [
        ("", "count(payments by user.id over 1h where hour(timestamp) > 3) > 3"),
        ("", "distinct(weekday(timestamp) of payments by user.id over 1h) > 3"),
        ("", "count(payments by weekday(timestamp) over 1h) > 3"),
        (ZONE_LET, "count(payments by user.id over 1h where by_night) > 3"),
    ],
)
def test_the_accounts_time_zone_is_refused_in_an_aggregate(lets: str, when: str) -> None:
    found = read_file(RULE.format(lets, when).encode(), KnownNames()).diagnostics
    assert "not-in-history" in {each.code for each in found}


@pytest.mark.parametrize("key", ["weekday(timestamp)", "busy", 'amount_in("USD")'])
def test_a_monitors_key_reads_nothing_that_changes(key: str) -> None:
    text = f"""event payment
  metric busy = count(payments by user.id over 1h)
  monitor m when busy > 3 by {key} every 10m
"""
    found = read_file(text.encode(), KnownNames()).diagnostics
    assert "not-in-history" in {each.code for each in found}


def test_a_time_zone_that_is_named_is_allowed_and_is_the_fix() -> None:
    text = RULE.format("", "count(payments by user.id over 1h where hour(timestamp) > 3) > 3")
    (found,) = read_file(text.encode(), KnownNames()).diagnostics
    mended = apply_fixes(text, found.fixes)
    assert 'hour(timestamp, "UTC")' in mended
    assert read_file(mended.encode(), KnownNames()).diagnostics == ()
