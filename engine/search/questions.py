"""The questions that the index answers, as they are sent to the process that keeps it."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from tollkeeper.engine.search.drift import FindScoreWeeks
from tollkeeper.engine.search.figures import Dimension, Figure, figures
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.find import CountPayments, FindNew, FindPayments
from tollkeeper.engine.search.find_labels import FindLabels
from tollkeeper.engine.search.holdout import FindFalsePositives
from tollkeeper.engine.search.movers import FindMovers
from tollkeeper.engine.search.performance import ConditionPerformance, performance
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.related import FindRelated
from tollkeeper.engine.search.scores import FindScores
from tollkeeper.engine.search.spans import Every
from tollkeeper.engine.search.thresholds import FindScoreBands


class FindFigures(Struct, frozen=True, tag=True):
    """Counts and rates of the payments that match a filter, from `since` to `until` (µs), in steps
    of `every` in a time zone, by a dimension; `money` adds amounts.
    """

    wanted: Filter
    since: int
    until: int
    every: Every | None
    zone: str
    by: Dimension | None
    money: bool

    def answer(self, index: AccountIndex) -> list[Figure]:
        return figures(
            index, self.wanted, self.since, self.until, self.every, self.zone, self.by, self.money
        )


class FindPerformance(Struct, frozen=True, tag=True):
    """The outcomes of the payments that each condition of a rule decided, from `since` to `until`
    (µs).
    """

    rule: str
    conditions: tuple[tuple[int, str], ...]
    since: int
    until: int
    deny_from: int
    zone: str

    def answer(self, index: AccountIndex) -> list[ConditionPerformance]:
        return performance(
            index,
            self.rule,
            self.conditions,
            self.since,
            self.until,
            self.deny_from,
            self.zone,
        )


Question: TypeAlias = (
    FindPayments
    | FindNew
    | CountPayments
    | FindRelated
    | FindLabels
    | FindFigures
    | FindMovers
    | FindScores
    | FindPerformance
    | FindScoreBands
    | FindScoreWeeks
    | FindFalsePositives
)
