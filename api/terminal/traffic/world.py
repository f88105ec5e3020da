"""The invented participants: merchants, card issuers, addresses, names.

Addresses are of ranges that nobody uses on the internet: 198.18.0.0/15 and 240.0.0.0/8 for IPv4,
2001:db8::/32 for IPv6.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from random import Random
from typing import Any, Literal

from tollkeeper.api.terminal.traffic.headers import HeaderSet

Country = Literal["BR", "MX", "PT", "US"]
MARKETS: tuple[Country, ...] = ("BR", "MX", "PT", "US")
SHARES = (70, 12, 8, 10)
"""Each country's share of the traffic."""


@dataclass(frozen=True, slots=True)
class SimulatedMerchant:
    """`amount` is the typical amount, `declines` the share of legitimate attempts that are
    declined.

    `forwards` says which headers it forwards, `provider` who makes its fingerprints, None if
    nobody. If `whole_email` is false it only sends the domain. `hours` is its offset east of UTC.
    """

    id: str
    country: Country
    category_code: str
    currency: str
    amount: float
    declines: float
    forwards: str
    provider: str | None
    whole_email: bool
    hours: int
    weight: int


@dataclass(frozen=True, slots=True)
class Issuer:
    bin: str
    network: str
    country: Country
    weight: int


@dataclass(frozen=True, slots=True)
class SimulatedCard:
    network: str
    bin: str
    last_four: str


@dataclass(frozen=True, slots=True)
class SimulatedDevice:
    """`basic` and `vendor` are its fingerprints, by provider."""

    headers: HeaderSet
    address: str
    basic: str
    vendor: str


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    id: str
    email: str
    country: Country
    cards: tuple[SimulatedCard, ...]


MERCHANTS = (
    SimulatedMerchant("moda", "BR", "5651", "BRL", 160, 0.09, "all", "vendorjs", True, -3, 22),
    SimulatedMerchant("mercado", "BR", "5411", "BRL", 90, 0.07, "all", "basic", True, -3, 20),
    SimulatedMerchant(
        "entrega", "BR", "5812", "BRL", 55, 0.08, "recommended", "vendorjs", True, -3, 20
    ),
    SimulatedMerchant("jogos", "BR", "5816", "BRL", 25, 0.14, "all", "basic", True, -3, 10),
    SimulatedMerchant("ingressos", "BR", "7922", "BRL", 240, 0.11, "all", "vendorjs", True, -3, 6),
    SimulatedMerchant("electro", "MX", "5732", "MXN", 1900, 0.15, "recommended", None, True, -6, 8),
    SimulatedMerchant("livros", "PT", "5942", "EUR", 22, 0.05, "all", "vendorjs", False, 0, 6),
    SimulatedMerchant("gadgets", "US", "5732", "USD", 70, 0.06, "name", "basic", True, -5, 8),
)
STREAMING = SimulatedMerchant(
    "filmes", "BR", "4899", "BRL", 34.9, 0.17, "all", "vendorjs", True, -3, 0
)
"""A subscription service: its renewals come from a timer, without a device."""

