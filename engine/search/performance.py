"""How a rule performs: for each condition and version, its hits and what became of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import reduce
from itertools import islice, repeat
from math import sqrt
from operator import and_

from msgspec import Struct

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.search.blocks import (
    SHIFT,
    SIZE,
    descending,
    numbers_from,
    sliceable,
    stretch,
)
from tollkeeper.engine.search.came_back import came_back
from tollkeeper.engine.search.figures import money_of
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.numbers_by_bits import at_least
from tollkeeper.engine.search.outcomes import OUTCOMES
from tollkeeper.engine.search.reading import AccountIndex, Selection
from tollkeeper.engine.search.scores import SCORE_BUCKETS
from tollkeeper.engine.search.settled import Hits, settled_hits
from tollkeeper.engine.search.spans import SpanPart, spans, spans_of_part
from tollkeeper.engine.search.tally import Tally, Tallying
from tollkeeper.engine.search.terms import NO_VALUE, Facet

MATURE = 45 * DAY
"""A payment younger than this may still get a chargeback; most arrive within this time."""
MOST_REFUSED = 100
"""How many refused payments, the newest, are checked for customers who came back."""
_Z = 1.96
_DENIED = 1 + OUTCOMES.index((Facet.ACTION, "deny"))
"""The position of denials in `OutcomeCounts`."""


class Precision(Struct, frozen=True):
    """The share of fraud among labelled hits, with its 95 % interval (Wilson)."""

    labelled: int
    fraud: int
    share: float | None
    low: float | None
    high: float | None


class CameBack(Struct, frozen=True):
    """The ids of the newest `refused` payments, and of those that were followed within 7 days by a
    payment with the same card or user that succeeded.
    """

    refused: tuple[str, ...]
    followed: tuple[str, ...]


class ConditionPerformance(Struct, frozen=True):
    """The hits of a condition; `condition` is None for payments that met none. `immature` is the
    share of hits that are too young for their labels to be final. `by_score_too` counts hits that
    the score alone would have denied. `last` (µs) is the last hit of all time, None without one.
    `trend` is the number of hits per day.
    """

    condition: str | None
    version: int
    tally: Tally
    money: Mapping[str, int]
    precision: Precision
    immature: float | None
    came_back: CameBack
    by_score_too: int
    last: int | None
    trend: tuple[int, ...]


def performance(
    index: AccountIndex,
    rule: str,
    conditions: tuple[tuple[int, str], ...],
    since: int,
    until: int,
    deny_from: int,
    zone: str,
) -> list[ConditionPerformance]:
    """Return, for each version, the conditions with hits in this time, then those of `conditions`
    (version and id) without. `deny_from` is the score (hundredths) from which the account denies.
    """
    names = index.names(Facet.CONDITION)
    of_rule = Filter(since=since, until=until, terms=(((Facet.RULE, rule),),))
    selection = Selection(index, of_rule)
    days = spans(index, since, until, "day", zone)
    mature = index.sequence_at(until - MATURE, 0)
    found: defaultdict[tuple[int, int], _Counting]
    found = defaultdict(lambda: _Counting(index, len(days), mature, deny_from))
    for block in selection.blocks():
        days_of_block = [*spans_of_part(days, block)]
        kept = settled_hits(index, block) if selection.has_whole(block) else None
        if kept is not None:
            for hits in kept:
                if hits.rule == index.value(Facet.RULE, rule):
                    found[hits.version, hits.condition].add_settled(block, hits, days_of_block)
            continue
        members = selection.members(block)
        if not members:
            continue
        versions = index.facet(Facet.VERSION, block)
        for condition, having in index.facet(Facet.CONDITION, block).items():
            for version, of_version in versions.items():
                both = members & having & of_version
                if both:
                    found[version, condition].add(block, both, days_of_block)
    for version, name in conditions:
        found[version, index.value(Facet.CONDITION, name)]
    refused = {
        sequence: entry
        for counting in found.values()
        for sequence in counting.refused
        if (entry := index.tail.known(sequence, index.last)) is not None
    }
    followed = came_back(index, refused.values())
    return [
        counting.performance(
            condition=names.get(condition, _name_of(index, conditions, condition)) or None,
            version=version,
            last=counting.last or _last(index, rule, version, condition),
            came_back=CameBack(
                tuple(refused[each].id for each in counting.refused if each in refused),
                tuple(refused[each].id for each in counting.refused if each in followed),
            ),
        )
        for (version, condition), counting in sorted(
            found.items(), key=lambda each: (-each[0][0], -each[1].payments)
        )
    ]


class _Counting:
    """Counts one condition's hits, block after block, from the last block to the first."""

    def __init__(self, index: AccountIndex, days: int, mature: int, deny_from: int) -> None:
        self.payments = 0
        self.last: int | None = None
        self.refused: list[int] = []
        self._index = index
        self._mature = mature
        self._deny_from = deny_from
        self._denying = range(deny_from, SCORE_BUCKETS)
        self._tallying = Tallying(index)
        self._money: Counter[str] = Counter()
        self._immature = self._by_score_too = 0
        self._trend = [0] * days

    def add(self, block: int, hits: int, days: list[SpanPart]) -> None:
        """Count the hits of a block, of which these parts are of these days."""
        index, base = self._index, block << SHIFT
        if self.last is None:
            self.last = index.arrived(base + hits.bit_length() - 1)
        self.payments += hits.bit_count()
        self._tallying.add(block, hits)
        self._money.update(money_of(index, block, hits))
        above = at_least(index.facet(Facet.SCORE, block), self._deny_from + 1, hits)
        self._by_score_too += above.bit_count()
        self._add_by_time(block, hits, days)
        self._add_refused(block, hits)

    def _add_by_time(self, block: int, hits: int, days: list[SpanPart]) -> None:
        self._immature += (hits & numbers_from(block, self._mature)).bit_count()
        piece = sliceable(hits)
        for number, low, high in days:
            self._trend[number] += stretch(piece, low, high).bit_count()

    def add_settled(self, block: int, hits: Hits, days: list[SpanPart]) -> None:
        """Count a whole block from its stored totals, as `add` would."""
        self.payments += hits.counts[0]
        self._tallying.add_counts(hits.counts)
        names = self._index.names(Facet.CURRENCY)
        for currency, paid in hits.money.items():
            self._money[names[currency]] += paid
        self._by_score_too += sum(map(hits.scores.get, self._denying, repeat(0)))
        base = block << SHIFT
        is_of_one_day = len(days) == 1 and not base < self._mature < base + SIZE
        if is_of_one_day:
            self._immature += hits.counts[0] if self._mature <= base else 0
            self._trend[days[0][0]] += hits.counts[0]
        are_refused = hits.counts[_DENIED] and len(self.refused) < MOST_REFUSED
        if is_of_one_day and self.last is not None and not are_refused:
            return
        own = self._hits(block, hits)
        if not is_of_one_day:
            self._add_by_time(block, own, days)
        self.last = self.last or self._index.arrived(base + own.bit_length() - 1)
        self._add_refused(block, own)

    def _hits(self, block: int, hits: Hits) -> int:
        """Return the set of payments that the stored hits count."""
        index = self._index
        # Every condition needs the sets of rules and versions: `facet` caches them.
        own = index.facet(Facet.RULE, block).get(hits.rule, 0)
        own &= index.facet(Facet.VERSION, block).get(hits.version, 0)
        return own & index.members(Facet.CONDITION, hits.condition, block)

    def _add_refused(self, block: int, hits: int) -> None:
        index, left = self._index, MOST_REFUSED - len(self.refused)
        if left:
            refused = hits & index.members(Facet.ACTION, index.value(Facet.ACTION, "deny"), block)
            self.refused += islice(descending(block, refused), left)

    def performance(
        self, condition: str | None, version: int, last: int | None, came_back: CameBack
    ) -> ConditionPerformance:
        """Return the figures of all counted hits."""
        counted = self._tallying.tally()
        return ConditionPerformance(
            condition=condition,
            version=version,
            tally=counted,
            money=dict(self._money),
            precision=_precision(counted),
            immature=self._immature / self.payments if self.payments else None,
            came_back=came_back,
            by_score_too=self._by_score_too,
            last=last,
            trend=tuple(self._trend),
        )


