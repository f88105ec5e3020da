"""By what a payment is found: its terms, each a facet and a value.

A value is kept as a keyed hash, never as the text itself, but for numbers; `names` of the facets
that figures are shown by stand beside them in the index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.facts.fields_read import facts_decoder
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import LabelSource, Verdict, decode_label, verdict_of
from tollkeeper.engine.lists.values import IP_BITS, read_network, show_network
from tollkeeper.engine.monitors.alerts import transitions_of
from tollkeeper.engine.programs.decider import answered_action
from tollkeeper.engine.search.numbers_by_bits import bits_in
from tollkeeper.engine.stored_records import decode_event


class Facet(IntEnum):
    """`PAYMENT` is of every payment; `AMOUNT` has a term for each bit of the amount in hundredths,
    `SCORE` one for each bit of the score in hundredths plus one, so that 0 is a score too; of
    `HOLDOUT` the value is 1 for payments that passed though they are denied, else 0. By `TOLD`,
    `WORDED` and `DAMAGED` an erasure alone finds entries, of any kind: by a text in small letters
    that one holds as a value of its own, and, without a value, those with words that people wrote
    and those that can't be read.
    """

    PAYMENT = 0
    ACTION = 1
    RULE = 2
    VERSION = 3
    CONDITION = 4
    SCORE = 5
    STATUS = 6
    LABEL = 7
    LABELLED = 8
    MERCHANT = 9
    CURRENCY = 10
    AMOUNT = 11
    HOLDOUT = 12
    CARD = 20
    BIN = 21
    DEVICE = 22
    IP = 23
    NETWORK = 24
    USER = 25
    EMAIL = 26
    ORDER = 27
    TOLD = 28
    WORDED = 29
    DAMAGED = 30


NAMED = frozenset(
    {
        Facet.ACTION,
        Facet.RULE,
        Facet.CONDITION,
        Facet.STATUS,
        Facet.LABEL,
        Facet.LABELLED,
        Facet.MERCHANT,
        Facet.CURRENCY,
    }
)
"""Facets whose values are kept by name too: they tell nothing of a person."""
ENTITIES = (
    Facet.CARD,
    Facet.DEVICE,
    Facet.IP,
    Facet.NETWORK,
    Facet.USER,
    Facet.EMAIL,
    Facet.ORDER,
    Facet.BIN,
)
"""What a payment may share with others, the most telling first."""

read_decision = msgspec.json.Decoder(Decision).decode
"""The decision in the outcome of a payment's entry."""

NO_VALUE = ""
"""Stands for no action, no rule, or no condition that was met."""

TermText: TypeAlias = str | int
Term: TypeAlias = tuple[Facet, TermText]

_MAPPED = 0xFFFF
# Of 128 bits: /24 of an IPv4 address, /48 of an IPv6 address.
_IPV4_NETWORK = 120
_IPV6_NETWORK = 48
_SHORT_BIN = 6
# Before Python 3.12 a member costs a call each time that it is named.
_BIN = Facet.BIN

read_facts: Callable[[Entry], Any] = facts_decoder(
    [
        ("payment", "status"),
        ("payment", "currency"),
        ("payment", "amount"),
        ("payment", "merchant", "id"),
        ("payment", "method", "card", "bin"),
        ("payment", "device", "ip_address"),
        ("payment", "device", "fingerprint", "id"),
        ("payment", "backend", "ip_address"),
        ("payment", "user", "id"),
        ("payment", "user", "email"),
        ("payment", "order", "id"),
        ("card_fingerprint",),
    ]
)
"""The facts of a stored payment that terms are made of."""


def reported_terms(facts: Any) -> Iterator[Term]:
    """The terms of what was reported: an update may change them."""
    yield from common_terms(facts)
    yield from entity_terms(facts)


def common_terms(facts: Any) -> tuple[Term, ...]:
    """The terms of what was reported that say nothing of who pays: many payments have the same."""
    payment = facts.payment
    hundredths = 0 if payment.amount is None else round(payment.amount * 100)
    return _common_terms(payment.status, payment.merchant.id, payment.currency, hundredths)


@lru_cache(4_096)
def _common_terms(status: str, merchant: str, currency: str, amount: int) -> tuple[Term, ...]:
    return (
        (Facet.STATUS, status),
        (Facet.MERCHANT, merchant),
        (Facet.CURRENCY, currency),
        *((Facet.AMOUNT, bit) for bit in bits_in(amount)),
    )


def entity_terms(facts: Any) -> Iterator[tuple[Facet, str]]:
    """The terms of `entities_of`, and of a BIN's first digits."""
    for entity in entities_of(facts):
        yield entity
        facet, value = entity
        if facet is _BIN and len(value) > _SHORT_BIN:
            yield facet, value[:_SHORT_BIN]


