"""What can be asked of rules, with the payments that answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tollkeeper.engine.offline.prove import search
from tollkeeper.engine.offline.prove.as_test import counterexample_test
from tollkeeper.engine.offline.prove.proofs import compare_rules, prove_rule
from tollkeeper.engine.offline.prove.questions import (
    TOO_LARGE,
    ProofVerdict,
    compare_programs,
    keep_promise,
    meet_always,
    reach,
    reach_beyond,
)
from tollkeeper.engine.offline.prove.worker import Worker, open_worker
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule

PATIENT = 20.0
"""Seconds for a question: so many that a busy machine answers it too."""

RULES = Path(__file__).parents[4] / "rules"
WEB, RECURRING = RULES / "web_checkout.rule", RULES / "recurring.rule"


def rule(text: str) -> Rule:
    reading = read_file(f"rule r\n{text}".encode(), KnownNames())
    assert isinstance(reading.program, Rule), reading.diagnostics
    return reading.program


@pytest.mark.parametrize(
    ("when", "after"),
    [
        (
            'weekday(timestamp, "UTC") == "saturday" and any(transactions where status == "failed")',
            0,
        ),
        ('hour(timestamp, "UTC") == 3 and any(transactions where hour(timestamp, "UTC") == 5)', 2),
        (
            """timestamp < "2025-05-05T00:00:00Z" and count(transactions) > 1
            and all(transactions where timestamp >= "2025-05-05T00:00:00Z")""",
            0,
        ),
    ],
)
def test_the_attempts_of_a_payment_that_is_shown_are_near_it(
    worker: Worker, when: str, after: int
) -> None:
    verdict = worker.ask(reach, rule(f"  condition c when {when} then deny\n"), 0)
    assert verdict is not None
    assert verdict.witness is not None
    payment = verdict.witness.facts.payment
    assert payment.transactions
    for each in payment.transactions:
        assert abs(each.timestamp - payment.timestamp - timedelta(hours=after)) < timedelta(
            seconds=1
        )


def squared(times: int) -> Rule:
    lets = "".join(f"  let l{each} = l{each - 1} * l{each - 1}\n" for each in range(1, times))
    return rule(f"  let l0 = amount / 7\n{lets}  condition c when l{times - 1} > 5 then deny\n")


def test_a_proof_whose_numbers_become_too_large_ends_with_words() -> None:
    with open_worker(PATIENT) as asking:
        verdict = asking.ask(reach, squared(30), 0)
    assert verdict == ProofVerdict("not proved", (TOO_LARGE,), needs_work=False)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with open_worker(PATIENT) as opened:
        yield opened


@pytest.mark.parametrize(
    "when",
    [
        """distinct(payments.user.id by device.fingerprint.id over 1h)
           > count(payments by device.fingerprint.id over 1h)""",
        "count(payments by user.id over 10m) > count(payments by user.id over 1h)",
        'user.id starts with "a" and user.id == "b"',
        'amount_in("EUR") != amount and currency == "EUR"',
        "round(amount) > amount + 1",
        "count(earlier payments by user.id over 1h) >= count(payments by user.id over 1h)",
        "decay(count of payments by currency half life 1h) < 1",
        "decay(sum(amount) of payments by currency half life 1h) < amount",
        'all(payments by currency over 1h where status == "failed") and status == "declined"',
        'method.card.bin matches /^4/ and method.card.bin starts with "5"',
        'hour(timestamp, "UTC") > 22 and hour(timestamp, "UTC") < 5',
        'count(transactions where status == "failed") > count(transactions)',
        'sum(transactions.duration where status == "failed") < 0',
        """any(transactions where connector.meaning == "no_funds"
            and connector.response_code == "05")""",
        """amount > 5 and distinct(payments.amount by user.id over 1h where amount > 5) == 0
           and user.id is present""",
    ],
)
def test_what_no_payment_can_be_is_proved(when: str) -> None:
    made = rule(f"condition c when {when} then deny")
    verdict = reach(made, 0, seconds=PATIENT)
    assert (verdict.answer, verdict.because) == ("refuted", ())


@pytest.mark.parametrize(
    "when",
    [
        # Another payment of the same microsecond, which is not declined, breaks the streak.
        'status == "declined" and streak(payments by currency where status == "declined") == 0',
        r"streak(payments by user.id where user.email matches /\bx/) > 2",
        """any(transactions by number(user.id) over 7d
           where timestamp - payment.timestamp == 999999d and metadata["b"])""",
        'any(transactions where connector.type == "4111111111111111" or duration == 7)',
    ],
)
def test_what_a_payment_can_be_is_shown_by_one(when: str) -> None:
    made = rule(f"condition c when {when} then deny")
    assert reach(made, 0, seconds=PATIENT).answer == "proved"


@pytest.mark.parametrize(
    ("first", "step"),
    [("amount > 1", "{0} or not {0}"), ("amount", "min({0} + 1, {0} + 2)")],
)
def test_lets_that_build_on_each_other_five_hundred_times_are_encoded(
    first: str, step: str
) -> None:
    lets = [f"let b0 = {first}", *(f"let b{n + 1} = {step.format(f'b{n}')}" for n in range(498))]
    made = rule("\n".join([*lets, "condition c when b498 is present then deny"]))
    assert reach(made, 0, seconds=PATIENT).answer == "proved"


@pytest.mark.parametrize(
    "when",
    ['device.headers["Cookie"] is present', 'metadata["pan"] starts with "4111111111111111"'],
)
def test_no_payment_is_shown_of_which_the_service_removes_something(when: str) -> None:
    made = rule(f"condition c when {when} then deny")
    assert reach(made, 0, seconds=PATIENT).answer != "proved"


@pytest.mark.parametrize(
    ("when", "is_written"),
    [
        ("user is present", False),
        ("backend.headers is present", False),
        ("device.client.consistent and device.fingerprint is present", False),
        ("device.client.consistent and device.fingerprint is missing", True),
        ('first(payments by user.id) is missing and order.id == "a"', True),
        ('not first(payments by user.id) and order.id == "a"', False),
        ('user.id in @blocked and device.headers["x-a"] == "b" and score > 0.5', True),
    ],
)
def test_a_payment_is_written_as_a_test_where_the_test_comes_out_as_it_does(
    when: str, is_written: bool
) -> None:
    made = rule(f"list blocked: string condition c when {when} then deny")
    verdict = reach(made, 0, seconds=PATIENT)
    assert (_test_of(made, verdict) is not None) is is_written


def test_a_covered_condition_names_those_that_cover_it() -> None:
    made = rule(
        'condition a when currency == "EUR" then deny\n'
        "condition b when score > 0.5 then deny\n"
        'condition c when currency == "USD" then deny\n'
        'condition d when score > 0.7 and currency in ["EUR", "USD"] then deny'
    )
    assert reach(made, 3, seconds=PATIENT).because == ("b",)


def test_a_condition_that_all_meet_is_told() -> None:
    made = rule(
        'condition a when type == "purchase" then deny\n'
        'condition b when type != "purchase" then allow'
    )
    assert meet_always(made, 0, seconds=PATIENT).answer == "refuted"
    assert meet_always(made, 1, seconds=PATIENT).answer == "proved"


PARTNERS = """
  list partners: string
  condition small when amount < 5.00 and merchant.id in @partners then allow
  condition large when amount > 100.00 and currency == "EUR" then deny
  must "small payments of partners pass"
    when amount < 5.00 and merchant.id in @partners never deny, challenge
  must "large euros stop" when amount > 100.00 and currency == "EUR" always deny
