"""A rule's cost beside a hand-written Python function over the same facts, and its growth.

Run `python -m bench.rules`. Outcomes are checked equal on every payment; times are medians over
alternating rounds.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from tollkeeper.engine.clients import Client
from tollkeeper.engine.compile.python import compile_rule
from tollkeeper.engine.environment import Environment
from tollkeeper.engine.facts import Facts, Recorded, recall
from tollkeeper.engine.payment import (
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
from tollkeeper.engine.vocabulary import vocabulary
from tollkeeper.grammar.checker import Known, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import Rule

PAYMENTS = 20_000
ROUNDS = 15
VOCABULARY = vocabulary({})
ENVIRONMENT = Environment()

RULE = """
rule bench
  let declines = count(transactions by order.id over 24h where status == "declined")
  let cards = distinct(payments.method.card.fingerprint by device.fingerprint.id over 1h)
  condition renewal when device is missing and merchant.category_code == "4900" then allow
  condition many_cards when cards >= 9 and amount < 10.00 then deny
  condition guessing when declines > 5 and score >= 0.9 then deny
  condition verify when type == "verify" and method.card.presence == "card_present" then allow
  condition brands when method.card.network in ["jcb", "discover", "other"] and amount > 4900 then challenge
  condition places when not (merchant.country in ["BR", "US", "FR"]) and amount > 4500.50 then challenge
  condition emails when user.email ends with ".test" and amount > 4000 then challenge
  condition addresses
    when device.ip_address in ["10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32"] then deny
  condition scripts when device.client.kind in ["library", "headless"] and score > 0.8 then deny
  condition totals when amount * 3 - 1.50 > 14_990 and order.id is present then challenge
  condition prints
    when (device.fingerprint.provider != "basic" or user.id is missing) and amount < 1 then challenge
  condition fast when cards >= 3 and (declines > 3 or score >= 0.95) then challenge
""".replace("14_990", "14990")  # fmt: skip


def by_hand(  # noqa: C901  # a rule is as long as it is
    p: Facts, s: int | None, h: Sequence[Any], _e: Environment
) -> int:
    """The same twelve conditions, as a careful programmer writes them."""
    payment = p.payment
    device, user, method, merchant = payment.device, payment.user, payment.method, payment.merchant
    amount, card = p.amount, method.card
    declines, cards = h
    if device is None and merchant.category_code == "4900":
        return 0
    if cards is not None and cards >= 9 and amount is not None and amount < 1000:
        return 1
    if declines is not None and declines > 5 and s is not None and s >= 90:
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
    ip = p.device_ip
    if ip is not None and (ip >> 24 == _TEN or ip >> 8 == _TEST or ip >> 96 == _DOCUMENTATION):
        return 7
    client = p.device_client
    if client is not None and client.kind in _SCRIPTS and s is not None and s > 80:
        return 8
    if amount is not None and amount * 3 - 150 > 1499000:
        order = payment.order
        if order is not None and order.id is not None:
            return 9
    fingerprint = device.fingerprint if device is not None else None
    other = fingerprint is not None and fingerprint.provider != "basic"
    if (other or user is None or user.id is None) and amount is not None and amount < 100:
        return 10
    if cards is not None and cards >= 3:
        if declines is not None and declines > 3:
            return 11
        if s is not None and s >= 95:
            return 11
    return -1


_BRANDS = frozenset(("jcb", "discover", "other"))
_PLACES = frozenset(("BR", "US", "FR"))
_SCRIPTS = frozenset(("library", "headless"))
_TEN, _TEST = (0xFFFF_0A00_0000) >> 24, (0xFFFF_C000_0200) >> 8
_DOCUMENTATION = 0x2001_0DB8


def checked(text: str) -> Rule:
    """The checked rule of a file's text."""
    file = parse(text).file
    assert file is not None
    found = check(file, text, VOCABULARY, Known())
    assert isinstance(found.program, Rule), found.diagnostics
    return found.program


def payment(random: Random) -> Facts:
    """A payment such as a shop sends."""
    pick = random.choice
    device = Device(
        ip_address=f"203.0.113.{random.randrange(256)}",
        headers={"User-Agent": "Mozilla/5.0"},
        fingerprint=pick((None, Fingerprint(str(random.random()), pick(("basic", "vendorjs"))))),
    )
    card = Card(
        network=pick(("visa", "mastercard", "elo", "jcb")),
        presence="card_not_present",
        bin="41111111",
        last_four="1234",
    )
    attempt = Transaction(status="declined", connector=Connector("acquirer", None, "51"))
    paid = Payment(
        id=str(random.random()),
        type="purchase",
        status="declined",
        currency="BRL",
        amount=random.randrange(500_000) / 100,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        method=Method(type="card", card=pick((card, card, card, None))),
        device=pick((device, device, device, None)),
        user=pick((User(str(random.random()), "someone@shop.example"), None)),
        order=pick((Order(str(random.random())), None)),
        merchant=Merchant("store", pick(("BR", "US", "FR", "AR")), "5411"),
        transactions=(attempt,),
    )
    client = Client("browser", "chrome", "windows", True)
    return recall(Recorded(paid, "41111111-1234", client if paid.device else None), 0)


def situations(random: Random) -> list[tuple[Any, ...]]:
    return [
        (
            payment(random),
            random.randrange(101),
            (random.choice((None, 0, 1, 2, 4, 6)), random.choice((None, 1, 2, 3, 4))),
            ENVIRONMENT,
        )
        for _ in range(PAYMENTS)
    ]


def seconds(decide: Callable[..., int], given: list[tuple[Any, ...]]) -> float:
    start = perf_counter()
    for each in given:
        decide(*each)
    return perf_counter() - start


def medians(functions: Sequence[Callable[..., int]], given: list[tuple[Any, ...]]) -> list[float]:
    """Seconds for all the payments by each function, in alternating rounds."""
    rounds = [[seconds(each, given) for each in functions] for _ in range(ROUNDS)]
    return [median(times) for times in zip(*rounds, strict=True)]


def growing(conditions: int) -> Rule:
    """A rule of so many conditions, none of which is met."""
    lines = [
        f'  condition c{index} when amount > 5000 and user.id == "u{index}" or score > 1.00 then deny'
        if index % 2
        else f'  condition c{index} when device.fingerprint.id == "f{index}" and amount < {index} then deny'
        for index in range(conditions)
    ]
    return checked("\n".join(["rule growing", *lines]))


def main() -> None:
    given = situations(Random(7))
    decide = compile_rule(checked(RULE), VOCABULARY).decide
    for each in given:
        assert decide(*each) == by_hand(*each), each
    gc.disable()
    compiled, hand = medians((decide, by_hand), given)
    unit = 1e9 / PAYMENTS
    print(f"12 conditions, {PAYMENTS} payments, medians of {ROUNDS} alternating rounds")
    print(f"hand-written {hand * unit:8.0f} ns   1.00")
    print(f"compiled     {compiled * unit:8.0f} ns   {compiled / hand:.2f}")
    few = given[:2000]
    print("conditions  compile ms  decide ns  ns per condition")
    for conditions in (1, 5, 10, 50, 100, 500):
        rule = growing(conditions)
        start = perf_counter()
        made = compile_rule(rule, VOCABULARY).decide
        compiling = (perf_counter() - start) * 1000
        (taken,) = medians((made,), few)
        each = taken * 1e9 / len(few)
        print(f"{conditions:10} {compiling:11.1f} {each:10.0f} {each / conditions:17.1f}")


if __name__ == "__main__":
    main()
