"""A test block says what live deciding does with what it gives, and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from tollkeeper.engine.offline.testing import blocks
from tollkeeper.engine.offline.testing.cases import decide_case, load_case
from tollkeeper.engine.offline.testing.files import library_of
from tollkeeper.engine.offline.testing.outcomes import BlockError, DisagreementError
from tollkeeper.tests.engine.offline.testing.conftest import Check, Write, card, payment

RULE = """rule example
  list trusted: string
  list bad_hosts: ip
  table bins by prefix: country: string, limit: number
  table places by network: country: string
  let uses = count(payments by method.card.fingerprint over 1h)
  let refused = count(payments by user.id over 1h where decision.condition == "many")

  condition trusted when user.id in @trusted then allow
  condition bad_host when device.ip_address in @bad_hosts then deny
  condition foreign when @bins[method.card.bin].country != @places[device.ip_address].country then challenge
  condition limited when amount > @bins[method.card.bin].limit then deny
  condition many when uses > 2 or refused > 0 then deny
  condition scripted when device.client.kind == "library" then deny
  condition risky when score >= 0.90 then deny
  condition small when metadata["tries"] > 2.5 and amount < 1 then challenge
  condition early when timestamp < "2026-01-01T12:00:01Z" and currency is missing and order.id == "o" then challenge
