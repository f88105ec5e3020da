"""The terms by which a payment is found, each a facet and a value.

Values are stored as keyed hashes, never as text, except for numbers. The `names` of facets that
figures are shown by are stored beside them.
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
    """What a term says. Every payment has the term `PAYMENT`.

    `AMOUNT` has a term for each set bit of the amount in hundredths, `SCORE` for each set bit of
    the score in hundredths plus one, so that a score of 0 differs from none. `HOLDOUT` is 1 for
    payments that passed though they were denied, else 0.

    Only erasure uses `TEXT`, `FREE_TEXT` and `DAMAGED`, on entries of every kind: a lower-case text
    that the entry holds as a whole value; an entry with text that people wrote; an entry that can't
    be read.
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
    TEXT = 28
    FREE_TEXT = 29
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
"""Facets whose values are also stored by name: they identify nobody."""
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
"""Decode the decision in a payment's entry."""

NO_VALUE = ""
"""The value for no action, no rule, or no condition met."""

TermText: TypeAlias = str | int
Term: TypeAlias = tuple[Facet, TermText]

_MAPPED = 0xFFFF
# Of addresses as 128 bits: /24 of an IPv4 address, /48 of an IPv6 address.
_IPV4_NETWORK = 120
_IPV6_NETWORK = 48
_SHORT_BIN = 6
# Before Python 3.12, each access to an enum member costs a call.
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
"""Decode the facts of a stored payment that terms are made of."""


def reported_terms(facts: Any) -> Iterator[Term]:
    """The terms of what was reported, which an update may change."""
    yield from common_terms(facts)
    yield from entity_terms(facts)


def common_terms(facts: Any) -> tuple[Term, ...]:
    """The reported terms that many payments share, such as status and currency."""
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
    """The terms of `entities_of`; a BIN of 8 digits also has that of its first 6."""
    for entity in entities_of(facts):
        yield entity
        facet, value = entity
        if facet is _BIN and len(value) > _SHORT_BIN:
            yield facet, value[:_SHORT_BIN]


def entities_of(facts: Any) -> Iterator[tuple[Facet, str]]:
    """The entities of a payment, in the order of `ENTITIES`."""
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
    """The terms of the decision, which never change and which many payments share."""
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


def text_term(text: str) -> tuple[Facet, str]:
    return Facet.TEXT, text.lower()


def erasure_terms(entry: Entry) -> set[tuple[Facet, str]]:
    """The terms by which an erasure finds an entry, other than as the person's payment."""
    texts: list[object] = []
    for transition in transitions_of(entry.outcome):
        texts += (*transition.key, *transition.values.values())
    if entry.kind == Kind.EVENT:
        texts += decode_event(entry.body).data.values()
    terms = {text_term(text) for text in texts if isinstance(text, str)}
    if entry.kind == Kind.NOTE or (entry.kind == Kind.LABEL and decode_label(entry.body).reason):
        terms.add((Facet.FREE_TEXT, NO_VALUE))
    return terms


def label_terms(labels: Mapping[LabelSource, Verdict]) -> Iterator[Term]:
    """The terms of a payment's labels, given by source."""
    verdict = verdict_of(labels)
    if verdict is not None:
        yield Facet.LABEL, verdict
    for source, label in labels.items():
        yield Facet.LABELLED, f"{source}:{label}"


def network_of(address: int) -> str:
    """Return the network of an address (a 128-bit number): /24, or /48 for IPv6."""
    bits = _IPV4_NETWORK if address >> 32 == _MAPPED else _IPV6_NETWORK
    return show_network(address >> IP_BITS - bits << IP_BITS - bits, bits)


def address_term(text: str) -> Term:
    """Return the term of an address, or of a network of the length that payments are counted in.

    Raises `ValueError` for any other text.
    """
    first, bits = read_network(text)
    if bits == IP_BITS:
        return Facet.IP, show_network(first, bits)
    network = network_of(first)
    if network != show_network(first, bits):
        raise ValueError("a network of IPv4 has the length /24 here, one of IPv6 /48")
    return Facet.NETWORK, network


class Hashes:
    """Hashes values of terms with the index's own key; no two accounts share a hash.

    `hash` maps an account, a facet and a text to a number of at most 63 bits.
    """

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._keyed = hashlib.blake2b(digest_size=8, key=key)
        self.hash: Callable[[int, Facet, str], int] = lru_cache(20_000)(self._hash)

    def value(self, account: int, facet: Facet, text: TermText) -> int:
        """Return the value of a term, a number of at most 63 bits."""
        return text if isinstance(text, int) else self.hash(account, facet, text)

    def _hash(self, account: int, facet: Facet, text: str) -> int:
        hashed = self._keyed.copy()
        hashed.update(f"{account} {facet:d} {text}".encode(errors="surrogatepass"))
        return int.from_bytes(hashed.digest()) >> 1


def _address(facts: Any) -> int | None:
    """Return the device's address, or the backend's if it has none."""
    number: int | None = facts.device_ip if facts.device_ip is not None else facts.backend_ip
    return number
