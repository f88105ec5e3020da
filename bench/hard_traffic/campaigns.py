"""Automated traffic that hides: one function per family, which chooses a campaign's plan.

A plan chooses what each attempt shows: address, device, headers, name, card, amount and pace. A
family fixes what characterises it, and draws the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from tollkeeper.api.terminal.traffic import headers as sent
from tollkeeper.api.terminal.traffic.attempts import Attempt
from tollkeeper.api.terminal.traffic.bots import made_up_email
from tollkeeper.api.terminal.traffic.headers import HeaderSet
from tollkeeper.api.terminal.traffic.world import (
    DOMAINS,
    FIRST,
    LAST_NAMES,
    Issuer,
    SimulatedCard,
    SimulatedDevice,
    email,
    home_address,
    token,
)
from tollkeeper.bench.hard_traffic.scene import (
    OF_GUESSES,
    OF_LISTS,
    HardScene,
    HardShop,
    carrier_place,
    draw_card,
    gadget,
    host_place,
    order_code,
    pay,
    price,
    shop,
)

AddressChoice = Literal["host", "hosts", "home", "homes", "carrier"]
DeviceChoice = Literal["one", "few", "fresh", "none"]
HeaderChoice = Literal["library", "headless", "copied", "browser", "phone", "browsers"]
NameChoice = Literal["fresh", "made_up", "numbered", "few", "none"]
CardChoice = Literal["list", "issuers", "guess", "count", "few"]
AmountChoice = Literal["tiny", "fixed", "like_people"]
PaceChoice = Literal["burst", "timer", "random"]


@dataclass(frozen=True, slots=True)
class Campaign:
    """What the attempts show; `refused` is the share that is declined, `gap` the mean seconds
    between them.

    `orders` says whether each has an order of its own, `accounts` whether each has a user id.
    """

    place: AddressChoice
    gadgets: DeviceChoice
    clothes: HeaderChoice
    names: NameChoice
    cards: CardChoice
    values: AmountChoice
    pace: PaceChoice
    gap: float
    refused: float
    attempts: int
    orders: bool = True
    accounts: bool = False
    verifies: bool = False
    shops: int = 1


UNHIDDEN = Campaign(
    place="host",
    gadgets="one",
    clothes="browser",
    names="few",
    cards="list",
    values="tiny",
    pace="burst",
    gap=20.0,
    refused=0.7,
    attempts=120,
)
"""What attackers who adapt start with: one server, device and browser, and small amounts."""


def run(chance: Random, at: HardScene, plan: Campaign) -> list[Attempt]:
    """Return the attempts of one campaign, from a random moment of the span on."""
    return _run(chance, at, plan, Kit.drawn(chance, at, plan), None)


@dataclass(frozen=True, slots=True)
class Kit:
    """What a campaign has from its start."""

    shops: tuple[HardShop, ...]
    host: str
    home: str
    clothes: HeaderSet
    devices: tuple[SimulatedDevice, ...]
    emails: tuple[str, ...]
    cards: tuple[SimulatedCard, ...]
    value: float
    first: str
    order: str
    number: int

    @classmethod
    def drawn(cls, chance: Random, at: HardScene, plan: Campaign) -> Kit:
        host, home = host_place(chance, at), home_address(chance)
        where = at.shops[0].merchant.country
        worn = _clothes(chance, plan.clothes, where)
        of = tuple(shop(chance, at) for _ in range(plan.shops))
        return cls(
            shops=of,
            host=host,
            home=home,
            clothes=worn,
            devices=tuple(gadget(chance, worn, home) for _ in range(chance.randint(2, 6))),
            emails=tuple(email(chance, where) for _ in range(chance.randint(2, 5))),
            cards=tuple(draw_card(chance, at) for _ in range(chance.randint(3, 10))),
            value=price(chance, of[0]) if plan.values == "fixed" else chance.uniform(1, 8),
            first=f"{chance.choice(FIRST)}{chance.choice(LAST_NAMES)}",
            order=order_code(chance),
            number=chance.randrange(10_000),
        )


def _run(
    chance: Random, at: HardScene, plan: Campaign, kit: Kit, begins: float | None
) -> list[Attempt]:
    made: list[Attempt] = []
    banks = draw_banks(chance, at)
    when = chance.uniform(0, 0.9) * at.span.seconds if begins is None else begins
    for step in range(plan.attempts):
        made.append(try_once(chance, at, plan, kit, banks, step, when))
        when += draw_gap(chance, plan)
    return made


def draw_banks(chance: Random, at: HardScene) -> list[Issuer]:
    """Return the issuers of a campaign that uses cards of only some."""
    return [chance.choice(at.issuers) for _ in range(chance.randint(1, 4))]


def try_once(
    chance: Random,
    at: HardScene,
    plan: Campaign,
    kit: Kit,
    banks: list[Issuer],
    step: int,
    when: float,
) -> Attempt:
    """Return attempt number `step`, from 0, at second `when`."""
    of = kit.shops[step % len(kit.shops)]
    where = of.merchant.country
    value = 0.0 if plan.verifies else _value(chance, plan.values, kit, of)
    return pay(
        chance,
        at,
        of,
        when,
        _card(chance, at, plan.cards, kit, banks, step),
        plan.refused,
        _device(chance, at, plan, kit, where),
        value=value,
        reasons=OF_GUESSES if plan.cards in ("guess", "count") else OF_LISTS,
        user=f"u-{token(chance, 10)}" if plan.accounts else None,
        email=_name(chance, plan.names, kit, step, where),
        order=order_code(chance) if plan.orders else kit.order,
        verifies=plan.verifies,
    )


def draw_gap(chance: Random, plan: Campaign) -> float:
    """Return the seconds to the next attempt."""
    match plan.pace:
        case "burst":
            return chance.expovariate(1 / plan.gap)
        case "timer":
            return plan.gap + chance.gauss(0, 0.01 * plan.gap)
        case "random":
            return plan.gap * chance.lognormvariate(-0.3, 0.8)


def _device(
    chance: Random, at: HardScene, plan: Campaign, kit: Kit, where: str
) -> SimulatedDevice | None:
    worn = kit.clothes
    if plan.clothes in ("browsers", "copied"):
        worn = _clothes(chance, plan.clothes, where)
    address = _address(chance, at, plan.place, kit)
    match plan.gadgets:
        case "one":
            return replace(kit.devices[0], headers=worn, address=address)
        case "few":
            return replace(chance.choice(kit.devices), headers=worn, address=address)
        case "fresh":
            return gadget(chance, worn, address)
        case "none":
            return None


def _card(
    chance: Random, at: HardScene, cards: CardChoice, kit: Kit, banks: list[Issuer], step: int
) -> SimulatedCard:
    match cards:
        case "list":
            return draw_card(chance, at)
        case "issuers":
            return draw_card(chance, at, chance.choice(banks))
        case "guess":
            return draw_card(chance, at, banks[0])
        case "count":
            number = (kit.number + step) % 10_000
            return SimulatedCard(banks[0].network, banks[0].bin, f"{number:04}")
        case "few":
            return chance.choice(kit.cards)


def _value(chance: Random, values: AmountChoice, kit: Kit, of: HardShop) -> float:
    match values:
        case "tiny":
            return round(chance.uniform(0.5, 0.15 * of.merchant.amount + 1), 2)
        case "fixed":
            return round(kit.value, 2)
        case "like_people":
            return price(chance, of)


def _address(chance: Random, at: HardScene, place: AddressChoice, kit: Kit) -> str:
    match place:
        case "host":
            return kit.host
        case "hosts":
            return host_place(chance, at)
        case "home":
            return kit.home
        case "homes":
            return home_address(chance)
        case "carrier":
            return carrier_place(chance, at)


def _clothes(chance: Random, clothes: HeaderChoice, where: str) -> HeaderSet:
    match clothes:
        case "library":
            return chance.choice(sent.LIBRARIES)
        case "headless":
            return sent.headless(chance, where)
        case "copied":
            return sent.copy_headers(chance, where)
        case "phone":
            return sent.phone_browser(chance, where)
        case _:
            return sent.browser(chance, where)


def _name(chance: Random, names: NameChoice, kit: Kit, step: int, where: str) -> str | None:
    match names:
        case "fresh":
            return email(chance, where)  # type: ignore[arg-type]
        case "made_up":
            return made_up_email(chance, where)  # type: ignore[arg-type]
        case "numbered":
            return f"{kit.first}{step:03}@{DOMAINS[where][0]}"
        case "few":
            return chance.choice(kit.emails)
        case "none":
            return None


def library_lists(chance: Random, at: HardScene) -> list[Attempt]:
    """A script with its library's default headers tries stolen cards."""
    plan = Campaign(
        place=chance.choice(("host", "hosts")),
        gadgets=chance.choice(("one", "fresh")),
        clothes="library",
        names=chance.choice(("fresh", "made_up", "few")),
        cards="list",
        values=chance.choice(("tiny", "fixed", "like_people")),
        pace=chance.choice(("burst", "timer")),
        gap=chance.uniform(2, 60),
        refused=chance.uniform(0.5, 0.95),
        attempts=chance.randint(15, 150),
    )
    return run(chance, at, plan)


