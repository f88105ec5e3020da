"""Counts stored for a block that no longer changes: payments by score, and hits of rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from tollkeeper.engine.search.blocks import are_members, descending
from tollkeeper.engine.search.numbers_by_bits import by_number, sum_of
from tollkeeper.engine.search.outcomes import OutcomeCounts
from tollkeeper.engine.search.reading import ABSENT, AccountIndex
from tollkeeper.engine.search.tally import count_set
from tollkeeper.engine.search.terms import Facet

FEW_MEMBERS = 256
"""Up to this many payments of a block are counted one at a time."""


class Paid(Struct, frozen=True, array_like=True, gc=False):
    """The payments of one currency with one score (hundredths; None for those without): their
    number and the sum of their amounts in hundredths.
    """

    currency: int
    score: int | None
    payments: int
    hundredths: int


class Hits(Struct, frozen=True, array_like=True):
    """The payments that a rule's version decided by one condition, or by none: their outcomes, the
    sum of their amounts by currency, and their number by score (both in hundredths).
    """

    rule: int
    version: int
    condition: int
    counts: OutcomeCounts
    money: Mapping[int, int]
    scores: Mapping[int, int]


PaidByLabel = dict[int, list[Paid]]
"""By label; `ABSENT` stands for none."""

_encode = msgspec.msgpack.Encoder().encode
_decode_paid = msgspec.msgpack.Decoder(PaidByLabel).decode
_decode_hits = msgspec.msgpack.Decoder(list[Hits]).decode


def keep_settled(index: AccountIndex, block: int) -> None:
    """Count a block and store the counts; they are dropped when the block changes."""
    payments = index.members(Facet.PAYMENT, 0, block)
    paid, left = PaidByLabel(), payments
    for label, having in index.facet(Facet.LABEL, block).items():
        paid[label] = [*count_paid(index, block, payments & having)]
        left &= ~having
    paid[ABSENT] = [*count_paid(index, block, left)]
    index.connection.execute(
        "INSERT OR REPLACE INTO settled VALUES (?, ?, ?, ?)",
        (index.account, block, _encode(paid), _encode([*_count_hits(index, block, payments)])),
    )


def settled_paid(index: AccountIndex, block: int) -> PaidByLabel | None:
    """Return a block's stored payments by label; None if nothing is stored."""
    row = index.connection.execute(
        "SELECT paid FROM settled WHERE account = ? AND block = ?", (index.account, block)
    ).fetchone()
    return None if row is None else _decode_paid(row[0])


def settled_hits(index: AccountIndex, block: int) -> list[Hits] | None:
    """Return a block's stored hits of rules; None if nothing is stored."""
    row = index.connection.execute(
        "SELECT hits FROM settled WHERE account = ? AND block = ?", (index.account, block)
    ).fetchone()
    return None if row is None else _decode_hits(row[0])


def count_paid(index: AccountIndex, block: int, members: int) -> Iterator[Paid]:
    """Count a set of a block by currency and score."""
    if members.bit_count() <= FEW_MEMBERS:
        yield from _count_few(index, block, [*descending(0, members)])
        return
    amounts, scores = index.facet(Facet.AMOUNT, block), index.facet(Facet.SCORE, block)
    for currency, having in index.facet(Facet.CURRENCY, block).items():
        for number, own in by_number(scores, members & having):
            yield Paid(currency, score_of(number), own.bit_count(), sum_of(amounts, own))


def _count_few(index: AccountIndex, block: int, bits: list[int]) -> Iterator[Paid]:
    if not bits:
        return
    amounts = numbers_at(index.stored(Facet.AMOUNT, block), bits)
    scores = numbers_at(index.stored(Facet.SCORE, block), bits)
    for currency, stored in index.stored(Facet.CURRENCY, block).items():
        for place, there in enumerate(are_members(stored, bits)):
            if there:
                yield Paid(currency, score_of(scores[place]), 1, amounts[place])


def _count_hits(index: AccountIndex, block: int, members: int) -> Iterator[Hits]:
    names, amounts = index.facet(Facet.CURRENCY, block), index.facet(Facet.AMOUNT, block)
    scores = index.facet(Facet.SCORE, block)
    for rule, of_rule in index.facet(Facet.RULE, block).items():
        for version, of_version in index.facet(Facet.VERSION, block).items():
            both = members & of_rule & of_version
            if not both:
                continue
            for condition, having in index.facet(Facet.CONDITION, block).items():
                hits = both & having
                if not hits:
                    continue
                yield Hits(
                    rule,
                    version,
                    condition,
                    count_set(index, block, hits),
                    {of: sum_of(amounts, hits & own) for of, own in names.items() if hits & own},
                    {
                        number - 1: own.bit_count()
                        for number, own in by_number(scores, hits)
                        if number
                    },
                )


def numbers_at(by_bit: Mapping[int, bytes], bits: list[int]) -> list[int]:
    """Return the numbers of the payments at these positions, from the stored sets of each bit."""
    numbers = [0] * len(bits)
    for bit, stored in by_bit.items():
        for each, there in enumerate(are_members(stored, bits)):
            numbers[each] |= there << bit
    return numbers


def score_of(number: int) -> int | None:
    """Return the score (hundredths) that a number of the facet `SCORE` stands for."""
    return number - 1 if number else None
