"""What a suggestion says: its conditions, what they stop, and what it was learned from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from tollkeeper.engine.offline.backtest.report import Report

SuggestedAction: TypeAlias = Literal["challenge", "deny"]
"""What suggested conditions may do."""


ProvedAnswer: TypeAlias = Literal["proved", "refuted", "not proved"]


class StoppedFigures(Struct, frozen=True):
    """`stopped` fraudulent payments in so many incidents, and `people`: honest ones.

    `recall` is the share of all fraud of the time, `precision` that of fraud among what is met, with
    its bounds nine times in ten; None where nothing is met. `adds` are those that no condition
    before it stops, `beyond_today` those that were not denied when they came. `money` is that of
    the stopped ones in hundredths, by currency.
    """

    stopped: int
    people: int
    incidents: int
    recall: float
    precision: float | None
    precision_low: float
    precision_high: float
    adds: int
    beyond_today: int
    money: Mapping[str, int]


class SuggestedCondition(Struct, frozen=True):
    """`learned` counts the time that the search saw, `later` time that neither it nor pruning saw."""

    name: str
    text: str
    learned: StoppedFigures
    later: StoppedFigures


class ProvedCondition(Struct, frozen=True):
    """`reached` says whether a payment can be decided by it, `beyond` whether one can to which no
    active rule gives the same action by a condition of its own."""

    name: str
    reached: ProvedAnswer
    beyond: ProvedAnswer


class Suggestion(Struct, frozen=True):
    """`text` is a rule file of the conditions, empty without any; `together` is what all stop later.

    `judged_since` (µs) is when the time begins that is shown. `proved` tells of each condition, and is
    empty without the extra `prove`; `backtest` is what the rule file, taken through that time, would
    have changed, None without any. `floor` is what a condition is worth by chance; `dropped` are
    those that found nothing in the time between learning and judging, or met more people there than
    a quiet time pays for.
    """

    text: str
    conditions: tuple[SuggestedCondition, ...]
    together: StoppedFigures
    payments: int
    frauds: int
    incidents: int
    floor: float
    dropped: tuple[str, ...]
    set_aside: Mapping[str, int]
    judged_since: int
    proved: tuple[ProvedCondition, ...] = ()
    backtest: Report | None = None
