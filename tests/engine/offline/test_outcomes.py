"""What became of payments is known of those that are labelled, or old enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.backtest.candidate import CandidateOutcome
from tollkeeper.engine.offline.backtest.replay import ReplayedPayment
from tollkeeper.engine.offline.outcomes import NothingToLearnError, known_outcomes

PAYMENTS = 1_000
ONE_IN = 50
RIPE = PAYMENTS // 2 - 1


def seen() -> Iterator[tuple[ReplayedPayment, int]]:
    """A payment each microsecond."""
    for at in range(PAYMENTS):
        outcome = CandidateOutcome("allow")
        yield ReplayedPayment(str(at), at, None, None, outcome, None, (), Environment()), at


def is_fraud(payment: ReplayedPayment) -> bool:
    return payment.arrived % ONE_IN == 0


def told_of_fraud(payment: ReplayedPayment) -> str | None:
    return "fraud" if is_fraud(payment) else None


def told_of_all(payment: ReplayedPayment) -> str | None:
    return "fraud" if is_fraud(payment) else "legitimate"


def test_fraud_has_its_share_in_the_last_fifth_though_honest_payments_are_never_labelled() -> None:
    known, set_aside = known_outcomes(seen(), told_of_fraud, ripe=RIPE)
    last = known[len(known) * 4 // 5 :]
    assert sum(each.fraud for each in last) == len(last) // ONE_IN
    assert len(known) + set_aside["young"] == PAYMENTS


def test_the_newest_are_kept_of_those_that_are_old_enough() -> None:
    known, set_aside = known_outcomes(seen(), told_of_fraud, ripe=RIPE, most=200)
    assert known[-1].payment.arrived == RIPE
    # The frauds among the young ones took their places until the first was met that nobody labelled.
    assert 200 - 1 <= len(known) <= 200
    assert len(known) + sum(set_aside.values()) == PAYMENTS


def test_of_a_time_that_is_labelled_as_a_whole_the_youngest_count_too() -> None:
    known, set_aside = known_outcomes(seen(), told_of_all, ripe=RIPE)
    assert (len(known), set_aside) == (PAYMENTS, {})


def test_where_all_are_too_young_nothing_can_be_learned() -> None:
    with pytest.raises(NothingToLearnError, match="1,000 are too young"):
        known_outcomes(seen(), told_of_fraud, ripe=-1)
