"""The twelve conditions as a careful programmer writes them over the same facts."""

from __future__ import annotations

from collections.abc import Sequence

from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.lists.environment import Environment

_BRANDS = frozenset(("jcb", "discover", "other"))
_PLACES = frozenset(("BR", "US", "FR"))
_CURRENCIES = frozenset(("USD", "EUR"))


def decide(  # noqa: C901  # a rule is as long as it is
    facts: Facts, score: int | None, values: Sequence[int | None], _environment: Environment
) -> int:
    """Return the index of the condition met, -1 if none; the score and amounts are in hundredths."""
    payment = facts.payment
    device, user, merchant = payment.device, payment.user, payment.merchant
    amount, card = facts.amount, payment.method.card
    declines, cards = values
    if device is None and merchant.category_code == "4900":
        return 0
    if cards is not None and cards >= 9 and amount is not None and amount < 1000:
        return 1
    if declines is not None and declines > 5 and score is not None and score >= 90:
        return 2
    if payment.type == "verify" and card is not None and card.presence == "card_present":
        return 3
    if card is not None and card.network in _BRANDS and amount is not None and amount > 490000:
        return 4
    country = merchant.country
    if country is not None and country not in _PLACES and amount is not None and amount > 450050:
        return 5
    email = user.email if user is not None else None
    if email is not None and email.endswith(".test") and amount is not None and amount > 400000:
        return 6
    if (
        payment.status == "declined"
        and payment.currency in _CURRENCIES
        and score is not None
        and score > 95
    ):
        return 7
    if amount is not None and amount * 3 - 150 > 1400000:
        order = payment.order
        if order is not None and order.id is not None:
            return 8
    fingerprint = device.fingerprint if device is not None else None
    other = fingerprint is not None and fingerprint.provider != "basic"
    if (other or user is None or user.id is None) and amount is not None and amount < 100:
        return 9
    if (
        card is not None
        and card.bin is not None
        and card.bin.startswith("4000")
        and amount is not None
        and 100 <= amount <= 500
    ):
        return 10
    if cards is not None and cards >= 3:
        if declines is not None and declines > 3:
            return 11
        if score is not None and score >= 95:
            return 11
    return -1
