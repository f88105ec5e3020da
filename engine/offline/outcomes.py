"""The known outcomes of replayed payments (fraud or not), and the payments without one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from tollkeeper.engine.offline.backtest.replay import ReplayedPayment

Verdicts: TypeAlias = Mapping[str, str]
"""Verdicts on payments by id."""
Labelling: TypeAlias = Callable[[ReplayedPayment], str | None]
"""Gives a payment's verdict, None for no label."""
FRAUDULENT = frozenset({"fraud", "chargeback", "1"})
HONEST = frozenset({"legitimate", "genuine", "0"})

T = TypeVar("T")


class NothingToLearnError(Exception):
    """A history without fraud, or without honest payments; the message is for its author."""


class KnownOutcome(NamedTuple, Generic[T]):
    """A payment with a known outcome, and the value that was computed for it."""

    payment: ReplayedPayment
    read: T
    fraud: bool


class Outcomes(NamedTuple, Generic[T]):
    """`set_aside` counts the payments without a known outcome, by the reason."""

    known: list[KnownOutcome[T]]
    set_aside: Mapping[str, int]


def known_outcomes(
    seen: Iterable[tuple[ReplayedPayment, T]],
    label_of: Labelling,
    ripe: int,
    most: int | None = None,
) -> Outcomes[T]:
    """The labelled payments, and the unlabelled ones that arrived up to `ripe` (µs), which count as
    legitimate; at most the newest `most`.

    An unlabelled payment that was denied has no known outcome, unless it was held out. No later
    payment has one unless all of them are labelled: fraud is labelled before honest payments
    count, and would make up most of the newest. Raises `NothingToLearnError`.
    """
    set_aside = {"denied": 0, "unsure": 0, "young": 0, "old": 0}
    kept: deque[KnownOutcome[T]] = deque(maxlen=most)
    judged = young = 0
    is_late = False
    for payment, read in seen:
        label = label_of(payment)
        if label is None and is_denied(payment) and not _was_held_out(payment):
            set_aside["denied"] += 1
        elif label is not None and label not in FRAUDULENT | HONEST:
            set_aside["unsure"] += 1
        else:
            judged += 1
            is_young = payment.arrived > ripe
            young += is_young
            if is_young and label is None and not is_late:
                is_late = True
                kept = deque((each for each in kept if each.payment.arrived <= ripe), most)
            if not (is_young and is_late):
                kept.append(KnownOutcome(payment, read, label in FRAUDULENT))
    known = list(kept)
    set_aside["young"] = young if is_late else 0
    set_aside["old"] = judged - set_aside["young"] - len(known)
    frauds = sum(each.fraud for each in known)
    if frauds in (0, len(known)):
        missing = "no fraud" if frauds == 0 else "no honest payment"
        too_young = f"; {set_aside['young']:,} are too young, as not all of them have a label"
        raise NothingToLearnError(
            f"there is {missing} among {len(known):,} payments whose outcome is known"
            + (too_young if set_aside["young"] else "")
        )
    return Outcomes(known, {why: count for why, count in set_aside.items() if count})


def _was_held_out(payment: ReplayedPayment) -> bool:
    """Whether it was held out: denied, and answered with `allow`."""
    return payment.was is not None and payment.was.held_out


def is_denied(payment: ReplayedPayment) -> bool:
    """Whether it was denied when it came."""
    return payment.was is not None and payment.was.action == "deny"