"""


@pytest.mark.parametrize(
    "test",
    [
        "given amount = 5.00 expect default",
        'given order.id = "o" expect challenge by early',
        'given user.id = "u", @trusted = ["t", "u"] expect allow by trusted',
        'given user.id = "u" expect default',
        'given device.ip_address = "198.51.100.7", @bad_hosts = ["198.51.100.0/24"] expect deny by bad_host',
        """given method.card.bin = "41111111", @bins["4111"].country = "BR"
        given device.ip_address = "2001:db8::1", @places["2001:db8::/32"].country = "US"
        expect challenge by foreign""",
        'given method.card.bin = "41111111", @bins["41"].limit = 10.50, amount = 10.51 expect deny by limited',
        'given method.card.bin = "41111111", @bins["41"].limit = 10.50, amount = 10.50 expect default',
        "given uses = 3 expect deny by many",
        "given uses = 2 expect default",
        'given device.client.kind = "library" expect deny',
        'given device.headers["User-Agent"] = "python-requests/2.32.0" expect deny by scripted',
        "given score = 0.90 expect deny by risky",
        'given metadata["tries"] = 2.6, amount = 0.99 expect challenge by small',
        'given metadata["tries"] = 2.5, amount = 0.99 expect default',
        "given score = 0.6 expect challenge",
        "given score = 0.2 expect allow",
    ],
)
def test_only_what_is_given_is_there(check: Check, test: str) -> None:
    assert check(f'{RULE} test "it" {test}').failures == ()


def test_the_score_is_missing_unless_it_is_given(check: Check) -> None:
    text = 'rule example condition c when score is missing then deny test "it" expect deny by c'
    assert check(text).failures == ()


def test_what_has_a_given_part_is_there(check: Check) -> None:
    text = (
        "rule example\n"
        "condition c when device is present and device.fingerprint is missing\n"
        " and method is missing and backend is missing and metadata is missing then deny\n"
        'test "it" given device.client.os = "linux" expect deny by c'
    )
    assert check(text).failures == ()


def test_a_private_backend_address_is_ignored_in_a_test_as_it_is_live(check: Check) -> None:
    text = (
        "rule example condition c when backend.ip_address is missing and backend is present\n"
        'then deny test "it" given backend.ip_address = "10.0.0.1" expect deny by c'
    )
    assert check(text).failures == ()


def test_a_fingerprint_comes_of_bin_and_last_four(check: Check) -> None:
    text = (
        'rule example condition c when method.card.fingerprint == "41111111-1234" then deny\n'
        'test "it" given method.card.bin = "41111111", method.card.last_four = "1234"\n'
        "expect deny by c"
    )
    assert check(text).failures == ()


def test_a_let_that_builds_on_a_given_one_follows_it(check: Check) -> None:
    text = (
        "rule example\nlet part = amount / 2\nlet quarter = part / 2\n"
        "condition c when quarter == 2 then deny\n"
        'test "it" given part = 4 expect deny by c'
    )
    assert check(text).failures == ()


def test_a_rule_that_closes_with_an_action_has_no_default(check: Check) -> None:
    text = (
        "rule example condition c when amount > 1 then deny otherwise challenge\n"
        'test "it" expect default'
    )
    (failure,) = check(text).failures
    assert failure.came_out == "challenge, as the rule closes with otherwise challenge"


def test_history_is_counted_with_the_payment_itself(check: Check, write: Write) -> None:
    write(
        "history.jsonl",
        [
            {"payment": payment("p-1", "11:20:00", method=card())},
            {"payment": payment("p-2", "11:30:00", method=card("2222"))},
            {"payment": payment("p-3", "11:40:00", method=card())},
            {"update": {"id": "p-3", "status": "failed"}},
        ],
    )
    test = (
        'test "it" given history "history.jsonl"\n'
        'given method.card.bin = "41111111", method.card.last_four = "1111"\n'
    )
    assert check(f"{RULE} {test} expect deny by many").failures == ()


def test_a_history_may_say_what_was_decided(check: Check, write: Write) -> None:
    decision = {"action": "deny", "rule": "example", "condition": "many", "score": 0.2}
    past = {"payment": payment("p-1", "11:30:00", user={"id": "u"}), "decision": decision}
    write("history.jsonl", [past])
    test = 'test "it" given history "history.jsonl" given user.id = "u" expect deny by many'
    assert check(f"{RULE} {test}").failures == ()


def test_a_given_let_that_is_a_key_groups_only_the_payment(check: Check, write: Write) -> None:
    write("history.jsonl", [{"payment": payment("p-1", "11:30:00", user={"id": "U"})}])
    text = (
        "rule example\nlet key = lower(user.id)\n"
        "condition c when count(payments by key over 1h) == 1 then deny\n"
        'test "it" given history "history.jsonl" given key = "u" expect deny by c'
    )
    assert check(text).failures == ()


def test_a_payment_comes_from_a_file_and_what_is_given_goes_over_it(
    check: Check, write: Write
) -> None:
    write("payment.json", [{"payment": payment("p-1", amount=5.00, order={"id": "o"})}])
    text = (
        'rule example condition c when amount == 7 and order.id == "o" and type == "purchase"\n'
        'then deny test "it" given payment "payment.json" given amount = 7 expect deny by c'
    )
    assert check(text).failures == ()


@pytest.mark.parametrize(
    ("history", "words"),
    [
        ("", None),
        ("{", "example.jsonl:1: this is no JSON: input data was truncated"),
        (
            '{"payment": {}}',
            "example.jsonl:1: `payment.type`: `type` is required; `payment.currency`",
        ),
        ('\n{"update": {"id": "p", "status": "failed"}}', "line 2: there is no payment `p`"),
        ('{"payments": {}}', "example.jsonl:1: object contains unknown field `payments`"),
        ("{}", 'example.jsonl:1: a line holds a "payment"'),
        ("[" * 10_000, "example.jsonl:1: "),
    ],
)
def test_a_history_that_cannot_be_read_names_the_line(
    check: Check, write: Write, history: str, words: str | None
) -> None:
    write("example.jsonl", history)
    text = (
        "rule example condition c when count(payments by user.id over 1h) > 5 then deny\n"
        'test "it" given history "example.jsonl" expect default'
    )
    if words is None:
        assert check(text).failures == ()
    else:
        with pytest.raises(BlockError) as error:
            check(text)
        assert words in str(error.value)


def test_a_file_that_is_not_there_is_named(check: Check) -> None:
    with pytest.raises(BlockError, match=r"none\.json can't be read: No such file or directory"):
        check(
            "rule example condition c when amount > 5 then deny\n"
            'test "it" given payment "none.json" expect default'
        )


def test_an_entry_that_no_list_takes_is_named(check: Check) -> None:
    with pytest.raises(BlockError, match=r"`@trusted\.value`: a value may not be empty"):
        check(f'{RULE} test "it" given @trusted = [""] expect default')


def test_a_failure_tells_what_came_out_and_why(check: Check, snapshot: SnapshotAssertion) -> None:
    text = (
        "rule example\n"
        'let declines = count(transactions by order.id over 24h where status == "declined")\n'
        "condition guessing when declines > 5 or score >= 0.6 and amount < 10.00 then challenge\n"
        'condition night when hour(timestamp, "UTC") between 1 and 5 and user.id is present then deny\n'
        'test "it" given declines = 6, user.id = "u" expect deny by night expect default'
    )
    assert "\n\n".join(map(str, check(text).failures)) == snapshot


def test_a_scorecard_is_expected_by_its_score(check: Check, snapshot: SnapshotAssertion) -> None:
    text = (
        "scorecard example baseline 0.1\n"
        'signal library adds 3 when device.client.kind == "library"\n'
        "signal large adds amount / 100\n"
        'test "it" given device.client.kind = "library", amount = 50 expect score >= 0.5 expect score > 0.9'
    )
    (failure,) = check(text).failures
    assert str(failure) == snapshot


def decide_otherwise(*_given: object) -> int:
    return -1


@pytest.mark.parametrize(
    ("compiler", "made", "given"),
    [
        (
            "load_rule",
            lambda loaded: dataclasses.replace(loaded, decide=decide_otherwise),
            'device.client.kind = "library"',
        ),
        ("compile_rule", lambda _decide: decide_otherwise, "uses = 3"),
    ],
    ids=["as written", "with a given let"],
)
def test_a_compiled_rule_that_decides_otherwise_is_found(
    compiler: str,
    made: Callable[[Any], Any],
    given: str,
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = getattr(blocks, compiler)
    monkeypatch.setattr(blocks, compiler, lambda *arguments: made(right(*arguments)))
    with pytest.raises(DisagreementError):
        check(f'{RULE} test "it" given {given} expect default')


TRAFFIC = st.lists(
    st.tuples(st.sampled_from(["1111", "2222"]), st.sampled_from(["u", "v"]), st.integers(0, 1900)),
    min_size=1,
    max_size=8,
)


@given(TRAFFIC)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_test_always_says_what_live_deciding_does(
    check: Check, write: Write, traffic: list[tuple[str, str, int]]
) -> None:
    moments = sorted(second for _, _, second in traffic)
    items = [
        {
            "payment": payment(
                f"p-{index}",
                f"11:{moment // 60:02}:{moment % 60:02}",
                method=card(last_four),
                user={"id": user},
            )
        }
        for index, ((last_four, user, _), moment) in enumerate(zip(traffic, moments, strict=True))
    ]
    rule = (
        "rule example\n"
        "condition cards when distinct(payments.method.card.fingerprint by user.id over 10m) > 1"
        " and count(payments by user.id over 5m) > 2 then deny\n"
        "condition soon when interval(payments by method.card.fingerprint) < 60s then challenge\n"
    )
    write("live/example.rule", rule)
    path = write("live/cases/traffic.jsonl", items)
    live = decide_case(load_case(path, library_of([path.parent.parent])))[-1].decision.rule
    assert live is not None
    met = {"cards": "deny by cards", "soon": "challenge by soon", None: "default"}[live.condition]
    write("history.jsonl", items[:-1])
    write("payment.json", items[-1:])
    test = f'test "it" given payment "payment.json" given history "history.jsonl" expect {met}'
    assert check(rule + test).failures == ()


def test_a_history_tells_what_became_known_of_payments(check: Check, write: Write) -> None:
    told = {"payment": "p-1", "source": "review", "label": "fraud"}
    write("frauds.jsonl", [{"payment": payment("p-1", method=card())}, {"label": told}])
    text = """rule a
  condition again
    when count(payments by method.card.fingerprint over 1h where label == "fraud") > 0 then deny
  test "a card of a fraud is denied"
    given method.card.bin = "41111111", method.card.last_four = "1111"
    given history "frauds.jsonl"
    expect deny by again
"""
    assert check(text).failures == ()
