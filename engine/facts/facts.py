"""Facts: a payment with the fields derived from it at arrival, as programs read it.

Derived facts are stored with the payment and never recomputed by newer code (docs/language.md,
"Names"). Only mere conversions of a field (an address as a number, an instant in microseconds) are
computed again from the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from tollkeeper.engine.facts.clients import Client
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.addresses import address_number, public_number
from tollkeeper.engine.intake.payment import Payment

ReadClient = Callable[[Mapping[str, str]], Client | None]
EntrySets: TypeAlias = dict[tuple[type, tuple[str, ...]], frozenset[Any]]
"""Sets made of long lists in a payment's metadata, by the type of the elements and the list's keys."""


class Facts(Struct, frozen=True, gc=False):
    """`arrived` and `timestamp` in µs since the epoch, `amount` in hundredths, addresses as
    128-bit numbers (grammar/types.py). `entry_sets` is filled by programs that look into metadata."""

    arrived: int
    timestamp: int
    payment: Payment
    amount: int | None = None
    card_fingerprint: str | None = None
    device_ip: int | None = None
    backend_ip: int | None = None
    device_client: Client | None = None
    backend_client: Client | None = None
    entry_sets: EntrySets = field(default_factory=dict)


class StoredFacts(Struct, frozen=True, gc=False, omit_defaults=True):
    """Facts as the journal stores them: the payment, and the derived facts that are never
    recomputed."""

    payment: Payment
    card_fingerprint: str | None = None
    device_client: Client | None = None
    backend_client: Client | None = None


def derive(payment: Payment, arrived: int, read_client: ReadClient) -> Facts:
    """The facts of a payment that arrives at `arrived` (µs); `read_client` reads a set of headers."""
    device, backend = payment.device, payment.backend
    recorded = StoredFacts(
        payment=payment,
        card_fingerprint=_card_fingerprint(payment),
        device_client=read_client(device.headers) if device and device.headers else None,
        backend_client=read_client(backend.headers) if backend and backend.headers else None,
    )
    return recall(recorded, arrived)


def recall(recorded: StoredFacts, arrived: int) -> Facts:
    """The facts of a stored payment that arrived at `arrived` (µs)."""
    payment = recorded.payment
    device, backend = payment.device, payment.backend
    device_ip = device.ip_address if device is not None else None
    backend_ip = backend.ip_address if backend is not None else None
    return Facts(
        arrived=arrived,
        timestamp=to_microseconds(payment.timestamp),
        payment=payment,
        amount=None if payment.amount is None else round(payment.amount * 100),
        card_fingerprint=recorded.card_fingerprint,
        device_ip=address_number(device_ip) if device_ip else None,
        backend_ip=public_number(backend_ip) if backend_ip else None,
        device_client=recorded.device_client,
        backend_client=recorded.backend_client,
    )


def amend(facts: Facts, payment: Payment) -> Facts:
    """The facts of a payment after an update, which never changes device or backend."""
    fingerprint = _card_fingerprint(payment)
    amended = replace(record(facts), payment=payment, card_fingerprint=fingerprint)
    return recall(amended, facts.arrived)


def record(facts: Facts) -> StoredFacts:
    return StoredFacts(
        payment=facts.payment,
        card_fingerprint=facts.card_fingerprint,
        device_client=facts.device_client,
        backend_client=facts.backend_client,
    )


def _card_fingerprint(payment: Payment) -> str | None:
    card = payment.method.card
    if card is None or card.bin is None or card.last_four is None:
        return None
    return f"{card.bin}-{card.last_four}"
