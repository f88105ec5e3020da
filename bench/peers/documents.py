"""The input of every engine: JSON documents of a payment and the facts known with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.facts.facts import Facts, StoredFacts, recall
from tollkeeper.engine.intake.payment import (
    Card,
    Connector,
    Device,
    Fingerprint,
    Merchant,
    Method,
    Order,
    Payment,
    Transaction,
    User,
)
from tollkeeper.engine.lists.environment import Environment

Inputs: TypeAlias = dict[str, Any]
Situation: TypeAlias = tuple[Facts, int | None, tuple[int | None, int | None], Environment]

ENVIRONMENT = Environment()
HEADERS = {
    "User-Agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 "
    "(KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Accept-Language": "pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7",
    "Host": "shop.example",
}

# The path of each of `inputs` in a document, for engines that read JSON themselves.
PATHS = {
    "device": "payment.device",
    "category": "payment.merchant.category_code",
    "country": "payment.merchant.country",
    "type": "payment.type",
    "status": "payment.status",
    "currency": "payment.currency",
    "amount": "payment.amount",
    "presence": "payment.method.card.presence",
    "network": "payment.method.card.network",
    "bin": "payment.method.card.bin",
    "email": "payment.user.email",
    "user": "payment.user.id",
    "order": "payment.order.id",
    "provider": "payment.device.fingerprint.provider",
    "score": "score",
    "declines": "declines",
    "cards": "cards",
}


class Document(Struct, frozen=True, gc=False):
    """A payment with its score and the values of two windows."""

    payment: Payment
    score: float | None
    declines: int | None
    cards: int | None


_decode = msgspec.json.Decoder(Document).decode


def situation(body: bytes) -> Situation:
    """Return a document as a compiled rule's arguments."""
    document = _decode(body)
    score = None if document.score is None else round(document.score * 100)
    values = (document.declines, document.cards)
    return recall(StoredFacts(document.payment), 0), score, values, ENVIRONMENT


def inputs(document: dict[str, Any]) -> Inputs:
    """Return the seventeen values that the conditions read; None for a missing one.

    Flat and minimal, because several engines convert or inspect all their input.
    """
    payment = document["payment"]
    device, merchant = payment.get("device"), payment["merchant"]
    card, user = payment["method"].get("card") or {}, payment.get("user") or {}
    return {
        "device": None if device is None else True,
        "category": merchant.get("category_code"),
        "country": merchant.get("country"),
        "type": payment["type"],
        "status": payment["status"],
        "currency": payment["currency"],
        "amount": payment.get("amount"),
        "presence": card.get("presence"),
        "network": card.get("network"),
        "bin": card.get("bin"),
        "email": user.get("email"),
        "user": user.get("id"),
        "order": (payment.get("order") or {}).get("id"),
        "provider": ((device or {}).get("fingerprint") or {}).get("provider"),
        "score": document["score"],
        "declines": document["declines"],
        "cards": document["cards"],
    }


def documents(seed: int, count: int) -> Iterator[bytes]:
    """Yield documents like a shop's payments: most meet no condition, some meet each."""
    random = Random(seed)
    for _ in range(count):
        document = Document(
            payment=_payment(random),
            score=random.choice((None, *(each / 100 for each in range(101)))),
            declines=random.choice((None, 0, 0, 1, 1, 2, 2, 4, 6)),
            cards=random.choice((None, 1, 1, 1, 1, 2, 2, 3, 9)),
        )
        yield msgspec.json.encode(document)


def _payment(random: Random) -> Payment:
    pick = random.choice
    device = Device(
        ip_address=f"203.0.113.{random.randrange(256)}",
        headers=HEADERS,
        fingerprint=pick((None, Fingerprint(str(random.random()), pick(("basic", "vendorjs"))))),
    )
    card = Card(
        network=pick(("visa", "mastercard", "elo", "jcb")),
        presence=pick(("card_not_present",) * 7 + ("card_present",)),
        bin=pick(("41111111", "55001234", "40001234")),
        last_four="1234",
    )
    email = pick(("someone@shop.example",) * 7 + ("someone@shop.test",))
    return Payment(
        id=str(random.random()),
        type=pick(("purchase",) * 7 + ("verify",)),
        status="declined",
        currency=pick(("BRL", "BRL", "BRL", "USD")),
        amount=pick((None,) + (_amount(random),) * 15),
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        method=Method(type="card", card=pick((card, card, card, None))),
        device=pick((device, device, device, None)),
        user=pick((User(str(random.random()), email), None)),
        order=pick((Order(str(random.random())), None)),
        merchant=Merchant(
            "store", pick(("BR", "US", "FR", "AR", None)), pick(("5411",) * 15 + ("4900",))
        ),
        transactions=(Transaction(status="declined", connector=Connector("acquirer", None, "51")),),
    )


def _amount(random: Random) -> float:
    return random.randrange(random.choice((500_000, 500_000, 500_000, 500))) / 100
