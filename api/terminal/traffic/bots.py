"""Automated traffic: one function per attack family, for one campaign."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from tollkeeper.api.terminal.traffic import headers as sent
from tollkeeper.api.terminal.traffic.attempts import Attempt, TrafficSpan, attempt
from tollkeeper.api.terminal.traffic.world import (
    DOMAINS,
    FIRST,
    LAST_NAMES,
    Country,
    SimulatedCard,
    amount,
    card,
    country,
    device,
    email,
    gibberish,
    home_address,
    issuer,
    merchant,
    server_address,
    token,
)


def naive_script(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A script tries stolen cards with its library's default headers, from one server."""
    where = country(chance)
    shop = merchant(chance, where)
    own = device(chance, chance.choice(sent.LIBRARIES), server_address(chance))
    at = chance.uniform(0, span.seconds)
    made: list[Attempt] = []
    for _ in range(chance.randint(20, 120)):
        paid_with = card(chance, issuer(chance, where))
        value = round(chance.uniform(1, 15), 2)
        address = email(chance, where)
        made.append(attempt(chance, at, shop, paid_with, 0.8, own, email=address, value=value))
        at += chance.uniform(2, 20)
    return made


def headless_browser(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A headless browser fills in the checkout, card after card."""
    where = country(chance)
    shop = merchant(chance, where)
    own = device(chance, sent.headless(chance, where), server_address(chance))
    at = chance.uniform(0, span.seconds)
    made: list[Attempt] = []
    for _ in range(chance.randint(15, 60)):
        fresh = replace(own, basic=token(chance), vendor=token(chance, 20))
        used = fresh if chance.random() < 0.5 else own
        paid_with = card(chance, issuer(chance, where))
        address = email(chance, where)
        made.append(attempt(chance, at, shop, paid_with, 0.75, used, email=address))
        at += chance.uniform(20, 120)
    return made


def copied_headers(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A script sends a browser's User-Agent, from a few servers."""
    where = country(chance)
    shop = merchant(chance, where)
    places = [server_address(chance) for _ in range(chance.randint(1, 6))]
    at = chance.uniform(0, span.seconds)
    made: list[Attempt] = []
    for _ in range(chance.randint(20, 80)):
        worn = sent.copy_headers(chance, where)
        own = device(chance, worn, chance.choice(places))
        paid_with = card(chance, issuer(chance, where))
        address = email(chance, where)
        made.append(attempt(chance, at, shop, paid_with, 0.8, own, email=address))
        at += chance.uniform(5, 60)
    return made


def bin_enumeration(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """Card numbers of one BIN, counted up or random, at one merchant; nearly all are no cards."""
    where = country(chance)
    shop, bank = merchant(chance, where), issuer(chance, where)
    counts_up = chance.random() < 0.5
    number = chance.randrange(10_000)
    at = chance.uniform(0, span.seconds)
    value = round(chance.uniform(1, 10), 2)
    made: list[Attempt] = []
    for _ in range(chance.randint(80, 300)):
        number = (number + 1 if counts_up else chance.randrange(10_000)) % 10_000
        own = device(chance, sent.browser(chance, where), home_address(chance))
        guessed = SimulatedCard(bank.network, bank.bin, f"{number:04}")
        address = email(chance, where)
        made.append(attempt(chance, at, shop, guessed, 0.96, own, email=address, value=value))
        at += chance.expovariate(1 / 8)
    return made


def rotating(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """Each attempt from another household's address, with another fingerprint and real browser
    headers.
    """
    where = country(chance)
    shop = merchant(chance, where)
    banks = [issuer(chance, where) for _ in range(chance.randint(2, 4))]
    at = chance.uniform(0, span.seconds)
    made: list[Attempt] = []
    for _ in range(chance.randint(40, 150)):
        own = device(chance, sent.browser(chance, where), home_address(chance))
        paid_with = card(chance, chance.choice(banks))
        address = made_up_email(chance, where)
        made.append(attempt(chance, at, shop, paid_with, 0.78, own, email=address))
        at += chance.expovariate(1 / 90)
    return made


def slow_and_low(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """One device tries a card every quarter of an hour, under a few e-mail addresses."""
    where = country(chance)
    shop = merchant(chance, where)
    own = device(chance, sent.browser(chance, where), home_address(chance))
    addresses = [email(chance, where) for _ in range(3)]
    at = chance.uniform(0, span.seconds)
    made: list[Attempt] = []
    for _ in range(chance.randint(20, 40)):
        paid_with = card(chance, issuer(chance, where))
        address = chance.choice(addresses)
        made.append(attempt(chance, at, shop, paid_with, 0.6, own, email=address))
        at += chance.uniform(480, 2400)
    return made


def account_farm(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """Dozens of new accounts on a few emulated phones, to spend a welcome voucher each."""
    where = country(chance)
    shop = merchant(chance, where)
    place = home_address(chance)
    phones = [
        device(chance, sent.phone_browser(chance, where), place)
        for _ in range(chance.randint(2, 5))
    ]
    cards = [card(chance, issuer(chance, where)) for _ in range(8)]
    first, last, domain = (
        chance.choice(FIRST),
        chance.choice(LAST_NAMES),
        chance.choice(DOMAINS[where]),
    )
    numbered = chance.random() < 0.6
    at = chance.uniform(0, span.seconds)
    value = round(chance.uniform(5, 30), 2)
    made: list[Attempt] = []
    for number in range(chance.randint(25, 80)):
        local = f"{first}{last}{number:03}" if numbered else gibberish(chance, 11)
        made.append(
            attempt(
                chance,
                at,
                shop,
                chance.choice(cards),
                0.15,
                chance.choice(phones),
                user=f"u-{token(chance, 10)}",
                email=f"{local}@{domain}",
                value=value,
            )
        )
        at += chance.uniform(60, 600)
    return made


def regular_replay(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A recorded checkout repeated by a timer, with two or three cards in turn."""
    where = country(chance)
    shop = merchant(chance, where)
    own = device(chance, sent.browser(chance, where), home_address(chance))
    cards = [card(chance, issuer(chance, where)) for _ in range(chance.randint(1, 3))]
    address, value = email(chance, where), amount(chance, shop)
    gap = chance.choice((60, 120, 300, 600))
    at = chance.uniform(0, span.seconds)
    made: list[Attempt] = []
    for number in range(chance.randint(20, 60)):
        paid_with = cards[number % len(cards)]
        made.append(attempt(chance, at, shop, paid_with, 0.3, own, email=address, value=value))
        at += gap + chance.gauss(0, 0.4)
    return made


def made_up_email(chance: Random, where: Country) -> str:
    """Return an address from a list of names with digits, or of random letters."""
    if chance.random() < 0.6:
        local = f"{chance.choice(FIRST)}{chance.choice(LAST_NAMES)}{chance.randrange(10_000):04}"
    else:
        local = gibberish(chance, chance.randint(8, 14))
    return f"{local}@{chance.choice(DOMAINS[where])}"


FAMILIES: Mapping[str, Callable[[Random, TrafficSpan], list[Attempt]]] = {
    "naive_script": naive_script,
    "headless_browser": headless_browser,
    "copied_headers": copied_headers,
    "bin_enumeration": bin_enumeration,
    "rotating": rotating,
    "slow_and_low": slow_and_low,
    "account_farm": account_farm,
    "regular_replay": regular_replay,
}
