"""The exact distribution of scores: with two decimals, 101 counts hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from tollkeeper.engine.search.figures import Dimension
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.numbers_by_bits import by_number
from tollkeeper.engine.search.reading import AccountIndex, Selection
from tollkeeper.engine.search.settled import PaidByLabel, settled_paid
from tollkeeper.engine.search.terms import Facet

SCORE_BUCKETS = 101


class ScoreBucket(Struct, frozen=True):
    """The number of payments with one score (hundredths), and how many of them have each value."""

    score: int
    payments: int
    by: Mapping[str, int]


def by_score(index: AccountIndex, block: int, members: int) -> Iterator[tuple[int, int]]:
    """Each score (hundredths) that payments of a block have, with those payments."""
    for number, scored in by_number(index.facet(Facet.SCORE, block), members):
        if number:
            yield number - 1, scored


class FindScores(Struct, frozen=True, tag=True):
    """The number of payments for each score from 0 to 100, by a dimension."""

    wanted: Filter
    by: Dimension

    def answer(self, index: AccountIndex) -> list[ScoreBucket]:
        facet = Facet[self.by.upper()]
        names = index.names(facet)
        totals = [0] * SCORE_BUCKETS
        shares: list[dict[str, int]] = [{} for _ in range(SCORE_BUCKETS)]
        selection = Selection(index, self.wanted)
        for block in selection.blocks():
            members = selection.members(block)
            if not members:
                continue
            paid = None
            if facet is Facet.LABEL and members == index.members(Facet.PAYMENT, 0, block):
                paid = settled_paid(index, block)
            if paid is not None:
                _add_settled(paid, names, totals, shares)
                continue
            values = [
                (names.get(value, str(value)) or "none", having & members)
                for value, having in index.facet(facet, block).items()
                if having & members
            ]
            for score, scored in by_score(index, block, members):
                totals[score] += scored.bit_count()
                for name, of_value in values:
                    both = (scored & of_value).bit_count()
                    if both:
                        shares[score][name] = shares[score].get(name, 0) + both
        return [ScoreBucket(score, totals[score], shares[score]) for score in range(SCORE_BUCKETS)]


def _add_settled(
    paid: PaidByLabel, names: Mapping[int, str], totals: list[int], shares: list[dict[str, int]]
) -> None:
    """Add a block's stored counts by label."""
    for label, several in paid.items():
        name = names.get(label)
        for each in several:
            if each.score is None:
                continue
            totals[each.score] += each.payments
            if name is not None:
                share = shares[each.score]
                share[name] = share.get(name, 0) + each.payments
