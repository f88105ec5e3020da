"""What a seed draws for all its actors: shops, issuers, networks, codes and an outage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from random import Random

from tollkeeper.api.terminal.traffic.attempts import Attempt, TrafficSpan, waking_moment
from tollkeeper.api.terminal.traffic.headers import HeaderSet
from tollkeeper.api.terminal.traffic.world import (
    MARKETS,
    Issuer,
    SimulatedCard,
    SimulatedDevice,
    SimulatedMerchant,
    SimulatedPerson,
    card,
    email,
    token,
)

CODE_STYLES: tuple[Mapping[str, tuple[str, ...]], ...] = (
    {
        "approved": ("00",),
        "no_funds": ("51", "61", "65"),
        "wrong_card_data": ("14", "54", "82", "N7"),
        "stolen_or_lost": ("41", "43"),
        "suspected_fraud": ("59", "63"),
        "issuer_unavailable": ("91", "96"),
        "other": ("05", "57", "62"),
    },
    {
        "approved": ("00",),
        "no_funds": ("51",),
        "wrong_card_data": ("14", "54", "82"),
        "stolen_or_lost": ("46",),
        "suspected_fraud": ("59",),
        "issuer_unavailable": ("91", "AB"),
        "other": ("05", "57", "83"),
    },
    {
        "approved": ("0000",),
        "no_funds": ("4001",),
        "wrong_card_data": ("4014", "4054"),
        "stolen_or_lost": ("4043",),
        "suspected_fraud": ("4059",),
        "issuer_unavailable": ("5091",),
        "other": ("4005", "4099"),
    },
)
"""Response codes by meaning: of ISO 8583, of ABECS, and of an invented connector."""
REFUSALS_MEAN = ("no_funds", "wrong_card_data", "stolen_or_lost", "suspected_fraud", "other")
OF_PEOPLE = (45, 14, 2, 4, 35)
OF_LISTS = (20, 30, 15, 10, 25)
OF_GUESSES = (3, 75, 1, 6, 15)
"""The relative frequency of each of `REFUSALS_MEAN` for people, stolen lists and guessed numbers.
"""


@dataclass(frozen=True, slots=True)
class HardShop:
    """`spread` is the standard deviation of the amounts' logarithm; with `prices`, amounts are from
    that list.

    `guests` is the share of buyers without an account, `orders` that of payments with an order id,
    `reported` that of outcomes that are reported. `codes` is the index in `CODE_STYLES`.
    """

    merchant: SimulatedMerchant
    spread: float
    prices: tuple[float, ...]
    guests: float
    orders: float
    reported: float
    connector: str
    codes: int


@dataclass(frozen=True, slots=True)
class Outage:
    """From `begins` to `ends`, seconds from the start, a connector refuses the `share`."""

    connector: str
    begins: float
    ends: float
    share: float


@dataclass(frozen=True, slots=True)
class HardScene:
    """`carriers` and `hosts` are the first three bytes of networks, `switched` is the share of
    people whose headers contradict each other, `regulars` are returning customers.
    """

    span: TrafficSpan
    shops: tuple[HardShop, ...]
    issuers: tuple[Issuer, ...]
    carriers: tuple[int, ...]
    hosts: tuple[int, ...]
    switched: float
    outage: Outage | None
    regulars: tuple[SimulatedPerson, ...] = ()


def scene(chance: Random, span: TrafficSpan) -> HardScene:
    connectors = [f"acquirer-{n}" for n in range(chance.randint(1, 3))]
    where = chance.choices(MARKETS, (60, 15, 10, 15))[0]
    shops = tuple(_shop(chance, n, where, connectors) for n in range(chance.randint(3, 9)))
    begins = chance.uniform(0.2, 0.9) * span.seconds
    outage = Outage(
        chance.choice(connectors),
        begins,
        begins + chance.uniform(900, 7200),
        chance.uniform(0.4, 0.95),
    )
    networks = ("visa", "mastercard", "elo", "american_express", "discover", "hipercard")
    issuers = tuple(
        Issuer(
            str(chance.randrange(34_000_000, 65_999_999)),
            chance.choices(networks, (40, 35, 10, 5, 5, 5))[0],
            where,
            max(1, int(chance.paretovariate(1.1))),
        )
        for _ in range(chance.randint(15, 60))
    )
    drawn = HardScene(
        span=span,
        shops=shops,
        issuers=issuers,
        carriers=tuple(chance.randrange(1 << 8) for _ in range(chance.randint(1, 6))),
        hosts=tuple(chance.randrange(1 << 8) for _ in range(chance.randint(2, 40))),
        switched=chance.choice((0.002, 0.01, 0.03)),
        outage=outage if chance.random() < 0.6 else None,
    )
    return replace(drawn, regulars=tuple(somebody(chance, drawn) for _ in range(300)))


def shop(chance: Random, at: HardScene) -> HardShop:
    return chance.choices(at.shops, [each.merchant.weight for each in at.shops])[0]


def draw_card(chance: Random, at: HardScene, source: Issuer | None = None) -> SimulatedCard:
    issued = chance.choices(at.issuers, [each.weight for each in at.issuers])[0]
    return card(chance, source or issued)


def somebody(chance: Random, at: HardScene, cards: int = 0) -> SimulatedPerson:
    where = at.shops[0].merchant.country
    count = cards or chance.choices((1, 2, 3, 4), (55, 30, 10, 5))[0]
    return SimulatedPerson(
        id=f"u-{token(chance, 10)}",
        email=email(chance, where),
        country=where,
        cards=tuple(draw_card(chance, at) for _ in range(count)),
    )


def gadget(chance: Random, headers: HeaderSet, address: str) -> SimulatedDevice:
    """Return a device; many phones have the same basic fingerprint."""
    alike = "iPhone" in headers["User-Agent"] or chance.random() < 0.05
    basic = f"like-{chance.randrange(300):03}" if alike else token(chance)
    return SimulatedDevice(headers, address, basic, token(chance, 20))


def carrier_place(chance: Random, at: HardScene) -> str:
    network = chance.choice(at.carriers)
    return str(IPv4Address((198 << 24) + (18 << 16) + (network << 8) + chance.randrange(32)))


def host_place(chance: Random, at: HardScene) -> str:
    network = chance.choice(at.hosts)
    return str(IPv4Address((198 << 24) + (19 << 16) + (network << 8) + chance.randrange(256)))


def price(chance: Random, of: HardShop) -> float:
    """Return a price: from the shop's list, or around its typical amount."""
    if of.prices:
        return chance.choice(of.prices)
    value = max(1.0, of.merchant.amount * chance.lognormvariate(0, of.spread))
    return round(value, 2) if chance.random() < 0.5 else int(value) + chance.choice((0.9, 0.99))


