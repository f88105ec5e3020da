"""Group fraudulent payments into incidents: an attack of a thousand payments is one piece of
evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tollkeeper.engine.instants import HOUR

LINKED_WITHIN = 6 * HOUR
"""Two payments of one entity at most this far (µs) apart are in one incident."""
_SHARED = 20
"""An entity with more legitimate payments than this links nothing."""


def incidents(
    arrived: Sequence[int], entities: Sequence[tuple[Any, ...]]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of the incident of each payment, given in the order of their arrival (µs)."""
    above = list(range(len(arrived)))

    def root(of: int) -> int:
        while above[of] != of:
            above[of] = above[above[of]]
            of = above[of]
        return of

    latest: dict[tuple[int, Any], int] = {}
    for index, (time, own) in enumerate(zip(arrived, entities, strict=True)):
        for kind, entity in enumerate(own):
            if entity is None:
                continue
            before = latest.get((kind, entity))
            if before is not None and time - arrived[before] <= LINKED_WITHIN:
                above[root(index)] = root(before)
            latest[kind, entity] = index
    return np.array([root(index) for index in range(len(above))], np.int64)


def links_of(facts: Any) -> tuple[Any, ...]:
    """The entities that may link payments: device, address, user, e-mail, order, card, merchant
    with BIN."""
    payment = facts.payment
    device, user, card = payment.device, payment.user, payment.method.card
    return (
        None if device is None or device.fingerprint is None else device.fingerprint.id,
        facts.device_ip,
        None if user is None else user.id,
        None if user is None else user.email,
        None if payment.order is None else payment.order.id,
        facts.card_fingerprint,
        None if card is None or card.bin is None else (payment.merchant.id, card.bin),
    )


def without_shared(
    entities: Sequence[tuple[Any, ...]], fraud: Sequence[bool]
) -> list[tuple[Any, ...]]:
    """The entities without those that many people share: a bank's BIN, a carrier's address."""
    shared: Counter[tuple[int, Any]] = Counter()
    for own, is_fraud in zip(entities, fraud, strict=True):
        if not is_fraud:
            shared.update(enumerate(own))
    return [
        tuple(each if shared[kind, each] <= _SHARED else None for kind, each in enumerate(own))
        for own in entities
    ]
