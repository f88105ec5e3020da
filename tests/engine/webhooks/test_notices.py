"""Which entries a webhook is told of."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import Label, Verdict, encode_label
from tollkeeper.engine.registry.changes import (
    Activated,
    Change,
    Deactivated,
    DecidedFilter,
    encode_change,
)
from tollkeeper.engine.registry.state import Webhook
from tollkeeper.engine.webhooks.notices import FOLLOWED, followed_kinds, notices_of


def webhook(*kinds: Any, since: int = 1, **only: Any) -> Webhook:
    return Webhook(
        "https://x.example/", (), dict.fromkeys(kinds, since), DecidedFilter(**only), False, 1
    )


def entry(kind: Kind, body: bytes = b"{}", outcome: bytes | None = None) -> Entry:
    return Entry(7, 1, kind, "p-1", 0, 0, body, outcome)


def decided(**fields: Any) -> Entry:
    return entry(Kind.PAYMENT, outcome=msgspec.json.encode(Decision(**fields)))


DENIED = decided(action="deny", score=90, rule=AppliedRule("gate", 2, "big"))
BY_SCORE = decided(action="deny", score=90)


@pytest.mark.parametrize(
    ("only", "told"),
    [
        ({}, (True, True)),
        ({"action": ("deny", "challenge")}, (True, True)),
        ({"action": ("allow",)}, (False, False)),
        ({"rule": ("gate",)}, (True, False)),
        ({"rule": ("other",)}, (False, False)),
        ({"condition": ("big", "small")}, (True, False)),
        ({"rule": ("gate",), "condition": ("small",)}, (False, False)),
        ({"action": ("deny",), "rule": ("gate",), "condition": ("big",)}, (True, False)),
    ],
)
def test_a_decision_is_told_to_those_that_mean_it(
    only: dict[str, Any], told: tuple[bool, bool]
) -> None:
    hook = webhook("payment.decided", **only)
    assert tuple(bool([*notices_of(each, [hook])]) for each in (DENIED, BY_SCORE)) == told


def test_a_payment_of_which_nothing_was_decided_is_no_decision() -> None:
    assert [*notices_of(decided(), [webhook("payment.decided")])] == []
    assert [*notices_of(entry(Kind.PAYMENT), [webhook("payment.decided")])] == []


@pytest.mark.parametrize(("said", "count"), [("fraud", 1), ("unsure", 1), (None, 0)])
def test_a_label_that_is_taken_back_is_none_created(said: Verdict | None, count: int) -> None:
    label = entry(Kind.LABEL, encode_label(Label("review", said, 0, "ana")))
    assert len([*notices_of(label, [webhook("label.created")])]) == count


@pytest.mark.parametrize(
    ("change", "subjects"),
    [
        (Activated("rule", "gate", 2), ["gate"]),
        (Activated("scorecard", "bots", 2), []),
        (Deactivated("rule", "gate"), []),
    ],
)
def test_rules_alone_are_published(change: Change, subjects: list[str]) -> None:
    told = notices_of(entry(Kind.CHANGE, encode_change("ana", change)), [webhook("rule.published")])
    assert [each.subject for each in told] == subjects


def test_a_kind_is_told_from_the_moment_it_was_wanted() -> None:
    update = entry(Kind.UPDATE)
    wanted = [webhook("payment.updated", since=since) for since in (6, 7, 8)]
    assert [len([*notices_of(update, [each])]) for each in wanted] == [1, 0, 0]
    assert [*notices_of(update, [webhook("payment.decided")])] == []


def test_only_what_is_wanted_is_looked_for_and_alerts_have_a_way_of_their_own() -> None:
    assert followed_kinds([webhook("alert.raised")]) == {}
    hooks = [webhook("alert.raised", "label.created"), webhook("rule.published")]
    assert followed_kinds(hooks) == {
        kind: FOLLOWED[kind] for kind in ("label.created", "rule.published")
    }