def moment_at(chance: Random, at: HardScene, of: HardShop) -> float:
    """Return a second of the span at which the shop's customers are awake."""
    return waking_moment(chance, at.span, of.merchant.hours)


def pay(
    chance: Random,
    at: HardScene,
    of: HardShop,
    when: float,
    paid_with: SimulatedCard,
    refused: float,
    device: SimulatedDevice | None,
    *,
    value: float,
    reasons: tuple[int, ...] = OF_PEOPLE,
    user: str | None = None,
    email: str | None = None,
    order: str | None = None,
    verifies: bool = False,
) -> Attempt:
    """Return an attempt that is refused with probability `refused`, or by the outage."""
    codes = CODE_STYLES[of.codes]
    out = at.outage
    if (
        out is not None
        and of.connector == out.connector
        and out.begins <= when < out.ends
        and chance.random() < out.share
    ):
        meaning = "issuer_unavailable"
    elif chance.random() < refused:
        meaning = chance.choices(REFUSALS_MEAN, reasons)[0]
    else:
        meaning = "approved"
    sends_order = order is not None and chance.random() < of.orders
    return Attempt(
        at=when,
        answered=when + chance.lognormvariate(0.5, 0.6),
        id=f"p-{token(chance, 16)}",
        merchant=of.merchant,
        card=paid_with,
        amount=value,
        code=chance.choice(codes[meaning]),
        approved=meaning == "approved",
        device=device,
        user=user,
        email=email,
        order=order if sends_order else None,
        type="verify" if verifies else "purchase",
        connector=of.connector,
        is_reported=chance.random() < of.reported,
    )


def order_code(chance: Random) -> str:
    return f"o-{token(chance, 12)}"


def at_place(device: SimulatedDevice, address: str) -> SimulatedDevice:
    return replace(device, address=address)


def _shop(chance: Random, number: int, where: str, connectors: list[str]) -> HardShop:
    middle = chance.lognormvariate(4.2, 1.2)
    fixed = chance.random() < 0.35
    prices = tuple(round(middle * chance.lognormvariate(0, 0.8), 2) for _ in range(12))
    merchant = SimulatedMerchant(
        id=f"shop-{number}",
        country=where,  # type: ignore[arg-type]
        category_code=chance.choice(("5411", "5651", "5732", "5816", "7922", "4899")),
        currency={"BR": "BRL", "MX": "MXN", "PT": "EUR", "US": "USD"}[where],
        amount=middle,
        declines=chance.choice((0.04, 0.07, 0.1, 0.15, 0.22)),
        forwards=chance.choices(("all", "recommended", "name"), (55, 30, 15))[0],
        provider=chance.choices(("vendorjs", "basic", None), (55, 25, 20))[0],
        whole_email=chance.random() < 0.8,
        hours=chance.choice((-3, -5, 0)),
        weight=max(1, int(10 * chance.paretovariate(1.2))),
    )
    return HardShop(
        merchant=merchant,
        spread=chance.uniform(0.25, 1.1),
        prices=tuple(max(1.0, each) for each in prices[: chance.randint(2, 12)]) if fixed else (),
        guests=chance.choice((0.0, 0.2, 0.5, 1.0)),
        orders=chance.choice((0.0, 0.9, 1.0, 1.0)),
        reported=chance.choice((0.8, 0.95, 1.0)),
        connector=chance.choice(connectors),
        codes=chance.choices((0, 1, 2), (45, 40, 15))[0],
    )
