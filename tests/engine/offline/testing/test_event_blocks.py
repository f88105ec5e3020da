"""A test of an event type says which alerts an event raises."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tollkeeper.engine.offline.testing.cases import case_text, decide_case, load_case
from tollkeeper.engine.offline.testing.files import library_of
from tollkeeper.engine.offline.testing.outcomes import BlockError
from tollkeeper.tests.engine.offline.testing.conftest import Check, Write, payment

SIGN_INS = """event sign_in "Sign-ins"
  field user_id: string required
  field result: "success" | "failure" required
  field address: ip
  metric failures = count(events by user_id over 1h where result == "failure")
  monitor brute_force when failures >= 3
  monitor elsewhere when address in ["198.51.100.0/24"]
"""


def sign_in(at: str, result: str = "failure") -> dict[str, Any]:
    data = {"user_id": "u", "result": result}
    return {"event": {"type": "sign_in", "timestamp": f"2026-01-01T{at}Z", "data": data}}


def test_a_monitor_without_a_key_says_why_it_raises_nothing(check: Check) -> None:
    text = SIGN_INS.replace("failures >= 3", "failures >= 3 by address")
    (failure,) = check(
        text + 'test "no address" given failures = 3 expect alert brute_force'
    ).failures
    assert failure.reasons[0] == "monitor brute_force is met, but its key is missing"


@pytest.mark.parametrize(
    ("history", "test"),
    [
        ([], 'given user_id = "u" expect no alert'),
        ([], "given failures = 3 expect alert brute_force expect failures == 3"),
        ([], 'given address = "198.51.100.7" expect alert elsewhere expect no alert brute_force'),
        (["11:30:00"], 'given user_id = "u", result = "failure" expect no alert'),
        (
            ["11:20:00", "11:30:00"],
            'given user_id = "u", result = "failure" expect alert brute_force expect failures == 3',
        ),
        (["11:20:00", "11:30:00"], 'given user_id = "u", result = "success" expect no alert'),
        (["11:20:00", "11:30:00"], 'given user_id = "v", result = "failure" expect no alert'),
        (
            ["11:10:00", "11:20:00", "11:30:00"],
            'given user_id = "u", result = "failure" expect no alert expect failures == 4',
        ),
    ],
)
def test_an_alert_is_raised_when_a_monitor_turns_to_met(
    check: Check, write: Write, history: list[str], test: str
) -> None:
    write("history.jsonl", [sign_in(at) for at in history])
    text = f'{SIGN_INS} test "it" given history "history.jsonl" {test}'
    assert check(text).failures == ()


def test_an_event_comes_from_a_file(check: Check, write: Write) -> None:
    write("event.json", [sign_in("12:00:00")])
    text = f'{SIGN_INS} test "it" given event "event.json" expect failures == 1'
    assert check(text).failures == ()


def test_monitors_of_payments_look_at_payments(check: Check, write: Write) -> None:
    write("history.jsonl", [{"payment": payment("p-1", "11:30:00", user={"id": "u"})}])
    text = (
        "event payment\nmonitor busy when count(payments by user.id over 1h) > 1\n"
        'test "it" given history "history.jsonl" given user.id = "u" expect alert busy'
    )
    assert check(text).failures == ()


def test_a_failure_tells_what_the_monitors_read(
    check: Check, write: Write, snapshot: SnapshotAssertion
) -> None:
    write("history.jsonl", [sign_in(f"11:{minute}:00") for minute in (10, 20, 30)])
    text = (
        f'{SIGN_INS} test "it" given history "history.jsonl"\n'
        'given user_id = "u", result = "failure" expect alert brute_force'
    )
    assert "\n\n".join(map(str, check(text).failures)) == snapshot


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"type": "sign_out", "data": {}}, "line 1: there is no event type `sign_out`"),
        ({"type": "sign_in", "data": {"user_id": 1}}, "line 1: `event.data.user_id`: "),
    ],
)
def test_an_event_that_does_not_fit_is_refused(
    check: Check, write: Write, event: dict[str, Any], words: str
) -> None:
    write("history.jsonl", [{"event": event}])
    with pytest.raises(BlockError) as error:
        check(f'{SIGN_INS} test "it" given history "history.jsonl" expect no alert')
    assert words in str(error.value)


def test_a_rule_reads_the_metrics_of_events_in_tests_and_cases(write: Write) -> None:
    write("sign_in.rule", SIGN_INS)
    write(
        "checkout.rule",
        "rule checkout condition attacked when events.sign_in.failures[user.id] > 1 then deny",
    )
    lines = [
        sign_in("11:20:00"),
        sign_in("11:30:00"),
        {"payment": payment("p-1", user={"id": "u"})},
        {"payment": payment("p-2", user={"id": "v"})},
    ]
    case = load_case(
        write("cases/day.jsonl", lines), library_of([write("history.jsonl", lines[:2]).parent])
    )
    decided = decide_case(case)
    assert [each.decision.action for each in decided] == ["deny", "allow"]
    assert "event sign_in line 1" in case_text(case, decided)


def test_what_looks_at_earlier_events_leaves_out_the_one_that_arrives(check: Check) -> None:
    text = """event sign_in
  field user: string required
  metric gap = interval(events by user)
  metric known = age(events by user)
  monitor fast when gap < 5s or known < 5s
  monitor again when count(earlier events by user over 1h) > 0
  test "the first event has nothing before it"
    given user = "u"
    expect no alert
    expect gap is missing
    expect known is missing
"""
    assert check(text).failures == ()
