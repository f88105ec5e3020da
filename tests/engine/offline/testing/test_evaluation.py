"""One decision without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tollkeeper.engine.explain.explain import Explanation
from tollkeeper.engine.offline.testing.evaluation import evaluate_payment
from tollkeeper.engine.offline.testing.files import library_of
from tollkeeper.engine.offline.testing.streams import START, StreamError
from tollkeeper.tests.engine.offline.testing.conftest import Write, card, payment

RULE = """rule example
  let uses = count(payments by method.card.fingerprint over 1h)
  condition again "Used before" when uses > 1 and amount < 10 then deny
  condition risky when score >= 0.60 then challenge
"""


def evaluate(write: Write, sent: Any, rule: str = RULE, **options: Any) -> Explanation:
    path = write("example.rule", rule)
    body = sent if isinstance(sent, bytes) else json.dumps({"payment": sent}).encode()
    return evaluate_payment(path, body, library_of([path]), now=START, **options)


def test_the_rule_of_the_file_decides_whatever_the_payment_names(write: Write) -> None:
    sent = payment("p", amount=5, analyze={"rule": {"name": "other"}})
    decision = evaluate(write, sent).decision
    assert decision.action == "allow"
    assert decision.rule is not None
    assert (decision.rule.name, decision.rule.condition) == ("example", None)


def test_a_score_that_is_set_takes_the_scorecards_place(write: Write) -> None:
    evaluation = evaluate(write, payment("p"), score=70)
    assert evaluation.decision.score == 70
    assert evaluation.decision.action == "challenge"
    assert evaluation.scorecard is None


def test_the_scorecard_beside_the_rule_gives_the_score(write: Write) -> None:
    write(
        "bot_behaviour.rule",
        "scorecard bot_behaviour baseline 0.6 signal s adds 0 when score_it == 1".replace(
            "score_it", "amount"
        ),
    )
    evaluation = evaluate(write, payment("p"))
    assert evaluation.decision.score == 60
    assert evaluation.decision.action == "challenge"


def test_a_history_comes_before_the_payment(write: Write) -> None:
    history = write("history.jsonl", [{"payment": payment("before", "11:30:00", method=card())}])
    sent = payment("p", method=card(), amount=5)
    assert evaluate(write, sent).decision.action == "allow"
    assert evaluate(write, sent, history=history).decision.action == "deny"


def test_a_scorecard_can_be_tried_alone(write: Write) -> None:
    rule = "scorecard bot_behaviour baseline 0.9 signal s adds 0 when amount > 1"
    decision = evaluate(write, payment("p"), rule).decision
    assert (decision.action, decision.score, decision.rule) == ("deny", 90, None)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\n", "no payment was given on standard input"),
        (b"{", "the payment: this is no JSON: input data was truncated"),
        (b"{}", 'the payment: a line holds a "payment"'),
        (b'{"payment": {}}', "`payment.type`: `type` is required"),
        (b'{"update": {"id": "p", "status": "failed"}}', "the payment: this is no payment"),
        (b"\xff", "the payment: "),
    ],
)
def test_what_is_no_payment_is_refused(write: Write, body: bytes, words: str) -> None:
    with pytest.raises(StreamError) as error:
        evaluate(write, body)
    assert words in str(error.value)


def test_definitions_decide_nothing(write: Write) -> None:
    with pytest.raises(StreamError, match="declares neither a rule nor a scorecard"):
        evaluate(write, payment("p"), "definitions example let x = amount")