def driven_browser(chance: Random, at: HardScene) -> list[Attempt]:
    """An automated browser, half of the time without a trace of it in the headers."""
    plan = Campaign(
        place=chance.choice(("host", "homes", "home")),
        gadgets=chance.choice(("one", "few", "fresh")),
        clothes=chance.choice(("headless", "browser")),
        names=chance.choice(("fresh", "made_up", "few")),
        cards=chance.choice(("list", "issuers")),
        values=chance.choice(("fixed", "like_people")),
        pace="random",
        gap=chance.uniform(20, 240),
        refused=chance.uniform(0.45, 0.9),
        attempts=chance.randint(15, 80),
    )
    return run(chance, at, plan)


def guessed_numbers(chance: Random, at: HardScene) -> list[Attempt]:
    """Card numbers of one BIN, from another household each time."""
    plan = Campaign(
        place="homes",
        gadgets=chance.choice(("fresh", "none")),
        clothes="browsers",
        names=chance.choice(("fresh", "made_up", "none")),
        cards=chance.choice(("guess", "count")),
        values=chance.choice(("tiny", "fixed", "like_people")),
        pace="burst",
        gap=chance.uniform(3, 90),
        refused=chance.uniform(0.85, 0.98),
        attempts=chance.randint(60, 300),
    )
    return run(chance, at, plan)


