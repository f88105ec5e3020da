"""Legitimate traffic that resembles attacks: one function per kind of person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from tollkeeper.api.terminal.traffic import headers as sent
from tollkeeper.api.terminal.traffic.attempts import Attempt
from tollkeeper.api.terminal.traffic.world import (
    SimulatedCard,
    SimulatedDevice,
    SimulatedPerson,
    email,
    home_address,
    office_address,
    token,
)
from tollkeeper.bench.hard_traffic.scene import (
    HardScene,
    HardShop,
    at_place,
    carrier_place,
    draw_card,
    gadget,
    host_place,
    moment_at,
    order_code,
    pay,
    price,
    shop,
    somebody,
)


def buy(
    chance: Random,
    at: HardScene,
    of: HardShop,
    when: float,
    who: SimulatedPerson,
    device: SimulatedDevice | None,
    *,
    value: float | None = None,
    guest: bool | None = None,
    keeps_order: float = 0.7,
    refused: float | None = None,
) -> list[Attempt]:
    """Return a person's purchase; after a refusal most try again: the same card, another one,
    mistyped digits.

    `keeps_order` says whether the shop keeps the order's id for a retry.
    """
    guest = chance.random() < of.guests if guest is None else guest
    value = price(chance, of) if value is None else value
    paid_with = who.cards[0]
    rate = of.merchant.declines if refused is None else refused
    order, made = order_code(chance), list[Attempt]()
    while len(made) < 7:
        made.append(
            pay(
                chance,
                at,
                of,
                when,
                paid_with,
                rate,
                device,
                value=value,
                user=None if guest else who.id,
                email=who.email,
                order=order,
            )
        )
        if made[-1].approved or chance.random() > 0.7:
            break
        when = made[-1].answered + chance.lognormvariate(3.4, 0.9)
        order = order if chance.random() < keeps_order else order_code(chance)
        if len(who.cards) > 1 and chance.random() < 0.5:
            paid_with, rate = chance.choice(who.cards[1:]), 0.25
        else:
            rate = 0.6
    return made


def visit(
    chance: Random,
    at: HardScene,
    who: SimulatedPerson,
    device: SimulatedDevice,
    of: HardShop | None = None,
) -> list[Attempt]:
    """Return a person's purchases in the span: mostly one, for some several over days."""
    made: list[Attempt] = []
    of = shop(chance, at) if of is None else of
    for _ in range(min(8, 1 + int(chance.expovariate(1 / 0.6)))):
        made += buy(chance, at, of, moment_at(chance, at, of), who, device)
        of = of if chance.random() < 0.7 else shop(chance, at)
    return made


def single(chance: Random, at: HardScene) -> list[Attempt]:
    """A person at home, whose headers sometimes contradict each other."""
    who = somebody(chance, at)
    headers = sent.browser(chance, who.country)
    if chance.random() < at.switched:
        headers = sent.alter_headers(chance, headers)
    return visit(chance, at, who, gadget(chance, headers, home_address(chance)))


def on_carrier(chance: Random, at: HardScene) -> list[Attempt]:
    """A person on a phone, whose carrier puts thousands behind an address."""
    who = somebody(chance, at)
    own = gadget(chance, sent.phone_browser(chance, who.country), carrier_place(chance, at))
    return [
        replace(each, device=at_place(own, carrier_place(chance, at)))
        for each in visit(chance, at, who, own)
    ]


def in_app(chance: Random, at: HardScene) -> list[Attempt]:
    """A person in a shop's app."""
    who = somebody(chance, at)
    place = carrier_place(chance, at) if chance.random() < 0.5 else home_address(chance)
    return visit(chance, at, who, gadget(chance, sent.app(chance, who.country), place))


def household(chance: Random, at: HardScene) -> list[Attempt]:
    """A few people behind one address, who share a device and a card."""
    place, made = home_address(chance), list[Attempt]()
    members = [somebody(chance, at) for _ in range(chance.randint(2, 5))]
    tablet = gadget(chance, sent.browser(chance, members[0].country), place)
    for each in members:
        who = replace(each, cards=(members[0].cards[0], *each.cards))
        own = gadget(chance, sent.browser(chance, who.country), place)
        chosen = who if chance.random() < 0.4 else each
        made += visit(chance, at, chosen, tablet if chance.random() < 0.5 else own)
    return made