def entities_of(facts: Any) -> Iterator[tuple[Facet, str]]:
    """What the payment may share with others, in the order of `ENTITIES`."""
    payment = facts.payment
    device, user, card = payment.device, payment.user, payment.method.card
    if facts.card_fingerprint is not None:
        yield Facet.CARD, facts.card_fingerprint
    if device is not None and device.fingerprint is not None:
        yield Facet.DEVICE, device.fingerprint.id
    address = _address(facts)
    if address is not None:
        yield from _address_terms(address)
    if user is not None and user.id:
        yield Facet.USER, user.id
    if user is not None and user.email:
        yield Facet.EMAIL, user.email.lower()
    if payment.order is not None and payment.order.id:
        yield Facet.ORDER, payment.order.id
    if card is not None and card.bin:
        yield Facet.BIN, card.bin


@lru_cache(4_096)
def _address_terms(address: int) -> tuple[tuple[Facet, str], ...]:
    return (Facet.IP, show_network(address, IP_BITS)), (Facet.NETWORK, network_of(address))


def decided_terms(decision: Decision) -> tuple[Term, ...]:
    """The terms of what was decided: they never change, and many payments have the same."""
    action = answered_action(decision) or NO_VALUE
    return _decided_terms(action, decision.held_out, decision.score, decision.rule)


@lru_cache(4_096)
def _decided_terms(
    action: str, held_out: bool, score: int | None, rule: AppliedRule | None
) -> tuple[Term, ...]:
    terms: list[Term] = [(Facet.ACTION, action), (Facet.HOLDOUT, int(held_out))]
    terms += [(Facet.SCORE, bit) for bit in bits_in(0 if score is None else score + 1)]
    if rule is None:
        return (*terms, (Facet.RULE, NO_VALUE))
    condition = rule.condition or NO_VALUE
    return (
        *terms,
        (Facet.RULE, rule.name),
        (Facet.VERSION, rule.version),
        (Facet.CONDITION, condition),
    )


def told_term(text: str) -> tuple[Facet, str]:
    return Facet.TOLD, text.lower()


def told_terms(entry: Entry) -> set[tuple[Facet, str]]:
    """By what an erasure finds an entry, other than as the person's payment."""
    texts: list[object] = []
    for transition in transitions_of(entry.outcome):
        texts += (*transition.key, *transition.values.values())
    if entry.kind == Kind.EVENT:
        texts += decode_event(entry.body).data.values()
    terms = {told_term(text) for text in texts if isinstance(text, str)}
    if entry.kind == Kind.NOTE or (entry.kind == Kind.LABEL and decode_label(entry.body).reason):
        terms.add((Facet.WORDED, NO_VALUE))
    return terms


def label_terms(labels: Mapping[LabelSource, Verdict]) -> Iterator[Term]:
    """The terms of a payment's labels, given by their sources."""
    verdict = verdict_of(labels)
    if verdict is not None:
        yield Facet.LABEL, verdict
    for source, label in labels.items():
        yield Facet.LABELLED, f"{source}:{label}"


def network_of(address: int) -> str:
    """The network that an address (a number of 128 bits) is counted in: /24, or /48 of IPv6."""
    bits = _IPV4_NETWORK if address >> 32 == _MAPPED else _IPV6_NETWORK
    return show_network(address >> IP_BITS - bits << IP_BITS - bits, bits)


def address_term(text: str) -> Term:
    """The term of an address, or of a network of the length that payments are counted in.

    Raises `ValueError` for another text.
    """
    first, bits = read_network(text)
    if bits == IP_BITS:
        return Facet.IP, show_network(first, bits)
    network = network_of(first)
    if network != show_network(first, bits):
        raise ValueError("a network of IPv4 has the length /24 here, one of IPv6 /48")
    return Facet.NETWORK, network


class Hashes:
    """Values of terms, by the index's own key; two accounts have no value in common.

    `hash` makes a number of at most 63 bits of an account, a facet and a text.
    """

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._keyed = hashlib.blake2b(digest_size=8, key=key)
        self.hash: Callable[[int, Facet, str], int] = lru_cache(20_000)(self._hash)

    def value(self, account: int, facet: Facet, text: TermText) -> int:
        """A number of at most 63 bits."""
        return text if isinstance(text, int) else self.hash(account, facet, text)

    def _hash(self, account: int, facet: Facet, text: str) -> int:
        hashed = self._keyed.copy()
        hashed.update(f"{account} {facet:d} {text}".encode(errors="surrogatepass"))
        return int.from_bytes(hashed.digest()) >> 1


def _address(facts: Any) -> int | None:
    """The device's, or without one the backend's."""
    number: int | None = facts.device_ip if facts.device_ip is not None else facts.backend_ip
    return number