def rotating_lists(chance: Random, at: HardScene) -> list[Attempt]:
    """Everything is new each time, with cards of a few banks."""
    plan = Campaign(
        place="homes",
        gadgets="fresh",
        clothes="browsers",
        names=chance.choice(("fresh", "made_up")),
        cards=chance.choice(("list", "issuers")),
        values=chance.choice(("fixed", "like_people")),
        pace="burst",
        gap=chance.uniform(10, 180),
        refused=chance.uniform(0.6, 0.9),
        attempts=chance.randint(40, 200),
    )
    return run(chance, at, plan)


def patient_list(chance: Random, at: HardScene) -> list[Attempt]:
    """One device, a card every half hour, for a day."""
    plan = Campaign(
        place=chance.choice(("home", "carrier")),
        gadgets="one",
        clothes="browser",
        names=chance.choice(("few", "fresh")),
        cards="list",
        values="like_people",
        pace="random",
        gap=chance.uniform(600, 3000),
        refused=chance.uniform(0.5, 0.85),
        attempts=chance.randint(15, 45),
    )
    return run(chance, at, plan)


def accounts_by_the_dozen(chance: Random, at: HardScene) -> list[Attempt]:
    """New accounts on a few phones with a few cards, for a voucher each; most are accepted."""
    plan = Campaign(
        place=chance.choice(("home", "carrier")),
        gadgets="few",
        clothes="phone",
        names=chance.choice(("numbered", "made_up", "fresh")),
        cards="few",
        values=chance.choice(("fixed", "like_people")),
        pace="random",
        gap=chance.uniform(60, 900),
        refused=chance.uniform(0.1, 0.35),
        attempts=chance.randint(20, 80),
        accounts=True,
    )
    return run(chance, at, plan)


