"""The questions that the index answers, as they are sent to the process that keeps it."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from tollkeeper.engine.labels.label import LabelSource, Verdict
from tollkeeper.engine.search.commonest import By
from tollkeeper.engine.search.drift import ScoreWeek, score_weeks
from tollkeeper.engine.search.figures import Dimension, Figure, figures
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.find import (
    FoundPage,
    NewPayments,
    Sort,
    count_matches,
    find,
    find_new,
)
from tollkeeper.engine.search.find_labels import LabelPage, find_labels
from tollkeeper.engine.search.holdout import FalsePositives, false_positives
from tollkeeper.engine.search.movers import Mover, movers
from tollkeeper.engine.search.performance import ConditionPerformance, performance
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.related import RelatedPayments, find_related
from tollkeeper.engine.search.scores import ScoreBucket, scores
from tollkeeper.engine.search.spans import Every
from tollkeeper.engine.search.thresholds import ScoreBand, score_bands


class FindPayments(Struct, frozen=True, tag=True):
    """A page of the payments that a filter takes."""

    wanted: Filter
    cursor: int | None
    limit: int
    sort: Sort = "newest"

    def answer(self, index: AccountIndex) -> FoundPage:
        return find(index, self.wanted, self.cursor, self.limit, self.sort)


class FindNew(Struct, frozen=True, tag=True):
    """The payments that match a filter and came after a position in the journal."""

    wanted: Filter
    after: int | None
    limit: int

    def answer(self, index: AccountIndex) -> NewPayments:
        return find_new(index, self.wanted, self.after, self.limit)


class CountPayments(Struct, frozen=True, tag=True):
    """The number of payments that match a filter."""

    wanted: Filter

    def answer(self, index: AccountIndex) -> int:
        return count_matches(index, self.wanted)


class FindRelated(Struct, frozen=True, tag=True):
    """For each entity of a payment, the payments that share it and arrived at `since` (µs) or
    later; only of `merchants` where given.
    """

    payment: str
    since: int | None
    merchants: tuple[str, ...] = ()

    def answer(self, index: AccountIndex) -> list[RelatedPayments] | None:
        return find_related(index, self.payment, self.since, self.merchants)


class FindLabels(Struct, frozen=True, tag=True):
    """A page of labels, newest first; limited by instant (µs), source or verdict."""

    since: int | None
    source: LabelSource | None
    label: Verdict | None
    cursor: int | None
    limit: int

    def answer(self, index: AccountIndex) -> LabelPage:
        return find_labels(index, self.since, self.source, self.label, self.cursor, self.limit)


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


class FindMovers(Struct, frozen=True, tag=True):
    """The values whose number of payments from `since` to before `until` (µs) is the most unusual."""

    dimensions: tuple[By, ...]
    since: int
    until: int
    limit: int

    def answer(self, index: AccountIndex) -> list[Mover]:
        return movers(index, self.dimensions, self.since, self.until, self.limit)


class FindScores(Struct, frozen=True, tag=True):
    """The number of payments for each score from 0 to 100, by a dimension."""

    wanted: Filter
    by: Dimension

    def answer(self, index: AccountIndex) -> list[ScoreBucket]:
        return scores(index, self.wanted, self.by)


class FindFalsePositives(Struct, frozen=True, tag=True):
    """The outcomes of held-out payments that match a filter; `now` in µs."""

    wanted: Filter
    now: int

    def answer(self, index: AccountIndex) -> FalsePositives:
        return false_positives(index, self.wanted, self.now)


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


class FindScoreBands(Struct, frozen=True, tag=True):
    """The score bands from 0 to 100 of the payments that match a filter; `now` in µs."""

    wanted: Filter
    now: int

    def answer(self, index: AccountIndex) -> list[ScoreBand]:
        return score_bands(index, self.wanted, self.now)


class FindScoreWeeks(Struct, frozen=True, tag=True):
    """How the scores of the payments that match a filter shifted from week to week; `now` in µs."""

    wanted: Filter
    now: int

    def answer(self, index: AccountIndex) -> list[ScoreWeek]:
        return score_weeks(index, self.wanted, self.now)


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
