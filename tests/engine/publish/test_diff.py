"""What changed between two versions, in meaning terms."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tollkeeper.api.terminal.rendering import draw_differences
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.publish.diff import diff
from tollkeeper.engine.registry.programs import encode_program
from tollkeeper.engine.registry.state import Version
from tollkeeper.engine.registry.versions import program_kind
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import EventType

OLD = """rule checkout "Web shop"
  list trusted: string
  let uses = count(payments by user.id over 1h)
  condition renewal "Renewals" when device is missing and merchant.id in @trusted then allow
  condition busy when uses > 2 and amount < 10.00 then deny
  condition night when hour(timestamp) between 1 and 5 then challenge
  condition odd when user.email ends with ".example" then challenge
  otherwise default
"""
NEW = """rule checkout "The web shop"
  list trusted: string
  list blocked: string
  let uses = count(payments by user.id over 2h)
  condition night when hour(timestamp) between 2 and 5 then deny
  condition renewal "Renewals" when device is missing and merchant.id in @trusted then allow
  condition busy when uses > 3 and amount <= 10 then deny
  condition known when user.id in @blocked then deny
  otherwise challenge
"""
CARD = """scorecard bot_behaviour
  baseline 0.03
  signal library adds 3.2 when device.client.kind in ["library", "headless"]
  signal cards adds 0.5 * distinct(payments.method.card.fingerprint by user.id over 1h)
"""
SIGN_IN = """event sign_in
  field user_id: string required
  field result: string required
  let failed = result == "failure"
  metric failures = count(events by user_id over 1h where failed)
"""
KNOWN = KnownNames()


def version(text: str, number: int = 1, known: KnownNames = KNOWN) -> Version:
    program = read_file(text.encode(), known).program
    assert program is not None
    return Version(
        program_kind(program),
        program.name,
        number,
        text,
        {},
        "",
        1,
        encode_program(program),
        0,
        "test",
    )


def told(old: str, new: str) -> list[str]:
    return [line.plain for line in draw_differences(diff(version(old), version(new)))]


def test_every_kind_of_change_of_a_rule_is_told(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(told(OLD, NEW)) == snapshot


def test_every_kind_of_change_of_a_scorecard_is_told(snapshot: SnapshotAssertion) -> None:
    new = CARD.replace("0.03", "0.05").replace("3.2", "2.9").replace("0.5 *", "0.25 *")
    new = new.replace('["library", "headless"]', '["library"]')
    assert "\n".join(told(CARD, new)) == snapshot


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("10.00", "10.0"),
        ("  condition busy when", "  # a comment\n  condition busy\n    when"),
        ("uses > 2 and amount < 10.00", "(uses > 2) and (amount < 10.00)"),
    ],
)
def test_other_words_for_the_same_are_no_difference(old: str, new: str) -> None:
    assert old in OLD
    assert told(OLD, OLD.replace(old, new)) == []


def test_numbers_that_differ_in_their_last_digit_are_told_apart() -> None:
    old, new = (f"amount * 0.{'1' * 30}{last} > 7" for last in (2, 3))
    text = f"rule a\n  condition b when {old} then deny\n"
    assert told(text, text.replace(old, new)) == [
        f"changed condition `b` threshold: 0.{'1' * 30}2 → 0.{'1' * 30}3"
    ]


def test_parts_are_told_with_every_space_of_their_texts_and_without_comments() -> None:
    old = 'rule a\n  condition b when user.id == "a  b" then deny\n'
    assert told(old, old.replace("a  b", "a b")) == [
        'changed condition `b` threshold: "a  b" → "a b"'
    ]
    assert told(old, old.replace("user.id", "left(user.id,  # enough\n  4)")) == [
        "changed condition `b` when: user.id → left(user.id, 4)"
    ]


def test_a_new_let_in_front_changes_nothing_but_itself() -> None:
    new = OLD.replace("  let uses", "  let cheap = amount < 5\n  let uses")
    new = new.replace("amount < 10.00", "amount < 10.00")
    assert told(OLD, new) == ["added   let `cheap`: value amount < 5"]


def test_a_let_with_the_name_of_an_event_types_let_is_told_apart() -> None:
    sign_in = read_file(SIGN_IN.encode(), KNOWN).program
    assert isinstance(sign_in, EventType)
    known = KnownNames(events={"sign_in": sign_in})
    old = (
        "rule a\n  let failed = length(user.id) < 5\n"
        "  condition b when failed and events.sign_in.failures[user.id] > 3 then deny\n"
    )
    both = [version(text, known=known) for text in (old, old.replace("< 5", "< 6"))]
    told = [line.plain for line in draw_differences(diff(*both))]
    assert told == ["changed let `failed` threshold: 5 → 6"]


def test_the_difference_back_is_the_difference_turned_around() -> None:
    there, back = diff(version(OLD), version(NEW)), diff(version(NEW), version(OLD))
    turned = {"added": "removed", "removed": "added", "moved": "moved", "changed": "changed"}
    assert sorted((turned[each.change], each.what, each.aspect or "") for each in back) == sorted(
        (each.change, each.what, each.aspect or "") for each in there
    )


def test_a_list_in_another_order_says_the_same() -> None:
    old = 'rule a\n  condition b when method.card.bin in ["41111111", "42222222"] then deny\n'
    assert told(old, old.replace('["41111111", "42222222"]', '["42222222", "41111111"]')) == []
    networks = (
        'rule a\n  condition b when device.ip_address in ["1.0.0.0/8", "2.0.0.0/8"] then deny\n'
    )
    swapped = networks.replace('["1.0.0.0/8", "2.0.0.0/8"]', '["2.0.0.0/8", "1.0.0.0/8"]')
    assert told(networks, swapped) == []
    assert told(old, old.replace('"41111111", "42222222"', '"42222222", "43333333"')) == [
        'changed condition `b` threshold: "41111111" → "43333333"'
    ]


def test_a_changed_key_of_an_aggregate_is_told_once() -> None:
    old = "rule a\n  condition b when count(payments by user.id over 1h) > 3 then deny\n"
    assert told(old, old.replace("user.id", "device.ip_address")) == [
        "changed condition `b` when: user.id → device.ip_address"
    ]


def test_a_monitors_key_and_span_are_told() -> None:
    old = """event sign_in
  field user_id: string required
  metric failures = count(events by user_id over 1h)
  monitor brute when failures >= 10 by user_id every 10m