def timed_replay(chance: Random, at: HardScene) -> list[Attempt]:
    """One recorded checkout, repeated by a timer."""
    plan = Campaign(
        place=chance.choice(("host", "home")),
        gadgets=chance.choice(("one", "one", "none")),
        clothes="browser",
        names="few",
        cards=chance.choice(("few", "list")),
        values="fixed",
        pace="timer",
        gap=chance.uniform(20, 600),
        refused=chance.uniform(0.25, 0.8),
        attempts=chance.randint(20, 80),
    )
    return run(chance, at, plan)


def verifications(chance: Random, at: HardScene) -> list[Attempt]:
    """Cards tried by zero-amount verifications, which no cardholder sees."""
    plan = Campaign(
        place=chance.choice(("hosts", "homes", "carrier")),
        gadgets=chance.choice(("few", "fresh")),
        clothes=chance.choice(("browsers", "phone")),
        names=chance.choice(("fresh", "made_up", "none")),
        cards=chance.choice(("list", "guess", "issuers")),
        values="tiny",
        pace="burst",
        gap=chance.uniform(5, 120),
        refused=chance.uniform(0.5, 0.9),
        attempts=chance.randint(30, 200),
        verifies=True,
    )
    return run(chance, at, plan)


def behind_a_carrier(chance: Random, at: HardScene) -> list[Attempt]:
    """A rack of phones behind a carrier's addresses, among its customers, with similar amounts."""
    plan = Campaign(
        place="carrier",
        gadgets=chance.choice(("few", "fresh")),
        clothes="phone",
        names="fresh",
        cards=chance.choice(("list", "issuers")),
        values="like_people",
        pace=chance.choice(("random", "burst")),
        gap=chance.uniform(20, 240),
        refused=chance.uniform(0.5, 0.9),
        attempts=chance.randint(40, 150),
    )
    return run(chance, at, plan)


def bare_interface(chance: Random, at: HardScene) -> list[Attempt]:
    """Straight to the API of a shop's app: without a device, regularly or in bursts."""
    plan = Campaign(
        place="host",
        gadgets="none",
        clothes="library",
        names=chance.choice(("fresh", "made_up", "none")),
        cards=chance.choice(("list", "guess", "issuers")),
        values=chance.choice(("tiny", "fixed", "like_people")),
        pace=chance.choice(("timer", "burst")),
        gap=chance.uniform(2, 90),
        refused=chance.uniform(0.5, 0.95),
        attempts=chance.randint(30, 200),
        accounts=chance.random() < 0.3,
    )
    return run(chance, at, plan)


def borrowed_headers(chance: Random, at: HardScene) -> list[Attempt]:
    """A script under a browser's name, from a data centre or from households."""
    plan = Campaign(
        place=chance.choice(("host", "hosts", "homes")),
        gadgets=chance.choice(("fresh", "few")),
        clothes="copied",
        names=chance.choice(("fresh", "made_up")),
        cards=chance.choice(("list", "issuers")),
        values=chance.choice(("tiny", "like_people")),
        pace=chance.choice(("burst", "random")),
        gap=chance.uniform(5, 90),
        refused=chance.uniform(0.5, 0.9),
        attempts=chance.randint(20, 120),
    )
    return run(chance, at, plan)


def spread_numbers(chance: Random, at: HardScene) -> list[Attempt]:
    """Numbers of several BINs over several shops, slowly, so that each shop sees few."""
    plan = Campaign(
        place=chance.choice(("homes", "carrier")),
        gadgets="fresh",
        clothes="browsers",
        names="fresh",
        cards=chance.choice(("issuers", "guess")),
        values="like_people",
        pace="random",
        gap=chance.uniform(60, 300),
        refused=chance.uniform(0.75, 0.95),
        attempts=chance.randint(60, 200),
        shops=chance.randint(2, 4),
    )
    return run(chance, at, plan)