def lunch(chance: Random, at: HardScene) -> list[Attempt]:
    """An office at noon: one address, one kind of browser, one shop."""
    of, place = shop(chance, at), office_address(chance)
    noon, made = moment_at(chance, at, of), list[Attempt]()
    headers = sent.chromium(chance, of.merchant.country, "Microsoft Edge")
    for _ in range(chance.randint(10, 50)):
        when = noon + abs(chance.gauss(0, 1500))
        made += buy(chance, at, of, when, somebody(chance, at), gadget(chance, headers, place))
    return made


def sale(chance: Random, at: HardScene) -> list[Attempt]:
    """Hundreds buy one thing at one price within the same minutes, many with one bank's cards."""
    of, bank = shop(chance, at), chance.choice(at.issuers)
    opens, value, made = moment_at(chance, at, of), price(chance, of), list[Attempt]()
    refused = min(0.35, of.merchant.declines * chance.uniform(1, 2.2))
    for _ in range(chance.randint(60, 300)):
        who = somebody(chance, at)
        if chance.random() < 0.5:
            who = replace(who, cards=(draw_card(chance, at, bank), *who.cards))
        phone = chance.random() < 0.5
        own = gadget(
            chance,
            (sent.phone_browser if phone else sent.browser)(chance, who.country),
            carrier_place(chance, at) if phone else home_address(chance),
        )
        when = opens + chance.expovariate(1 / 200)
        made += buy(chance, at, of, when, who, own, value=value, refused=refused)
    return made


def subscription(chance: Random, at: HardScene) -> list[Attempt]:
    """A timer charges customers at one price and retries refused ones: without a device."""
    of, made = shop(chance, at), list[Attempt]()
    begins, value = chance.uniform(0, 0.8 * at.span.seconds), price(chance, of)
    gap = chance.choice((2, 5, 30))
    for number in range(chance.randint(50, 250)):
        who, order = somebody(chance, at), order_code(chance)
        when, refused = begins + gap * number, chance.uniform(0.1, 0.3)
        for _ in range(3):
            made.append(
                pay(
                    chance,
                    at,
                    of,
                    when,
                    who.cards[0],
                    refused,
                    None,
                    value=value,
                    user=who.id,
                    email=who.email,
                    order=order,
                )
            )
            if made[-1].approved:
                break
            when, refused = when + chance.choice((3600, 21_600)), 0.7
    return made