"""
    assert told(old, old.replace("by user_id every 10m", "by id every 20m")) == [
        "changed monitor `brute` every: 10m → 20m",
        "changed monitor `brute` key 1: user_id → id",
    ]
    assert told(old, old.replace(" by user_id every 10m", "")) == [
        "changed monitor `brute` every: 10m → nothing",
        "changed monitor `brute` key 1: user_id → nothing",
    ]


def test_a_changed_metric_is_told_once() -> None:
    old = """event sign_in
  field user_id: string required
  metric failures = count(events by user_id over 1h)
  monitor brute when failures >= 10
"""
    assert told(old, old.replace("by user_id", "by id")) == [
        "changed metric `failures` value: user_id → id"
    ]


PROMISES = """rule checkout
  condition busy when amount < 10.00 and currency == "EUR" then deny
  must "partners pay small amounts"
    when merchant.id == "m-1" and amount < 5.00
    never deny
  must "a trial is stopped" when type == "verify" always challenge, deny
  must when amount > 5000.00 never allow
"""


def test_a_promise_that_was_dropped_weakened_or_made_is_told(snapshot: SnapshotAssertion) -> None:
    new = PROMISES[: PROMISES.index('  must "a trial')].replace("5.00", "2.00")
    new += """  must when amount > 5000.00 always deny
  must "partners pay small amounts" when merchant.id == "m-2" never deny
"""
    assert "\n".join(told(PROMISES, new)) == snapshot
    assert told(PROMISES, PROMISES) == []


def test_a_promise_in_another_layout_says_the_same() -> None:
    new = PROMISES.replace("challenge, deny", "deny,challenge").replace(
        'm-1" and', 'm-1"   and #\n'
    )
    assert told(PROMISES, new.replace("amount < 5.00", "amount<5.00")) == []


TESTED = """rule checkout
  condition busy when amount < 10.00 and currency == "EUR" then deny
  test "a small amount is refused"
    given amount = 5.00, currency = "EUR"
    expect deny by busy
  test "a larger one is not" given amount = 20.00, currency = "EUR" expect allow
"""


def test_a_test_that_was_dropped_weakened_or_added_is_told() -> None:
    first = TESTED.partition('  test "a larger')[0]
    assert told(TESTED, first) == [
        'removed test `a larger one is not`: given amount = 20.00, currency = "EUR"; expect allow'
    ]
    assert told(first, TESTED)[0].startswith("added   test `a larger one is not`")
    eased = TESTED.replace("deny by busy", "default").replace("5.00", "50.00")
    changed, given = "changed test `a small amount is refused`", 'amount = {}, currency = "EUR"'
    assert told(TESTED, eased) == [
        f"{changed} given: {given.format('5.00')} → {given.format('50.00')}",
        f"{changed} expect: deny by busy → default",
    ]
    assert told(TESTED, TESTED.replace(" given amount", "\n    given amount")) == []


def test_a_test_of_a_scorecard_is_told() -> None:
    tested = CARD + '  test "people pay" given amount = 5.00 expect score < 0.5\n'
    assert told(tested, CARD) == [
        "removed test `people pay`: given amount = 5.00; expect score < 0.5"
    ]


def test_another_name_is_told() -> None:
    assert told(CARD, CARD.replace("bot_behaviour", "robots")) == [
        "changed `robots` name: bot_behaviour → robots"
    ]
