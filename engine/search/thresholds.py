"""What thresholds on the score would do, computed from labels: who is stopped, and what that costs.

Scores have two decimals, so 101 bands are enough for any pair of thresholds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from msgspec import Struct

from tollkeeper.engine.registry.changes import Costs, Thresholds
from tollkeeper.engine.registry.settings import BASIS_POINTS
from tollkeeper.engine.search.blocks import numbers_from
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.performance import MATURE
from tollkeeper.engine.search.reading import ABSENT, AccountIndex, Selection
from tollkeeper.engine.search.scores import by_score
from tollkeeper.engine.search.settled import Paid, count_paid, settled_paid
from tollkeeper.engine.search.terms import Facet

HIGHEST = 100


class PaidTotal(Struct, frozen=True):
    """A number of payments; by currency, `money` is the sum of their amounts in hundredths,
    `counts` their number.
    """

    payments: int
    money: Mapping[str, int]
    counts: Mapping[str, int]


class ScoreBand(Struct, frozen=True):
    """The payments with one score (hundredths). `people` are labelled legitimate, or have no label
    and are too old to get one; `unripe` have no label yet.
    """

    score: int
    people: PaidTotal
    frauds: PaidTotal
    unripe: int


class ThresholdOutcome(Struct, frozen=True):
    """The result of a pair of thresholds: how many people and frauds are challenged and denied.
    `cost` (hundredths, by currency) assumes that a challenge stops every fraud.
    """

    thresholds: Thresholds
    people_challenged: int
    people_denied: int
    frauds_challenged: int
    frauds_denied: int
    cost: Mapping[str, int]


class FindScoreBands(Struct, frozen=True, tag=True):
    """The score bands from 0 to 100 of the payments that match a filter; `now` in µs."""

    wanted: Filter
    now: int

    def answer(self, index: AccountIndex) -> list[ScoreBand]:
        ripe_before = index.sequence_at(self.now - MATURE, 0)
        selection = Selection(index, self.wanted)
        currencies = index.names(Facet.CURRENCY)
        found: dict[int, list[_PaidCounter]] = {
            score: [_PaidCounter(), _PaidCounter()] for score in range(HIGHEST + 1)
        }
        unripe: defaultdict[int, int] = defaultdict(int)
        for block in selection.blocks():
            members = selection.members(block)
            people, frauds, waiting = _paid_apart(index, block, members, ripe_before)
            for place, several in enumerate((people, frauds)):
                for paid in several:
                    if paid.score is not None:
                        found[paid.score][place].add(paid, currencies[paid.currency])
            for score, payments in waiting:
                unripe[score] += payments
        return [
            ScoreBand(score, people.paid(), frauds.paid(), unripe[score])
            for score, (people, frauds) in found.items()
        ]


def _paid_apart(
    index: AccountIndex, block: int, members: int, ripe_before: int
) -> tuple[Iterable[Paid], Iterable[Paid], Iterable[tuple[int, int]]]:
    """Return people's payments and frauds, counted by score, and the number of unripe payments by
    score; see `split_by_outcome`.
    """
    kept = None
    young = members & numbers_from(block, ripe_before)
    if young in (0, members) and members == index.members(Facet.PAYMENT, 0, block):
        kept = settled_paid(index, block)
    if kept is None:
        people, frauds, waiting = split_by_outcome(index, block, members, ripe_before)
        counted = [(score, of.bit_count()) for score, of in by_score(index, block, waiting)]
        return count_paid(index, block, people), count_paid(index, block, frauds), counted
    fraud, legitimate = (
        kept.get(index.value(Facet.LABEL, name), []) for name in ("fraud", "legitimate")
    )
    if not young:
        return [*legitimate, *kept[ABSENT]], fraud, []
    unlabelled = [(each.score, each.payments) for each in kept[ABSENT]]
    return legitimate, fraud, [(score, of) for score, of in unlabelled if score is not None]


def split_by_outcome(
    index: AccountIndex, block: int, members: int, ripe_before: int
) -> tuple[int, int, int]:
    """Split a block's payments into people's, frauds and unripe ones. People's are labelled
    legitimate, or have no label and came before the sequence number `ripe_before`.
    """
    labelled = index.facet(Facet.LABEL, block)
    unlabelled = members
    for having in labelled.values():
        unlabelled &= ~having
    fraud, legitimate = (
        members & labelled.get(index.value(Facet.LABEL, name), 0)
        for name in ("fraud", "legitimate")
    )
    young = numbers_from(block, ripe_before)
    return legitimate | unlabelled & ~young, fraud, unlabelled & young


class _PaidCounter:
    def __init__(self) -> None:
        self._payments = 0
        self._money: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def add(self, paid: Paid, currency: str) -> None:
        self._payments += paid.payments
        self._money[currency] += paid.hundredths
        self._counts[currency] += paid.payments

    def paid(self) -> PaidTotal:
        return PaidTotal(self._payments, dict(self._money), dict(self._counts))


def outcome(bands: Sequence[ScoreBand], thresholds: Thresholds, costs: Costs) -> ThresholdOutcome:
    """Return what the thresholds would have done to the payments of all bands."""
    challenged = bands[thresholds.challenge : thresholds.deny]
    denied = bands[thresholds.deny :]
    stopped = min(thresholds.challenge, thresholds.deny)
    currencies = {name for band in bands for name in _currencies(band)}
    cost = {
        name: sum(_passing(band, costs, name) for band in bands[:stopped])
        + sum(_challenging(band, costs, name) for band in challenged)
        + sum(_denying(band, costs, name) for band in denied)
        for name in sorted(currencies)
    }
    return ThresholdOutcome(
        thresholds,
        people_challenged=sum(band.people.payments for band in challenged),
        people_denied=sum(band.people.payments for band in denied),
        frauds_challenged=sum(band.frauds.payments for band in challenged),
        frauds_denied=sum(band.frauds.payments for band in denied),
        cost={name: round(amount / BASIS_POINTS**2) for name, amount in cost.items()},
    )


def cheapest(bands: Sequence[ScoreBand], costs: Costs, currency: str) -> ThresholdOutcome:
    """Return the pair of thresholds with the least cost in a currency; of equal ones, the highest."""
    passed, challenged, denied = (
        list(accumulate((of(band, costs, currency) for band in bands), initial=0))
        for of in (_passing, _challenging, _denying)
    )

    def cost(pair: Thresholds) -> int:
        challenge, deny = pair.challenge, pair.deny
        between = challenged[deny] - challenged[challenge]
        return passed[challenge] + between + denied[-1] - denied[deny]

    pairs = (
        Thresholds(challenge, deny)
        for deny in range(HIGHEST, 0, -1)
        for challenge in range(deny, 0, -1)
    )
    return outcome(bands, min(pairs, key=cost), costs)


def usual_currency(bands: Iterable[ScoreBand]) -> str | None:
    """Return the currency of the most payments; None without payments."""
    counts: Counter[str] = Counter()
    for band in bands:
        counts.update(band.people.counts)
        counts.update(band.frauds.counts)
    return max(counts, key=lambda name: (counts[name], name), default=None)


# Costs of a band, in hundredths times the square of `BASIS_POINTS`.


def _passing(band: ScoreBand, costs: Costs, currency: str) -> int:
    frauds = band.frauds
    fees = costs.chargeback * frauds.counts.get(currency, 0)
    return (frauds.money.get(currency, 0) + fees) * BASIS_POINTS**2


def _challenging(band: ScoreBand, costs: Costs, currency: str) -> int:
    return band.people.money.get(currency, 0) * costs.margin * costs.challenge_lost


def _denying(band: ScoreBand, costs: Costs, currency: str) -> int:
    return band.people.money.get(currency, 0) * costs.margin * BASIS_POINTS


def _currencies(band: ScoreBand) -> Iterable[str]:
    return {*band.people.counts, *band.frauds.counts}
