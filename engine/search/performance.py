"""How a rule performs: per condition and version, what it decided and what became of that."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from msgspec import Struct

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.search.blocks import SHIFT, descending, numbers_below, numbers_from
from tollkeeper.engine.search.figures import sum_of
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.reading import _LAST, AccountIndex, Selection
from tollkeeper.engine.search.spans import spans
from tollkeeper.engine.search.tally import Tally, tally
from tollkeeper.engine.search.terms import NO_VALUE, Facet, entities_of, read_facts

MATURE = 45 * DAY
"""A payment younger than this may still get a chargeback: most arrive within it."""
COME_BACK = 7 * DAY
"""Whoever was refused and pays within this came back."""
MOST_REFUSED = 100
"""Of how many refused payments, the newest, it is looked up whether they came back."""
_Z = 1.96


class Precision(Struct, frozen=True):
    """Of hits that are labelled for sure, the share of fraud, with its 95 % interval (Wilson)."""

    labelled: int
    fraud: int
    share: float | None
    low: float | None
    high: float | None


class CameBack(Struct, frozen=True):
    """Of the newest `of` refused payments, how many were followed within 7 days by a payment with
    the same card or user that succeeded.
    """

    of: int
    succeeded: int


class ConditionPerformance(Struct, frozen=True):
    """`condition` is None for payments on which none was met. `immature` is the share of hits that
    are too young for their labels to be final. `by_score_too` are those that the score alone would
    have brought to denial. `last` (µs) is the last hit ever, None without one. `trend` are hits by
    day.
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
    """Each version's conditions that had hits in the time, then those of `conditions` (version and
    id) that had none. `deny_from` is the score (hundredths) from which the account denies.
    """
    names = index.names(Facet.CONDITION)
    of_rule = Filter(since=since, until=until, terms=(((Facet.RULE, rule),),))
    selection = Selection(index, of_rule)
    sets: dict[tuple[int, int], dict[int, int]] = {}
    for block in selection.blocks():
        members = selection.members(block)
        if not members:
            continue
        versions = list(index.facet(Facet.VERSION, block))
        for condition, having in index.facet(Facet.CONDITION, block):
            for version, of_version in versions:
                both = members & having & of_version
                if both:
                    sets.setdefault((version, condition), {})[block] = both
    for version, name in conditions:
        sets.setdefault((version, index.value(Facet.CONDITION, name)), {})
    days = spans(index, since, until, "day", zone)
    trends = [(day.first, day.beyond) for day in days]
    mature = index.sequence_at(until - MATURE, 0)
    return [
        ConditionPerformance(
            condition=names.get(condition, _name_of(index, conditions, condition)) or None,
            version=version,
            tally=(counted := tally(index, hits.items())),
            money=_money(index, hits),
            precision=_precision(counted),
            immature=_share(hits, mature, _LAST, counted.payments),
            came_back=_came_back(index, hits),
            by_score_too=_count_above(index, hits, deny_from),
            last=_last(index, rule, version, condition, hits),
            trend=tuple(_count_within(hits, *stretch) for stretch in trends),
        )
        for (version, condition), hits in sorted(
            sets.items(), key=lambda each: (-each[0][0], -sum(map(int.bit_count, each[1].values())))
        )
    ]


def _name_of(index: AccountIndex, conditions: tuple[tuple[int, str], ...], value: int) -> str:
    return next(
        (name for _, name in conditions if index.value(Facet.CONDITION, name) == value), NO_VALUE
    )


def _money(index: AccountIndex, hits: Mapping[int, int]) -> dict[str, int]:
    money: dict[str, int] = {}
    for block, members in hits.items():
        for currency, amount in sum_of(index, block, members).items():
            money[currency] = money.get(currency, 0) + amount
    return money


def _precision(counted: Tally) -> Precision:
    fraud = counted.labels["fraud"]
    labelled = fraud + counted.labels["legitimate"]
    if not labelled:
        return Precision(0, 0, None, None, None)
    return Precision(labelled, fraud, fraud / labelled, *interval(fraud, labelled))


def interval(part: int, whole: int) -> tuple[float, float]:
    """Where the share of `part` in `whole` lies with 95 % (Wilson)."""
    share = part / whole
    middle = (share + _Z**2 / (2 * whole)) / (1 + _Z**2 / whole)
    spread = _Z / (1 + _Z**2 / whole)
    spread *= sqrt(share * (1 - share) / whole + _Z**2 / (4 * whole**2))
    return max(middle - spread, 0.0), min(middle + spread, 1.0)


def _count_within(hits: Mapping[int, int], first: int, beyond: int) -> int:
    return sum(
        (members & numbers_from(block, first) & numbers_below(block, beyond)).bit_count()
        for block, members in hits.items()
    )


def _share(hits: Mapping[int, int], first: int, beyond: int, payments: int) -> float | None:
    return _count_within(hits, first, beyond) / payments if payments else None


def _count_above(index: AccountIndex, hits: Mapping[int, int], score: int) -> int:
    return sum(
        (members & having).bit_count()
        for block, members in hits.items()
        for value, having in index.facet(Facet.SCORE, block)
        if value >= score
    )


def _last(
    index: AccountIndex, rule: str, version: int, condition: int, hits: Mapping[int, int]
) -> int | None:
    """The last hit ever; those in the time are looked at first."""
    if hits:
        block = max(hits)
        return index.arrived((block << SHIFT) + hits[block].bit_length() - 1)
    for block in index.blocks(0, index.last + 1):
        members = index.members(Facet.CONDITION, condition, block)
        members &= index.members(Facet.RULE, index.value(Facet.RULE, rule), block)
        members &= index.members(Facet.VERSION, version, block)
        if members:
            return index.arrived((block << SHIFT) + members.bit_length() - 1)
    return None


def _came_back(index: AccountIndex, hits: Mapping[int, int]) -> CameBack:
    looked, succeeded = 0, 0
    denied = index.value(Facet.ACTION, "deny")
    for block in sorted(hits, reverse=True):
        refused = hits[block] & index.members(Facet.ACTION, denied, block)
        for sequence in descending(block, refused):
            if looked == MOST_REFUSED:
                return CameBack(looked, succeeded)
            looked += 1
            succeeded += _succeeded_later(index, sequence)
    return CameBack(looked, succeeded)


def _succeeded_later(index: AccountIndex, sequence: int) -> bool:
    known = index.tail.known(sequence, index.last)
    if known is None:
        return False
    beyond = min(index.sequence_at(known.arrived + COME_BACK, 0), index.last + 1)
    blocks = index.blocks(sequence + 1, beyond)
    paid = index.value(Facet.STATUS, "succeeded")
    for facet, text in entities_of(read_facts(known)):
        if facet not in (Facet.CARD, Facet.USER):
            continue
        for block, members in index.members_in(facet, index.value(facet, text), blocks).items():
            later = members & numbers_from(block, sequence + 1) & numbers_below(block, beyond)
            if later & index.members(Facet.STATUS, paid, block):
                return True
    return False
