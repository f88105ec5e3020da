"""Legitimate traffic: one function per kind of person, for one of them within the span."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from tollkeeper.api.terminal.traffic import headers as sent
from tollkeeper.api.terminal.traffic.attempts import (
    Attempt,
    TrafficSpan,
    attempt,
    purchase,
    visits,
    waking_moment,
)
from tollkeeper.api.terminal.traffic.world import (
    MARKETS,
    MERCHANTS,
    STREAMING,
    amount,
    card,
    carrier_address,
    country,
    device,
    home_address,
    issuer,
    merchant,
    office_address,
    person,
    token,
)

SWITCHED = 0.003
"""The share of people whose headers contradict each other, through an extension or a proxy."""


def single(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A person at home."""
    who = person(chance, country(chance))
    headers = sent.browser(chance, who.country)
    if chance.random() < SWITCHED:
        headers = sent.alter_headers(chance, headers)
    return visits(chance, span, who, device(chance, headers, home_address(chance)))


def family(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A few people behind one address, who share a tablet and sometimes a card."""
    where, place = country(chance), home_address(chance)
    tablet = device(chance, sent.browser(chance, where), place)
    members = [person(chance, where) for _ in range(chance.randint(2, 5))]
    parent = members[0].cards[0]
    made: list[Attempt] = []
    for each in members:
        who = replace(each, cards=(parent, *each.cards)) if chance.random() < 0.3 else each
        own = device(chance, sent.browser(chance, where), place)
        made += visits(chance, span, who, tablet if chance.random() < 0.4 else own)
    return made


def office(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """Many people behind one address, with one kind of browser, who order lunch at noon."""
    where, place = country(chance), office_address(chance)
    shop = merchant(chance, where)
    standard = sent.chromium(chance, where, "Microsoft Edge")
    noon = (12 - shop.hours - span.start.hour) % 24 * 3600
    made: list[Attempt] = []
    for _ in range(chance.randint(15, 60)):
        who = person(chance, where)
        own = device(chance, standard, place)
        if chance.random() < 0.5 and noon < span.seconds:
            made += purchase(chance, max(0, chance.gauss(noon, 1200)), who, shop, own)
        else:
            made += visits(chance, span, who, own, mean=1)
    return made


def carrier(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A person on a phone, behind a carrier's address that changes between purchases."""
    who = person(chance, country(chance))
    own = device(chance, sent.phone_browser(chance, who.country), carrier_address(chance))
    return [
        replace(each, device=replace(own, address=carrier_address(chance)))
        for each in visits(chance, span, who, own)
    ]


def app(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A person in a merchant's app."""
    who = person(chance, country(chance))
    place = carrier_address(chance) if chance.random() < 0.5 else home_address(chance)
    return visits(chance, span, who, device(chance, sent.app(chance, who.country), place))


def flash_sale(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """Hundreds of people buy one thing within the same minutes, many with the same bank's cards."""
    shop = next(each for each in MERCHANTS if each.id == "ingressos")
    opens = waking_moment(chance, span, shop.hours)
    price, bank = amount(chance, shop), issuer(chance, "BR")
    made: list[Attempt] = []
    for _ in range(chance.randint(150, 350)):
        who = person(chance, "BR")
        if chance.random() < 0.6:
            who = replace(who, cards=(card(chance, bank), *who.cards))
        phone = chance.random() < 0.5
        headers = sent.phone_browser(chance, "BR") if phone else sent.browser(chance, "BR")
        place = carrier_address(chance) if phone else home_address(chance)
        at = opens + chance.expovariate(1 / 120)
        made += purchase(
            chance, at, who, replace(shop, declines=0.2), device(chance, headers, place), price
        )
    return made


def renewal(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A subscription service charges its customers by a timer, without a device."""
    begins = chance.uniform(0, span.seconds)
    made: list[Attempt] = []
    for number in range(chance.randint(150, 300)):
        who = person(chance, "BR")
        charged = attempt(
            chance,
            begins + 4 * number,
            STREAMING,
            who.cards[0],
            STREAMING.declines,
            None,
            user=who.id,
            email=who.email,
            value=STREAMING.amount,
        )
        made.append(charged)
        if not charged.approved:
            again = charged.at + 6 * 3600
            made.append(
                attempt(
                    chance,
                    again,
                    STREAMING,
                    who.cards[0],
                    0.6,
                    None,
                    user=who.id,
                    email=who.email,
                    value=STREAMING.amount,
                    order=charged.order,
                )
            )
    return made


def traveller(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A card used in shops abroad, from one hotel network after another."""
    home, abroad = chance.sample(MARKETS, 2)
    who = person(chance, home)
    own = device(chance, sent.phone_browser(chance, home), office_address(chance))
    made: list[Attempt] = []
    for _ in range(chance.randint(2, 5)):
        shop = merchant(chance, abroad)
        place = chance.choice((office_address, carrier_address))(chance)
        at = waking_moment(chance, span, shop.hours)
        foreign = replace(shop, declines=0.25)
        made += purchase(chance, at, who, foreign, replace(own, address=place))
    return made


def retrier(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A person whose card is declined, who tries it again and then other cards."""
    who = person(chance, country(chance))
    source = issuer(chance, who.country)
    who = replace(who, cards=(*who.cards, card(chance, source)))
    shop = merchant(chance, who.country)
    own = device(chance, sent.browser(chance, who.country), home_address(chance))
    at = waking_moment(chance, span, shop.hours)
    value, order = amount(chance, shop), f"o-{token(chance, 12)}"
    made: list[Attempt] = []
    tried = [each for each in who.cards for _ in range(chance.choice((1, 1, 2)))][:6]
    for number, each in enumerate(tried):
        declines = 0.95 if number < len(tried) - 1 else 0.4
        made.append(
            attempt(
                chance,
                at,
                shop,
                each,
                declines,
                own,
                user=who.id,
                email=who.email,
                value=value,
                order=order,
            )
        )
        if made[-1].approved:
            break
        at += 5 + chance.lognormvariate(3.6, 0.7)
    return made


def shared_computer(chance: Random, span: TrafficSpan) -> list[Attempt]:
    """A computer in a library, an internet café or a travel agency: person after person."""
    where = country(chance)
    own = device(chance, sent.chromium(chance, where, phone=False), office_address(chance))
    made: list[Attempt] = []
    for day in range(int(span.hours // 24) or 1):
        shop = merchant(chance, where)
        at = 86_400 * day + waking_moment(
            chance, replace(span, hours=min(span.hours, 24)), shop.hours
        )
        for _ in range(chance.randint(4, 14)):
            made += purchase(chance, at, person(chance, where), shop, own)
            at += 120 + chance.expovariate(1 / 1500)
    return made


KINDS: Mapping[str, Callable[[Random, TrafficSpan], list[Attempt]]] = {
    "single": single,
    "family": family,
    "office": office,
    "carrier": carrier,
    "app": app,
    "flash_sale": flash_sale,
    "renewal": renewal,
    "traveller": traveller,
    "retrier": retrier,
    "shared_computer": shared_computer,
}