def counter(chance: Random, at: HardScene) -> list[Attempt]:
    """A shared computer, or a shop's counter where staff pay for customers with their cards."""
    of, made = shop(chance, at), list[Attempt]()
    headers = sent.chromium(chance, of.merchant.country, phone=False)
    own = gadget(chance, headers, office_address(chance))
    days = max(1, int(at.span.hours // 24))
    for day in range(days):
        when = 86_400 * day + chance.uniform(8, 11) * 3600
        for _ in range(chance.randint(3, 20)):
            made += buy(chance, at, of, when, somebody(chance, at), own)
            when += 120 + chance.expovariate(1 / 1500)
    return made


def corporate_buyer(chance: Random, at: HardScene) -> list[Attempt]:
    """A buyer with many cards of a company, mostly one bank's, in one office."""
    of, bank = shop(chance, at), chance.choice(at.issuers)
    who = somebody(chance, at)
    cards = [draw_card(chance, at, bank) for _ in range(chance.randint(5, 25))]
    own = gadget(chance, sent.chromium(chance, who.country, phone=False), office_address(chance))
    when, made = moment_at(chance, at, of), list[Attempt]()
    usual = price(chance, of)
    for number in range(chance.randint(10, 40)):
        paid = replace(who, cards=(cards[number % len(cards)], *chance.sample(cards, 2)))
        value = usual if chance.random() < 0.4 else price(chance, of)
        made += buy(chance, at, of, when, paid, own, value=value, guest=False)
        when += 60 + chance.expovariate(1 / 900)
    return made


def private_browser(chance: Random, at: HardScene) -> list[Attempt]:
    """A privacy-minded person: another fingerprint each time, a relay's address, uniform headers."""
    who = somebody(chance, at)
    who = replace(who, email=f"{token(chance, 10)}@privaterelay.example")
    headers = dict(sent.firefox(chance, who.country))
    headers["Accept-Language"] = "en-US,en;q=0.5"
    if chance.random() < 0.4:
        headers = dict(sent.alter_headers(chance, headers))
    place = host_place(chance, at) if chance.random() < 0.5 else home_address(chance)
    return [
        replace(each, device=gadget(chance, headers, place))
        for each in visit(chance, at, who, gadget(chance, headers, place))
    ]


def assisted_sale(chance: Random, at: HardScene) -> list[Attempt]:
    """A call centre or a market seller types customers' cards into one tool, on a few devices."""
    of, place, made = shop(chance, at), office_address(chance), list[Attempt]()
    headers = sent.chromium(chance, of.merchant.country, phone=False)
    desks = [gadget(chance, headers, place) for _ in range(chance.randint(1, 4))]
    seller = somebody(chance, at)
    when = moment_at(chance, at, of)
    for _ in range(chance.randint(15, 60)):
        who = somebody(chance, at)
        if chance.random() < 0.3:
            who = replace(who, email=seller.email)
        refused = min(0.3, of.merchant.declines * 1.5)
        desk = chance.choice(desks)
        made += buy(chance, at, of, when, who, desk, guest=True, refused=refused)
        when += 60 + chance.expovariate(1 / 240)
    return made


def new_orders(chance: Random, at: HardScene) -> list[Attempt]:
    """A person whose card is refused repeatedly, in a shop that makes a new order each time."""
    who, of = somebody(chance, at, cards=chance.randint(1, 4)), shop(chance, at)
    own = gadget(chance, sent.browser(chance, who.country), home_address(chance))
    when = moment_at(chance, at, of)
    return buy(chance, at, of, when, who, own, keeps_order=0, refused=0.9)


def mistyper(chance: Random, at: HardScene) -> list[Attempt]:
    """A person who mistypes the card number once or twice, then types it right."""
    who, of = somebody(chance, at, cards=1), shop(chance, at)
    own = gadget(chance, sent.phone_browser(chance, who.country), carrier_place(chance, at))
    when, right = moment_at(chance, at, of), who.cards[0]
    value, order, made = price(chance, of), order_code(chance), list[Attempt]()
    for _ in range(chance.randint(1, 3)):
        typed = SimulatedCard(right.network, right.bin, f"{chance.randrange(10_000):04}")
        wrong = (0, 1, 0, 0, 0)
        made.append(
            pay(
                chance,
                at,
                of,
                when,
                typed,
                1,
                own,
                value=value,
                reasons=wrong,
                user=who.id,
                email=who.email,
                order=order,
            )
        )
        when += chance.lognormvariate(3.2, 0.5)
    return made + buy(chance, at, of, when, who, own, value=value, guest=False)


def verifier(chance: Random, at: HardScene) -> list[Attempt]:
    """A person who adds cards to a wallet: zero-amount verifications, then a purchase."""
    who, of = somebody(chance, at, cards=chance.randint(1, 3)), shop(chance, at)
    own = gadget(chance, sent.app(chance, who.country), carrier_place(chance, at))
    when, made = moment_at(chance, at, of), list[Attempt]()
    for each in who.cards:
        made.append(
            pay(
                chance,
                at,
                of,
                when,
                each,
                of.merchant.declines,
                own,
                value=0.0,
                user=who.id,
                email=who.email,
                verifies=True,
            )
        )
        when += chance.lognormvariate(3.5, 0.6)
    return made + buy(chance, at, of, when + 60, who, own, guest=False)


def partner_server(chance: Random, at: HardScene) -> list[Attempt]:
    """A partner's server buys for its own customers, whose devices are unknown: one address."""
    of, place, made = shop(chance, at), host_place(chance, at), list[Attempt]()
    for _ in range(chance.randint(30, 120)):
        made += buy(chance, at, of, moment_at(chance, at, of), somebody(chance, at), None)
    return [replace(each, partner=place) for each in made]


def reseller(chance: Random, at: HardScene) -> list[Attempt]:
    """Buys one thing repeatedly at one price with two cards, under one name."""
    who, of = somebody(chance, at, cards=2), shop(chance, at)
    own = gadget(chance, sent.browser(chance, who.country), home_address(chance))
    when, value, made = moment_at(chance, at, of), price(chance, of), list[Attempt]()
    for _ in range(chance.randint(6, 25)):
        made += buy(chance, at, of, when, who, own, value=value, guest=False)
        when += chance.lognormvariate(4.5, 0.8)
    return made


def abroad(chance: Random, at: HardScene) -> list[Attempt]:
    """A traveller: foreign networks, more refusals, other languages."""
    who = somebody(chance, at)
    own = gadget(chance, sent.phone_browser(chance, "PT"), office_address(chance))
    made: list[Attempt] = []
    for _ in range(chance.randint(2, 5)):
        of = shop(chance, at)
        place = office_address(chance) if chance.random() < 0.5 else carrier_place(chance, at)
        when = moment_at(chance, at, of)
        made += buy(chance, at, of, when, who, at_place(own, place), refused=0.3)
    return made


def campus(chance: Random, at: HardScene) -> list[Attempt]:
    """Students in one network with numbered e-mail addresses of their college and one bank's new
    cards.
    """
    bank, made = chance.choice(at.issuers), list[Attempt]()
    base = int(office_address(chance).rpartition(".")[2])
    network = office_address(chance).rpartition(".")[0]
    for _ in range(chance.randint(15, 50)):
        who = somebody(chance, at)
        mine = draw_card(chance, at, bank)
        who = replace(
            who, email=f"s{chance.randrange(10**6):06}@college.example", cards=(mine, *who.cards)
        )
        place = f"{network}.{(base + chance.randrange(200)) % 256}"
        made += visit(chance, at, who, gadget(chance, sent.browser(chance, who.country), place))
    return made


def odd_name(chance: Random, at: HardScene) -> list[Attempt]:
    """A person whose device's headers are old, rare or of an unusual browser."""
    who = somebody(chance, at)
    headers = dict(sent.browser(chance, who.country))
    name = chance.choice(("Puffin/9", "UCBrowser/13", "SeaMonkey/2.53", "Vivaldi/6.8"))
    headers["User-Agent"] += f" {name}"
    headers["Accept-Language"] = chance.choice(("de-CH,de;q=0.9", "ja-JP", "en-GB,en;q=0.7"))
    who = replace(who, email=email(chance, who.country))
    return visit(chance, at, who, gadget(chance, headers, home_address(chance)))


def regular(chance: Random, at: HardScene) -> list[Attempt]:
    """A customer who comes back to one shop for the whole time."""
    who = chance.choice(at.regulars)
    of = at.shops[int(who.id[-2:], 16) % len(at.shops)]
    place = home_address(Random(who.id))
    own = gadget(Random(who.id), sent.browser(Random(who.id), who.country), place)
    return buy(chance, at, of, moment_at(chance, at, of), who, own, guest=False)


CROWD: Mapping[str, Callable[[Random, HardScene], list[Attempt]]] = {
    "single": single,
    "on_carrier": on_carrier,
    "in_app": in_app,
    "household": household,
    "lunch": lunch,
    "sale": sale,
    "subscription": subscription,
    "counter": counter,
    "corporate_buyer": corporate_buyer,
    "private_browser": private_browser,
    "assisted_sale": assisted_sale,
    "new_orders": new_orders,
    "mistyper": mistyper,
    "verifier": verifier,
    "partner_server": partner_server,
    "reseller": reseller,
    "abroad": abroad,
    "campus": campus,
    "odd_name": odd_name,
    "regular": regular,
}
