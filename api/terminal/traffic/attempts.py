"""One attempt to pay, and its request bodies: a creation, and an update with the outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tollkeeper.api.terminal.traffic.headers import PARTNER, forward_headers
from tollkeeper.api.terminal.traffic.world import (
    SimulatedCard,
    SimulatedDevice,
    SimulatedMerchant,
    SimulatedPerson,
    amount,
    card_body,
    merchant,
    token,
)

BUSY = (1, 1, 1, 1, 1, 1, 2, 4, 6, 8, 9, 10, 12, 10, 9, 9, 10, 11, 12, 13, 14, 12, 8, 4)
"""The relative number of purchases in each hour of the day."""
REFUSALS = ("51", "05", "57", "61", "54")


@dataclass(frozen=True, slots=True)
class TrafficSpan:
    """The time that the traffic covers."""

    start: datetime
    hours: float

    @property
    def seconds(self) -> float:
        return self.hours * 3600


@dataclass(frozen=True, slots=True)
class Attempt:
    """`at` and `answered` are seconds from the start, `code` the connector's response code.

    `is_reported` says whether the shop reports the outcome.
    """

    at: float
    answered: float
    id: str
    merchant: SimulatedMerchant
    card: SimulatedCard
    amount: float
    code: str
    device: SimulatedDevice | None
    user: str | None
    email: str | None
    order: str | None
    partner: str | None = None
    approved: bool = True
    type: str = "purchase"
    connector: str = "acquirer-1"
    is_reported: bool = True


def waking_moment(chance: Random, span: TrafficSpan, hours: int) -> float:
    """Return a second of the span at which a person `hours` east of UTC may buy."""
    while True:
        at = chance.uniform(0, span.seconds)
        local = (span.start + timedelta(seconds=at, hours=hours)).hour
        if chance.random() * max(BUSY) < BUSY[local]:
            return at


def attempt(
    chance: Random,
    at: float,
    shop: SimulatedMerchant,
    paid_with: SimulatedCard,
    declines: float,
    device: SimulatedDevice | None,
    *,
    user: str | None = None,
    email: str | None = None,
    value: float | None = None,
    order: str | None = None,
) -> Attempt:
    """Return an attempt that is declined with probability `declines`."""
    declined = chance.random() < declines
    return Attempt(
        at=at,
        answered=at + chance.uniform(0.6, 4.0),
        id=f"p-{token(chance, 16)}",
        merchant=shop,
        card=paid_with,
        amount=amount(chance, shop) if value is None else value,
        code=chance.choice(REFUSALS) if declined else "00",
        approved=not declined,
        device=device,
        user=user,
        email=email,
        order=order or f"o-{token(chance, 12)}",
    )


def purchase(
    chance: Random,
    at: float,
    who: SimulatedPerson,
    shop: SimulatedMerchant,
    device: SimulatedDevice,
    value: float | None = None,
) -> list[Attempt]:
    """Return a person's purchase; after a decline many try again, with the same card or another.

    A card that was declined once is usually declined again.
    """
    value = amount(chance, shop) if value is None else value
    paid_with, declines = who.cards[0], shop.declines
    tries: list[Attempt] = []
    while len(tries) < 6:
        tries.append(
            attempt(
                chance,
                at,
                shop,
                paid_with,
                declines,
                device,
                user=who.id,
                email=who.email,
                value=value,
                order=tries[0].order if tries else None,
            )
        )
        if tries[-1].approved or chance.random() > 0.65:
            break
        at = tries[-1].answered + chance.lognormvariate(3.6, 0.7)
        another = chance.random() < 0.45 and len(who.cards) > 1
        paid_with = chance.choice(who.cards[1:]) if another else paid_with
        declines = 0.2 if another else 0.6
    return tries


def visits(
    chance: Random,
    span: TrafficSpan,
    who: SimulatedPerson,
    device: SimulatedDevice,
    mean: float = 1.3,
) -> list[Attempt]:
    """Return a person's purchases in the span, in shops of their country."""
    made: list[Attempt] = []
    count = 1 + int(chance.expovariate(1 / (mean - 1)) if mean > 1 else 0)
    for _ in range(min(count, 6)):
        shop = merchant(chance, who.country)
        at = waking_moment(chance, span, shop.hours)
        tries = purchase(chance, at, who, shop, device)
        if chance.random() < 0.03:
            tries = [replace(each, partner="198.19.250.7") for each in tries]
        made += tries
    return made


def creation(made: Attempt, start: datetime) -> dict[str, Any]:
    """Return the `payment` of `POST /payments`."""
    shop = made.merchant
    body: dict[str, Any] = {
        "id": made.id,
        "type": made.type,
        "status": "initiated",
        "currency": shop.currency,
        "amount": made.amount,
        "timestamp": moment(start, made.at),
        "method": {"type": "credit_card", "card": card_body(made.card)},
        "merchant": {"id": shop.id, "country": shop.country, "category_code": shop.category_code},
        "analyze": {"bot_behaviour": True},
    }
    if made.order is not None:
        body["order"] = {"id": made.order}
    if made.device is not None:
        body["device"] = _device_body(made.device, shop)
    if made.partner is not None:
        body["backend"] = {"ip_address": made.partner, "headers": dict(PARTNER)}
    if made.user is not None or made.email is not None:
        body["user"] = _user_body(made)
    return body


def update(made: Attempt, start: datetime) -> dict[str, Any]:
    """Return the `payment` of `PATCH /payments/{id}`."""
    status = "succeeded" if made.approved else "declined"
    return {
        "status": status,
        "transactions": [
            {
                "id": "t-1",
                "status": status,
                "duration": int((made.answered - made.at) * 900),
                "timestamp": moment(start, made.at + 0.05),
                "connector": {
                    "id": made.connector,
                    "type": "acquirer",
                    "response_code": made.code,
                },
            }
        ],
    }


def moment(start: datetime, at: float) -> str:
    """Return an RFC 3339 timestamp in milliseconds."""
    return (start + timedelta(seconds=at)).isoformat(timespec="milliseconds")


def _device_body(device: SimulatedDevice, shop: SimulatedMerchant) -> dict[str, Any]:
    body: dict[str, Any] = {
        "ip_address": device.address,
        "headers": dict(forward_headers(device.headers, shop.forwards)),
    }
    if shop.provider is not None:
        code = device.basic if shop.provider == "basic" else device.vendor
        body["fingerprint"] = {"id": code, "provider": shop.provider}
    return body


def _user_body(made: Attempt) -> dict[str, Any]:
    user: dict[str, Any] = {}
    if made.user is not None:
        user["id"] = made.user
    if made.email is not None:
        whole = made.merchant.whole_email
        user["email"] = made.email if whole else made.email.rpartition("@")[2]
    return user