ISSUERS = (
    *(Issuer(f"4{n:03}{n * 37 % 10000:04}", "visa", "BR", 30 // (n + 1) + 1) for n in range(12)),
    *(
        Issuer(f"5{1 + n % 5}{n:02}{n * 53 % 10000:04}", "mastercard", "BR", 30 // (n + 1) + 1)
        for n in range(12)
    ),
    Issuer("63636800", "elo", "BR", 10),
    Issuer("65003500", "elo", "BR", 6),
    Issuer("60628200", "hipercard", "BR", 4),
    Issuer("37644100", "american_express", "BR", 2),
    *(Issuer(f"42{n:02}{n * 71 % 10000:04}", "visa", "MX", 6) for n in range(5)),
    *(Issuer(f"54{n:02}{n * 91 % 10000:04}", "mastercard", "MX", 6) for n in range(4)),
    *(Issuer(f"47{n:02}{n * 31 % 10000:04}", "visa", "PT", 6) for n in range(4)),
    *(Issuer(f"44{n:02}{n * 67 % 10000:04}", "visa", "US", 8) for n in range(6)),
    *(Issuer(f"53{n:02}{n * 29 % 10000:04}", "mastercard", "US", 8) for n in range(4)),
    Issuer("60110000", "discover", "US", 3),
)
_NAMES = json.loads((Path(__file__).parent / "names.json").read_text())
FIRST: tuple[str, ...] = tuple(_NAMES["first"])
LAST_NAMES: tuple[str, ...] = tuple(_NAMES["last"])
DOMAINS: dict[str, tuple[str, ...]] = {
    country: tuple(several) for country, several in _NAMES["domains"].items()
}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def token(chance: Random, length: int = 32) -> str:
    return f"{chance.getrandbits(4 * length):0{length}x}"


def gibberish(chance: Random, length: int) -> str:
    return "".join(chance.choices(LETTERS + "0123456789", k=length))


def country(chance: Random) -> Country:
    return chance.choices(MARKETS, SHARES)[0]


def merchant(chance: Random, where: Country) -> SimulatedMerchant:
    """Return a merchant of the country, weighted by size."""
    known = [each for each in MERCHANTS if each.country == where]
    return chance.choices(known, [each.weight for each in known])[0]


def issuer(chance: Random, where: Country) -> Issuer:
    """Return an issuer of the country, weighted by size."""
    known = [each for each in ISSUERS if each.country == where]
    return chance.choices(known, [each.weight for each in known])[0]


def card(chance: Random, source: Issuer) -> SimulatedCard:
    return SimulatedCard(source.network, source.bin, f"{chance.randrange(10_000):04}")


def home_address(chance: Random) -> str:
    """Return a household's address: IPv4, or one of an IPv6 /64."""
    if chance.random() < 0.6:
        return str(IPv4Address((240 << 24) + chance.randrange(1 << 22)))
    return str(
        IPv6Address((0x20010DB8 << 96) + (chance.randrange(1 << 31) << 64) + chance.getrandbits(64))
    )


def carrier_address(chance: Random) -> str:
    """Return one of the few addresses behind which a mobile carrier puts thousands of people."""
    return str(IPv4Address((198 << 24) + (18 << 16) + chance.randrange(24)))


def office_address(chance: Random) -> str:
    return str(IPv4Address((198 << 24) + (18 << 16) + (1 << 14) + chance.randrange(1 << 12)))


def server_address(chance: Random) -> str:
    """Return an address in a data centre."""
    return str(IPv4Address((198 << 24) + (19 << 16) + chance.randrange(1 << 12)))


def email(chance: Random, where: Country) -> str:
    """Return a person's address; some people have one from a privacy service."""
    first, middle, last = chance.choice(FIRST), chance.choice(LAST_NAMES), chance.choice(LAST_NAMES)
    match chance.choices(range(6), (34, 24, 14, 14, 8, 6))[0]:
        case 0:
            local = f"{first}.{middle}.{last}"
        case 1:
            local = f"{first}{middle}{last[0]}{chance.choice(('', chance.randrange(1000)))}"
        case 2:
            local = f"{first[0]}{middle}{last}"
        case 3:
            local = f"{last}_{first}{chance.randrange(1950, 2010)}"
        case 4:
            local = f"{first[:3]}{middle[:3]}{chance.randrange(10_000)}"
        case _:
            return f"{gibberish(chance, 10)}@privaterelay.example"
    return f"{local}@{chance.choice(DOMAINS[where])}"


def person(chance: Random, where: Country) -> SimulatedPerson:
    count = chance.choices((1, 2, 3), (60, 30, 10))[0]
    return SimulatedPerson(
        id=f"u-{token(chance, 10)}",
        email=email(chance, where),
        country=where,
        cards=tuple(card(chance, issuer(chance, where)) for _ in range(count)),
    )


def device(chance: Random, headers: HeaderSet, address: str) -> SimulatedDevice:
    """Return a device; iPhones of one model have the same basic fingerprint."""
    alike = "iPhone" in headers["User-Agent"]
    return SimulatedDevice(
        headers=headers,
        address=address,
        basic=f"ios-{chance.randrange(400):03}" if alike else token(chance),
        vendor=token(chance, 20),
    )


def amount(chance: Random, shop: SimulatedMerchant) -> float:
    """Return an amount around the merchant's typical one; often a price that ends in 90 or 99."""
    value = max(1.0, shop.amount * chance.lognormvariate(0, 0.6))
    return round(value, 2) if chance.random() < 0.5 else int(value) + chance.choice((0.9, 0.99))


def card_body(paid_with: SimulatedCard) -> dict[str, Any]:
    return {
        "network": paid_with.network,
        "presence": "card_not_present",
        "bin": paid_with.bin,
        "last_four": paid_with.last_four,
    }