def warm_accounts(chance: Random, at: HardScene) -> list[Attempt]:
    """Regular customers' accounts are taken over, and their names used to try cards."""
    made: list[Attempt] = []
    victims = chance.sample(at.regulars, chance.randint(3, 8))
    where = at.shops[0].merchant.country
    of = shop(chance, at)
    begins = chance.uniform(0.5, 0.9) * at.span.seconds
    thief = gadget(chance, sent.browser(chance, where), home_address(chance))
    for each in victims:
        when = begins + chance.uniform(0, 7200)
        for _ in range(chance.randint(4, 14)):
            value = price(chance, of)
            made.append(
                pay(
                    chance,
                    at,
                    of,
                    when,
                    draw_card(chance, at),
                    chance.uniform(0.5, 0.85),
                    thief
                    if chance.random() < 0.6
                    else gadget(chance, thief.headers, thief.address),
                    value=value,
                    reasons=OF_LISTS,
                    user=each.id,
                    email=each.email,
                    order=order_code(chance),
                )
            )
            when += chance.lognormvariate(4.5, 0.7)
    return made


def one_order(chance: Random, at: HardScene) -> list[Attempt]:
    """Card after card for one order, each from another device."""
    plan = Campaign(
        place=chance.choice(("homes", "carrier", "hosts")),
        gadgets="fresh",
        clothes="browsers",
        names=chance.choice(("few", "none", "fresh")),
        cards="list",
        values="fixed",
        pace="random",
        gap=chance.uniform(15, 200),
        refused=chance.uniform(0.6, 0.95),
        attempts=chance.randint(12, 60),
        orders=False,
    )
    return run(chance, at, plan)


def climber(chance: Random, at: HardScene) -> list[Attempt]:
    """Changes the cheapest thing each time it is refused: the name, then headers, device, address,
    pace.
    """
    plan = replace(
        UNHIDDEN,
        gap=chance.uniform(5, 30),
        refused=chance.uniform(0.6, 0.9),
        attempts=chance.randint(5, 12),
    )
    stages = (
        plan,
        plan := replace(plan, names="fresh", values="like_people"),
        plan := replace(plan, clothes="browsers"),
        plan := replace(plan, gadgets="fresh"),
        plan := replace(plan, place="hosts"),
        plan := replace(plan, place="homes"),
        replace(plan, pace="random", gap=300.0, attempts=20),
    )
    kit, begins = Kit.drawn(chance, at, plan), chance.uniform(0, 0.8) * at.span.seconds
    made: list[Attempt] = []
    for each in stages:
        made += _run(chance, at, each, kit, begins)
        begins = made[-1].at + 60
    return made


def shared_cards(chance: Random, at: HardScene) -> list[Attempt]:
    """A few working cards, under a new name each time, from other devices: few are refused."""
    plan = Campaign(
        place=chance.choice(("carrier", "homes")),
        gadgets="fresh",
        clothes="phone",
        names="fresh",
        cards="few",
        values="like_people",
        pace="random",
        gap=chance.uniform(60, 1200),
        refused=chance.uniform(0.1, 0.4),
        attempts=chance.randint(20, 70),
        accounts=True,
    )
    return run(chance, at, plan)


CAMPAIGNS: Mapping[str, Callable[[Random, HardScene], list[Attempt]]] = {
    "library_lists": library_lists,
    "driven_browser": driven_browser,
    "guessed_numbers": guessed_numbers,
    "rotating_lists": rotating_lists,
    "patient_list": patient_list,
    "accounts_by_the_dozen": accounts_by_the_dozen,
    "timed_replay": timed_replay,
    "verifications": verifications,
    "behind_a_carrier": behind_a_carrier,
    "bare_interface": bare_interface,
    "borrowed_headers": borrowed_headers,
    "spread_numbers": spread_numbers,
    "warm_accounts": warm_accounts,
    "one_order": one_order,
    "climber": climber,
    "shared_cards": shared_cards,
}
