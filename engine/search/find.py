"""Payments that a filter means, newest, oldest or dearest first, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappush, heappushpop
from itertools import islice
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.fields_read import facts_decoder
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.labels.label import Verdict, verdict_of
from tollkeeper.engine.lists.values import IP_BITS, show_network
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.search.blocks import (
    ascending,
    bit_of,
    block_of,
    descending,
    numbers_below,
)
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.numbers_by_bits import at_least, from_highest, sum_of
from tollkeeper.engine.search.parts import largest_parts
from tollkeeper.engine.search.reading import AccountIndex, Selection
from tollkeeper.engine.search.terms import Facet, read_decision

Sort: TypeAlias = Literal["newest", "oldest", "dearest"]
"""Which payments come first; `dearest` compares amounts as numbers, whatever their currencies."""
_NO_DECISION = Decision()


class PaymentInShort(Struct, frozen=True):
    """One payment's summary, as it is known now.

    `arrived` and `time` (the payment's own) in µs; `decision` is without the values that it read.
    """

    sequence: int
    id: str
    arrived: int
    time: int
    type: str
    status: str
    currency: str
    amount: float | None
    merchant: str
    order: str | None
    user: str | None
    email: str | None
    network: str | None
    bin: str | None
    last_four: str | None
    device: str | None
    ip: str | None
    decision: Decision
    label: Verdict | None


class NewPayments(Struct, frozen=True):
    """New payments, oldest first, without the oldest `skipped`; the search got as far as sequence
    number `last`.
    """

    payments: list[PaymentInShort]
    skipped: int
    last: int


class FoundPage(Struct, frozen=True):
    """`cursor` continues, None at the end; all up to `last` were looked at."""

    payments: list[PaymentInShort]
    cursor: int | None
    last: int


def check_sort(sort: Sort, wanted: Filter) -> None:
    """Raises `Invalid` if amounts would be compared, and the filter doesn't name one currency."""
    one = any(len(terms) == 1 and terms[0][0] is Facet.CURRENCY for terms in wanted.terms)
    if sort == "dearest" and not one:
        message = "amounts are compared in one currency: name it, as in `currency:BRL`"
        raise Invalid.at("currency", "missing", message)


class FindPayments(Struct, frozen=True, tag=True):
    """A page of the payments that match a filter, those that come after the sequence number `cursor`
    in their order.
    """

    wanted: Filter
    cursor: int | None
    limit: int
    sort: Sort = "newest"

    def answer(self, index: AccountIndex) -> FoundPage:
        """Raises `Invalid` if the order is by amount, and the payment at `cursor` is no longer there."""
        selection = Selection(index, self.wanted)
        payments: list[PaymentInShort] = []
        in_order = (
            _dearest_first(index, selection, self.cursor, self.limit + 1)
            if self.sort == "dearest"
            else _in_time(selection, self.cursor, self.sort)
        )
        for sequence in in_order:
            if len(payments) == self.limit:
                return FoundPage(payments, payments[-1].sequence, index.last)
            payment = find_in_index(index, sequence)
            if payment is not None:
                payments.append(payment)
        return FoundPage(payments, None, index.last)


def _in_time(selection: Selection, cursor: int | None, sort: Sort) -> Iterator[int]:
    """The sequence numbers of a selection after `cursor`, None for all of them."""
    if sort == "newest":
        if cursor is not None:
            selection.end = min(selection.end, cursor)
        for block in selection.blocks():
            yield from descending(block, selection.members(block))
    else:
        if cursor is not None:
            selection.first = max(selection.first, cursor + 1)
        for block in reversed(selection.blocks()):
            yield from ascending(block, selection.members(block))


def _dearest_first(
    index: AccountIndex, selection: Selection, cursor: int | None, at_once: int
) -> Iterator[int]:
    """The sequence numbers of a selection after `cursor`, the largest amount first, of equal ones the
    oldest. They are looked for `at_once` at a time.
    """
    last = None if cursor is None else (_amount_at(index, cursor), cursor)
    while found := _dearest(index, selection, last, at_once):
        yield from (sequence for _, sequence in found)
        last = found[-1]


def _dearest(
    index: AccountIndex, selection: Selection, last: tuple[int, int] | None, most: int
) -> list[tuple[int, int]]:
    """Return the amounts (in hundredths) and sequence numbers of the dearest payments after `last`."""
    found: list[tuple[int, int]] = []  # a heap, the cheapest first, with sequence numbers negated
    for block in selection.blocks():
        members = selection.members(block)
        amounts = index.facet(Facet.AMOUNT, block)
        if last is not None:
            amount, sequence = last
            dearer = at_least(amounts, amount + 1, members)
            as_dear = at_least(amounts, amount, members) ^ dearer
            members ^= dearer | as_dear & numbers_below(block, sequence + 1)
        if len(found) == most:
            members = at_least(amounts, found[0][0], members)
        dearest = (
            (amount, -sequence)
            for amount, part in from_highest(amounts, members)
            for sequence in ascending(block, part)
        )
        for payment in islice(dearest, most):
            if len(found) < most:
                heappush(found, payment)
            else:
                heappushpop(found, payment)
    return [(amount, -sequence) for amount, sequence in sorted(found, reverse=True)]


def _amount_at(index: AccountIndex, sequence: int) -> int:
    """Return a payment's amount in hundredths."""
    block, payment = block_of(sequence), 1 << bit_of(sequence)
    if not index.members(Facet.PAYMENT, 0, block) & payment:
        message = "the payment that this goes on from is no longer there: begin again without it"
        raise Invalid.at("cursor", "invalid_value", message)
    return sum_of(index.facet(Facet.AMOUNT, block), payment)


class FindNew(Struct, frozen=True, tag=True):
    """The payments that match a filter and came after the sequence number `after`. If it is None, none,
    but the position to continue from.
    """

    wanted: Filter
    after: int | None
    limit: int

    def answer(self, index: AccountIndex) -> NewPayments:
        if self.after is None:
            return NewPayments([], 0, index.last)
        selection = Selection(index, self.wanted)
        selection.first = max(selection.first, self.after + 1)
        payments: list[PaymentInShort] = []
        total = 0
        for block in selection.blocks():
            members = selection.members(block)
            total += members.bit_count()
            newest = islice(descending(block, members), self.limit - len(payments))
            payments += filter(None, (find_in_index(index, sequence) for sequence in newest))
        return NewPayments(payments[::-1], max(total - self.limit, 0), index.last)


class CountPayments(Struct, frozen=True, tag=True):
    """The number of payments that match a filter."""

    wanted: Filter

    def answer(self, index: AccountIndex) -> int:
        selection = Selection(index, self.wanted)
        parts = largest_parts(selection.blocks(), lambda part: selection.totals(part, None))
        return sum(
            selection.members(part).bit_count()
            if kept is None
            else sum(total.counts[0] for total in kept.values())
            for part, kept in parts
        )


def find_in_index(index: AccountIndex, sequence: int) -> PaymentInShort | None:
    """Return a payment's summary; None for one that the journal no longer has."""
    entry = index.tail.known(sequence, index.tail.last_sequence())
    if entry is None:
        return None
    facts = _read(entry)
    payment = facts.payment
    user, device, card, order = payment.user, payment.device, payment.method.card, payment.order
    address = facts.device_ip if facts.device_ip is not None else facts.backend_ip
    decision = read_decision(entry.outcome) if entry.outcome else _NO_DECISION
    return PaymentInShort(
        sequence=sequence,
        id=entry.id,
        arrived=entry.arrived,
        time=entry.time,
        type=payment.type,
        status=payment.status,
        currency=payment.currency,
        amount=payment.amount,
        merchant=payment.merchant.id,
        order=None if order is None else order.id,
        user=None if user is None else user.id,
        email=None if user is None else user.email,
        network=None if card is None else card.network,
        bin=None if card is None else card.bin,
        last_four=None if card is None else card.last_four,
        device=None if device is None or device.fingerprint is None else device.fingerprint.id,
        ip=None if address is None else show_network(address, IP_BITS),
        decision=replace(decision, reads=(), lost=()),
        label=verdict_of(index.labels(sequence)),
    )


_read: Callable[[Entry], Any] = facts_decoder(
    [
        ("payment", "type"),
        ("payment", "status"),
        ("payment", "currency"),
        ("payment", "amount"),
        ("payment", "merchant", "id"),
        ("payment", "order", "id"),
        ("payment", "user", "id"),
        ("payment", "user", "email"),
        ("payment", "method", "card", "network"),
        ("payment", "method", "card", "bin"),
        ("payment", "method", "card", "last_four"),
        ("payment", "device", "ip_address"),
        ("payment", "device", "fingerprint", "id"),
        ("payment", "backend", "ip_address"),
    ]
)
