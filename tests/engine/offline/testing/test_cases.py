"""A case is decided as live traffic is, and told for a person to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tollkeeper.engine.offline.testing.cases import case_text, decide_case, load_case
from tollkeeper.engine.offline.testing.files import BrokenFileError, library_of
from tollkeeper.engine.offline.testing.streams import StreamError
from tollkeeper.tests.engine.offline.testing.conftest import Write, card, payment

CARDS = """rule cards
  use shared
  list trusted: string
  condition known when user.id in @trusted then allow
  condition again when uses > 2 then deny
"""
SHARED = "definitions shared let uses = count(payments by method.card.fingerprint over 1h)"
AMOUNTS = """rule amounts
  condition quarantined
    when count(payments by user.id over 1h where decision.condition == "large") > 0 then deny
  condition large when amount > 100 and status != "failed" then challenge
"""


def text_of(path: Path) -> str:
    case = load_case(path, library_of([path.parent.parent]))
    return case_text(case, decide_case(case))


def test_every_rule_of_the_folder_decides_each_payment(
    write: Write, snapshot: SnapshotAssertion
) -> None:
    write("cards.rule", CARDS)
    write("shared.rule", SHARED)
    write("amounts.rule", AMOUNTS)
    write("bot_behaviour.rule", "scorecard bot_behaviour baseline 0.02")
    user = {"user": {"id": "u"}}
    named = {"analyze": {"bot_behaviour": True, "rule": {"name": "cards"}}}
    unknown = {"analyze": {"bot_behaviour": True, "rule": {"name": "old"}}}
    path = write(
        "cases/noon.jsonl",
        [
            {"payment": payment("p-1", "11:00:00", method=card(), amount=150, **user)},
            {"update": {"id": "p-1", "status": "failed"}, "at": "2026-01-01T11:00:05Z"},
            {"payment": payment("p-2", "11:01:00", method=card(), amount=20, **user)},
            {"list": "trusted", "entries": [{"value": "u"}]},
            {"payment": payment("p-3", "11:02:00", method=card(), **user, **named)},
            {"payment": payment("p-4", "11:03:00", method=card(), **named)},
            {"payment": {**payment("", method=card(), **unknown), "id": None}},
            {"payment": payment("late", "11:04:00"), "at": "2026-01-01T12:01:00Z"},
            {"payment": payment("silent", "12:01:00", analyze={"bot_behaviour": False})},
        ],
    )
    assert text_of(path) == snapshot


def test_the_folders_own_scorecard_gives_the_score(write: Write) -> None:
    write(
        "bot_behaviour.rule",
        "scorecard bot_behaviour baseline 0.5 signal large adds 3 when amount > 1",
    )
    path = write("cases/one.jsonl", [{"payment": payment("p-1", amount=2)}])
    assert "no rule: deny, score 0.95" in text_of(path)


def test_a_case_is_told_alike_every_time(write: Write) -> None:
    write("amounts.rule", AMOUNTS)
    unnamed: dict[str, Any] = {**payment("x"), "id": None, "timestamp": None}
    path = write("cases/one.jsonl", [{"payment": unnamed}, {"payment": unnamed}])
    assert text_of(path) == text_of(path)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([{"payment": payment("p")}, {"payment": payment("p")}], "there is a payment `p` already"),
        (
            [{"payment": payment("p", "12:00:00")}, {"payment": payment("q", "11:59:59")}],
            "one.jsonl:2: this arrives before the line above it, and lines are in time order",
        ),
        ([{"list": "trusted", "entries": []}], "no rule declares a list `@trusted`"),
        ([{"payment": payment("p"), "decision": {}}], "a case decides its payments itself"),
        (
            [{"payment": payment("p", device={"ip_address": "10.0.0.1"})}],
            "one.jsonl:1: `payment.device.ip_address`: ",
        ),
        (
            [{"payment": payment("p"), "at": "2026-01-03T12:00:00Z"}],
            "one.jsonl:1: `payment.timestamp`: ",
        ),
    ],
)
def test_a_case_that_cannot_happen_is_refused(
    write: Write, lines: list[dict[str, Any]], words: str
) -> None:
    write("amounts.rule", AMOUNTS)
    path = write("cases/one.jsonl", lines)
    with pytest.raises(StreamError) as error:
        text_of(path)
    assert words in str(error.value)


def test_a_case_needs_files_without_errors(write: Write) -> None:
    write("amounts.rule", "rule amounts condition c when amuont > 1 then deny")
    path = write("cases/one.jsonl", [{"payment": payment("p")}])
    with pytest.raises(BrokenFileError, match="did you mean `amount`"):
        text_of(path)


def test_a_label_that_is_taken_back_is_told_as_rules_write_it(write: Write) -> None:
    write("cards.rule", "rule cards condition c when amount > 1 then deny")
    told = {"label": {"payment": "p", "label": None}}
    path = write("cases/noon.jsonl", [{"payment": payment("p", "11:00:00")}, told])
    assert text_of(path).endswith("line 2  label none of p\n")
