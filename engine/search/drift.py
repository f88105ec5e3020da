"""Whether scores still mean what they did: per week, how their distribution shifted, and how many
frauds they predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.thresholds import FindScoreBands, ScoreBand

WEEK = 7 * 86_400_000_000
MOST_WEEKS = 53
SHIFTED = 0.25
"""A population stability index from here on is commonly read as a change; below 0.1, as none."""
_BEFORE = 4
_PARTS = 10
_UNSEEN = 0.5
"""Added to each part's count on both sides, so that no share is 0."""


class ScoreWeek(Struct, frozen=True):
    """Seven days from `since` (µs). `payments` were scored; `shift` is the population stability
    index of their scores against those of the four weeks before, None if either has no payments.

    `known` payments are labelled, or too old for a label still to come. Of these, `expected` is the
    number of frauds that their scores predict, `frauds` the actual number.
    """

    since: int
    payments: int
    shift: float | None
    known: int
    expected: float
    frauds: int


class FindScoreWeeks(Struct, frozen=True, tag=True):
    """How the scores of the payments that match a filter shifted from week to week, up to the filter's
    end, or up to `now` (µs), oldest first; at most `MOST_WEEKS`.
    """

    wanted: Filter
    now: int

    def answer(self, index: AccountIndex) -> list[ScoreWeek]:
        until = self.now if self.wanted.until is None else min(self.wanted.until, self.now)
        since = until - 8 * WEEK if self.wanted.since is None else self.wanted.since
        count = min(MOST_WEEKS, max(1, -(-(until - since) // WEEK)))
        starts = [until - number * WEEK for number in range(count + _BEFORE, 0, -1)]
        bands = [
            FindScoreBands(replace(self.wanted, since=start, until=start + WEEK), self.now).answer(
                index
            )
            for start in starts
        ]
        scored = [[_payments(band) for band in each] for each in bands]
        return [
            _week(
                starts[place], bands[place], scored[place], _total(scored[place - _BEFORE : place])
            )
            for place in range(_BEFORE, len(starts))
        ]


def population_stability(before: Sequence[int], after: Sequence[int]) -> float | None:
    """Return the population stability index of two counts by score, over parts that each hold a
    tenth of `before`.
    """
    if not sum(before) or not sum(after):
        return None
    parts = _tenths(before)
    pairs = [(sum(before[part]) + _UNSEEN, sum(after[part]) + _UNSEEN) for part in parts]
    totals = [sum(side) for side in zip(*pairs, strict=True)]
    shares = [(old / totals[0], new / totals[1]) for old, new in pairs]
    return float(sum((new - old) * log(new / old) for old, new in shares))


def _tenths(counts: Sequence[int]) -> list[slice]:
    """Split the scores into ranges that each hold a tenth of the payments, or more where one score
    does.
    """
    least, held, start = sum(counts) / _PARTS, 0, 0
    parts = []
    for score, count in enumerate(counts):
        held += count
        if held >= least:
            parts.append(slice(start, score + 1))
            held, start = 0, score + 1
    return [*parts, slice(start, len(counts))] if start < len(counts) else parts


def _week(
    since: int, bands: Sequence[ScoreBand], scored: Sequence[int], before: Sequence[int]
) -> ScoreWeek:
    known = [band.people.payments + band.frauds.payments for band in bands]
    return ScoreWeek(
        since=since,
        payments=sum(scored),
        shift=population_stability(before, scored),
        known=sum(known),
        expected=sum(band.score * count for band, count in zip(bands, known, strict=True)) / 100,
        frauds=sum(band.frauds.payments for band in bands),
    )


def _payments(band: ScoreBand) -> int:
    return band.people.payments + band.frauds.payments + band.unripe


def _total(weeks: Sequence[Sequence[int]]) -> list[int]:
    return [sum(counts) for counts in zip(*weeks, strict=True)]