"""


def test_a_promise_is_proved_or_refuted_with_a_payment(snapshot: SnapshotAssertion) -> None:
    above = rule(PARTNERS)
    found = [keep_promise(above, each, seconds=PATIENT) for each in above.promises]
    assert [each.answer for each in found] == ["proved", "proved"]
    below = rule(
        PARTNERS.replace(
            "when amount < 5.00 and merchant.id in @partners then", "when false then"
        ).replace("when false", "when amount < 0.50")
    )
    broken = keep_promise(below, below.promises[0], seconds=PATIENT)
    assert broken.answer == "refuted"
    assert _test_of(below, broken) == snapshot


def test_the_same_question_ends_in_the_same_payment_whatever_was_asked_before(
    worker: Worker,
) -> None:
    made = rule(
        """let seen = count(payments by user.id over 1h)
        let usual = avg(payments.amount by user.id over 1h)
        condition many when seen > 4 and usual > 12.3 and method.card.bin starts with "41"
          and hour(timestamp, "UTC") < 5 and any(transactions where duration > 30) then deny
        condition others when amount > 71.50 and amount_in("USD") > 80
          and not (merchant.id in ["a", "b"]) and metadata["n"] is present then challenge
        must when user.id is present never challenge"""
    )
    asked = made, made.promises[0]
    questions = [(reach, (made, 0)), (reach, (made, 1)), (keep_promise, asked)]
    before = [question(*given, seconds=PATIENT).witness for question, given in questions]
    for number in range(10):
        reach(rule(f"condition c when amount > {number} then deny"), 0, seconds=PATIENT)
    after = [question(*given, seconds=PATIENT).witness for question, given in reversed(questions)]
    assert after[::-1] == before
    alone = [worker.ask(question, *given) for question, given in questions]
    assert [each and each.witness for each in alone] == before


def test_a_promise_counts_what_the_thresholds_make_of_the_score() -> None:
    made = rule(
        'condition c when amount > 5 and currency == "EUR" then allow\nmust when amount > 0 never deny'
    )
    broken = keep_promise(made, made.promises[0], seconds=PATIENT)
    assert broken.answer == "refuted"
    assert broken.replayed[0].condition is None


def test_a_refactoring_is_proved_equal() -> None:
    old = rule(
        'let small = amount < 10\ncondition a when small and currency == "EUR" or small and'
        ' currency == "USD" then deny'
    )
    new = rule('condition a when not (amount >= 10.00) and currency in ["USD", "EUR"] then deny')
    assert compare_programs(old, new, seconds=PATIENT).answer == "proved"


def test_a_moved_bound_is_shown_by_a_payment_on_it() -> None:
    text = WEB.read_text()
    old = read_file(text.encode(), KnownNames()).program
    new = read_file(
        text.replace("cards_on_device >= 4", "cards_on_device > 4").encode(), KnownNames()
    ).program
    assert isinstance(old, Rule)
    assert isinstance(new, Rule)
    verdict = compare_programs(old, new, seconds=PATIENT)
    assert verdict.answer == "refuted"
    assert "cards_on_device = 4" in (_test_of(new, verdict) or "")
    assert verdict.replayed[0].condition == "card_testing"


@pytest.mark.parametrize(
    "when", ["usual * 3 == 0.7", "usual / 7 == 0.3", "amount > usual * 3 and usual * 3 > 9.3"]
)
def test_a_mean_between_two_doubles_is_brought_to_one_of_them(worker: Worker, when: str) -> None:
    made = rule(
        f"""let usual = avg(payments.amount by user.id over 1h)
        condition c when {when} and amount < 9.32 then deny"""
    )
    verdict = worker.ask(reach, made, 0)
    assert verdict is not None
    assert verdict.answer == "proved"


def test_a_rounded_quotient_of_many_digits_is_one_that_somebody_may_have() -> None:
    many = 2**100
    made = rule(
        f'condition c when round({many} / amount) == {many} and amount == 1 and currency == "EUR"'
        " then deny"
    )
    assert reach(made, 0, seconds=PATIENT).answer == "proved"


def test_a_comparison_with_a_mean_is_told_apart_by_a_mean_that_somebody_may_have() -> None:
    text = RECURRING.read_text()
    old, new = (
        read_file(each.encode(), KnownNames()).program
        for each in (text, text.replace("amount > usual_amount", "amount != usual_amount"))
    )
    assert isinstance(old, Rule)
    assert isinstance(new, Rule)
    verdict = compare_programs(old, new, seconds=PATIENT)
    assert verdict.answer == "refuted"
    assert [each.condition for each in verdict.replayed] == [None, "amount_jump"]


def _test_of(made: Rule, verdict: ProofVerdict) -> str | None:
    assert verdict.witness is not None
    return counterexample_test(made, verdict.witness, verdict.replayed[-1])


def test_swapped_conditions_of_one_action_are_equal_by_action_alone() -> None:
    one = 'condition a when amount > 5 and currency == "EUR" then deny\n'
    two = "condition b when user.id is missing then deny\n"
    old, new = rule(one + two), rule(two + one)
    assert compare_programs(old, new, "action", seconds=PATIENT).answer == "proved"
    assert compare_programs(old, new, "condition", seconds=PATIENT).answer == "refuted"


def test_a_comparison_tells_how_each_condition_changed(worker: Worker) -> None:
    old = rule(
        'condition a when score > 0.5 and currency == "EUR" then deny\n'
        'condition b when amount > 5.00 and currency == "EUR" then challenge\n'
        "condition c when user.id is missing then challenge"
    )
    new = rule(
        "condition c when user.id is missing then challenge\n"
        'condition a when score > 0.4 and currency == "EUR" then deny\n'
        'condition b when amount > 7.00 and currency == "EUR" then challenge'
    )
    told = [(each.claim, each.of) for each in compare_rules(worker, "r.rule", old, new)]
    assert told == [
        ("same", "r"),
        ("moved", "c"),
        ("wider", "a"),
        ("moved", "a"),
        ("narrower", "b"),
        ("moved", "b"),
    ]


def test_what_has_no_formula_is_not_proved_and_says_why() -> None:
    made = rule(r"condition c when user.email matches /\bbot\b/ then deny")
    verdict = reach(made, 0)
    assert (verdict.answer, verdict.because) == (
        "not proved",
        (r"`c` reads the expression /\bbot\b/",),
    )


def test_every_condition_of_the_shipped_rule_is_shown_reachable(worker: Worker) -> None:
    shipped = read_file(WEB.read_bytes(), KnownNames()).program
    assert isinstance(shipped, Rule)
    proofs = list(prove_rule(worker, "web_checkout.rule", shipped))
    assert {each.verdict.answer for each in proofs} == {"proved"}


def test_a_question_that_takes_too_long_ends_with_its_process() -> None:
    shipped = read_file(WEB.read_bytes(), KnownNames()).program
    with open_worker(0.000_01) as hurried:
        assert [hurried.ask(reach, shipped, index) for index in (0, 1)] == [None, None]


@pytest.mark.parametrize("changed", [">= 3.5", "!= 3.5", "> 3.4", "> 7.0"])
def test_a_changed_entropy_is_told_apart_by_a_text_that_is_made_up(
    monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    # The solver gives up after little work, however long a busy machine takes for that.
    monkeypatch.setattr(search, "SLACK", PATIENT)
    typed = "matches /[0-9].*[a-z].*[0-9]/"
    old, new = (
        rule(
            f"""let local = email_local(user.email)
            condition c when length(local) >= 14 and entropy(local) {bound} and local {typed} then deny"""
        )
        for bound in ("> 3.5", changed)
    )
    assert compare_programs(old, new, seconds=0.2).answer == "refuted"


def test_a_condition_that_another_rule_covers_decides_nothing_beyond_it() -> None:
    made = rule(
        "condition large when amount > 50 and currency == 'EUR' then deny".replace("'", '"')
    )
    covering = rule('condition some when amount > 40 and currency in ["EUR", "USD"] then deny')
    other_action = rule('condition some when amount > 40 and currency == "EUR" then challenge')
    assert reach_beyond(made, 0, [covering], seconds=PATIENT).answer == "refuted"
    assert reach_beyond(made, 0, [other_action], seconds=PATIENT).answer == "proved"
    assert reach_beyond(made, 0, [], seconds=PATIENT).answer == "proved"


@pytest.mark.parametrize(
    ("sign", "alike"),
    [("== 0.1", ">= 0.1 and tried / seen <= 0.1"), ("!= 0.5", "< 0.5 or tried / seen > 0.5")],
)
def test_a_share_that_equals_a_number_is_proved_to_lie_on_it_and_told_from_one_beside(
    worker: Worker, sign: str, alike: str
) -> None:
    share = """let tried = count(payments by user.id over 1h where type == "verify")
let seen = count(payments by user.id over 1h)
"""
    made, other, beside = (
        rule(f"{share}condition c when tried / seen {test} then deny")
        for test in (sign, alike, ">= 0.5")
    )
    found = [worker.ask(compare_programs, made, each, "condition") for each in (other, beside)]
    assert [each and each.answer for each in found] == ["proved", "refuted"]
