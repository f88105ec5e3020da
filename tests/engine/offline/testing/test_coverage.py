"""Coverage tells what no test looked at."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from tollkeeper.api.terminal.coverage import as_html, as_json, as_text
from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.coverage import FileCoverage, coverage, marks, percent
from tollkeeper.engine.offline.testing.files import library_of, load_file
from tollkeeper.grammar.program import EventType, Rule
from tollkeeper.tests.engine.offline.testing.conftest import Write

RULE = """rule example
  let large = amount * 2
  condition first when amount > 10 and (currency == "EUR" or score > 0.5) then deny
  condition second when not (user.id is present and large < 4) then challenge
  condition third when any(transactions where status == "failed" and duration > 1) then deny
"""
TESTS = {
    "a": 'given amount = 11, currency = "EUR" expect deny by first',
    "b": 'given amount = 11, currency = "USD", score = 0.6 expect deny by first',
    "c": 'given amount = 9, currency = "EUR" expect challenge by second',
    "d": 'given amount = 1, user.id = "u" expect default',
    "e": 'given amount = 11, currency = "USD" expect challenge by second',
    "f": "given amount = 1 expect challenge by second",
    "g": 'given amount = 3, user.id = "u" expect challenge by second',
}


def covered_by(write: Write, names: str) -> FileCoverage:
    tests = "".join(f'test "{name}" {TESTS[name]}\n' for name in names)
    path = write("example.rule", RULE + tests)
    file = load_file(path, library_of([path]))
    assert isinstance(file.program, Rule)
    seen = set()
    for test in file.program.tests:
        outcome = run_test(file, test)
        assert outcome.failures == ()
        seen.update(marks(outcome.ran))
    return coverage("example.rule", file, seen)


def missed(covered: FileCoverage) -> list[str]:
    return [f"{goal.mark.seen} {covered.file.written(goal.span)}" for goal in covered.missed]


def test_without_tests_nothing_is_seen(write: Write) -> None:
    covered = covered_by(write, "")
    assert len(covered.missed) == len(covered.goals) == 12
    assert percent([covered]) == 0


def test_an_operand_matters_when_it_alone_decides(write: Write) -> None:
    assert missed(covered_by(write, "ae")) == [
        "mattered amount > 10",
        "mattered score > 0.5",
        "refused condition second",
        "mattered user.id is present",
        "mattered large < 4",
        "met condition third",
        "refused condition third",
    ]


def test_only_a_third_condition_that_no_payment_can_meet_here_is_left(write: Write) -> None:
    assert missed(covered_by(write, "abcdefg")) == ["met condition third"]


@given(st.text("abcdefg", max_size=7), st.sampled_from("abcdefg"))
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_one_more_test_never_covers_less(write: Write, names: str, more: str) -> None:
    names = "".join(dict.fromkeys(names))
    fewer = {goal.mark for goal in covered_by(write, names).missed}
    assert {
        goal.mark for goal in covered_by(write, "".join(dict.fromkeys(names + more))).missed
    } <= fewer


def test_a_monitor_is_to_be_met_and_refused(write: Write) -> None:
    path = write(
        "sign_in.rule",
        """event sign_in
  field user: string required
  field address: ip
  metric tries = count(events by user over 1h)
  monitor guessing when tries >= 3 and address in ["198.51.100.0/24"] by user
  monitor unmet when tries > 100
  test "from there" given user = "u", tries = 3, address = "198.51.100.7" expect alert guessing
  test "from elsewhere" given tries = 3, address = "203.0.113.7" expect no alert
""",
    )
    file = load_file(path, library_of([path]))
    assert isinstance(file.program, EventType)
    seen = set()
    for test in file.program.tests:
        outcome = run_test(file, test)
        assert outcome.failures == ()
        seen.update(marks(outcome.ran))
    assert missed(coverage("sign_in.rule", file, seen)) == [
        "mattered tries >= 3",
        "met monitor unmet",
    ]


def test_a_file_with_nothing_to_see_is_covered(write: Write) -> None:
    path = write("shared.rule", "definitions shared let x = amount > 1 or amount < 0.5")
    file = load_file(path, library_of([path]))
    assert percent([]) == 100
    assert [goal.name for goal in coverage("shared.rule", file, set()).goals] == ["x", "x"]


def test_a_condition_is_marked_with_its_whole_name_also_if_its_keyword_holds_it(
    write: Write,
) -> None:
    path = write("short.rule", "rule short condition on when amount > 1 then deny")
    file = load_file(path, library_of([path]))
    marked = {file.written(goal.span) for goal in coverage("short.rule", file, set()).goals}
    assert marked == {"condition on"}


def test_the_report_in_words(write: Write, snapshot: SnapshotAssertion) -> None:
    assert as_text([covered_by(write, "a")]) == snapshot


def test_the_report_for_a_program(write: Write) -> None:
    report = json.loads(as_json([covered_by(write, "abcdefg")]))
    (file,) = report["files"]
    assert report["percent"] == file["percent"] == 91.7
    assert file["missed"] == [
        {
            "line": 5,
            "column": 3,
            "end_line": 5,
            "end_column": 18,
            "in": "third",
            "missed": "met",
            "text": "condition third",
        }
    ]


@pytest.mark.parametrize("names", ["", "a", "abcdefg"])
def test_the_page_shows_the_rule_as_it_was_written(write: Write, names: str) -> None:
    covered = covered_by(write, names)
    page = as_html([covered])
    (shown,) = re.findall("<pre>(.*)</pre>", page, re.DOTALL)
    assert unescape(re.sub("<[^>]*>", "", shown)) == covered.file.text
    assert shown.count("<mark") == shown.count("</mark>") == len({g.span for g in covered.goals})
    assert "://" not in page