def _name_of(index: AccountIndex, conditions: tuple[tuple[int, str], ...], value: int) -> str:
    return next(
        (name for _, name in conditions if index.value(Facet.CONDITION, name) == value), NO_VALUE
    )


def _precision(counted: Tally) -> Precision:
    fraud = counted.labels["fraud"]
    labelled = fraud + counted.labels["legitimate"]
    if not labelled:
        return Precision(0, 0, None, None, None)
    return Precision(labelled, fraud, fraud / labelled, *interval(fraud, labelled))


def interval(part: int, whole: int) -> tuple[float, float]:
    """Return the 95 % interval (Wilson) of the share of `part` in `whole`."""
    share = part / whole
    middle = (share + _Z**2 / (2 * whole)) / (1 + _Z**2 / whole)
    spread = _Z / (1 + _Z**2 / whole)
    spread *= sqrt(share * (1 - share) / whole + _Z**2 / (4 * whole**2))
    return max(middle - spread, 0.0), min(middle + spread, 1.0)


def _last(index: AccountIndex, rule: str, version: int, condition: int) -> int | None:
    """Return the time (µs) of the last hit of all time."""
    terms = (
        (Facet.VERSION, version),
        (Facet.CONDITION, condition),
        (Facet.RULE, index.value(Facet.RULE, rule)),
    )
    blocks = index.blocks(0, index.last + 1)
    for facet, value in terms:
        blocks = index.blocks_having(facet, value, blocks)
    for block in blocks:
        members = reduce(and_, (index.members(facet, value, block) for facet, value in terms))
        if members:
            return index.arrived((block << SHIFT) + members.bit_length() - 1)
    return None
