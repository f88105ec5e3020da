"""Nasty payments, histories and environments for property tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.facts.clients import Client
from tollkeeper.engine.facts.facts import Facts, StoredFacts, recall
from tollkeeper.engine.facts.vocabulary import vocabulary
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.addresses import address_number
from tollkeeper.engine.intake.payment import (
    Backend,
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
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import build_contents
from tollkeeper.engine.lists.entries import read_entry
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.lists.spec import EntryType, ListSpec, Spec, TableSpec
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

CURRENCIES = ("BRL", "EUR", "USD")
VOCABULARY = vocabulary(
    {"currency": CURRENCIES, "country": ("BR", "US"), "category_code": ("5411", "7995")}
)
TEXTS = (
    "", "a", "A", "visa", "@", "a@b", "a@@B.COM", "shop.test", "İstanbul", "ΣΑΣ", "straße", "ﬁ",
    "\x00", "😀😀", "42", " -1.5e3 ", "1e400", "0.0000005", "41111111", "41111111-1234",
)  # fmt: skip
ADDRESSES = ("1.2.3.4", "10.0.0.1", "255.255.255.255", "::", "2001:db8::1", "::ffff:1.2.3.4")
AMOUNTS = (0.0, 0.01, 9.99, 10.0, 10.01, 1e12)
INSTANTS = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2025, 3, 30, 2, 30, tzinfo=timezone(timedelta(hours=-3))),
    datetime(2026, 11, 21, 8, 21, 4, 1, tzinfo=UTC),
)
ENTRIES = (
    0, 1, -1, 0.0, -0.0, 0.1, 0.3, 1e-7, 5e-7, 1e12, 10**12 + 1, 1e300, True, False, "", "a", "42",
    [], {}, None,
)  # fmt: skip
LISTS: dict[str, EntryType] = {"strings": "string", "numbers": "number", "addresses": "ip"}
TABLES: dict[str, TableSpec] = {
    "rows": TableSpec("value", {"text": "string", "amount": "number", "flag": "boolean"}),
    "bins": TableSpec("prefix", {"text": "string", "amount": "number", "flag": "boolean"}),
    "places": TableSpec("network", {"text": "string", "amount": "number", "flag": "boolean"}),
}
COLUMNS: dict[str, t.Type] = {
    "text": t.String(),
    "amount": t.Number(t.METADATA_SCALE),
    "flag": t.Boolean(),
}


def payment(random: Random) -> Facts:
    """A payment with anything at all missing, required fields as in a rule's own tests."""
    pick = random.choice

    def maybe(value: Any) -> Any:
        return value if random.random() < 0.75 else None

    def headers() -> dict[str, str]:
        names = random.sample(("User-Agent", "user-agent", "X-A", "x-b"), random.randrange(4))
        return {name: pick(TEXTS) for name in names}

    attempts = tuple(
        Transaction(
            id=maybe(pick(TEXTS)),
            status=pick(("succeeded", "declined", "failed", "canceled")),
            connector=Connector(pick(TEXTS), maybe(pick(TEXTS)), maybe(pick(TEXTS))),
            duration=maybe(pick((0, 1, 50, 2000, 2**31 - 1))),
            timestamp=maybe(pick(INSTANTS)),
        )
        for _ in range(random.choice((0, 0, 1, 2, 5)))
    )
    card = Card(
        network=pick(("visa", "elo", "other")),
        presence=pick(("card_present", "card_not_present")),
        bin=maybe("41111111"),
        last_four=maybe("1234"),
    )
    device = Device(
        ip_address=maybe(pick(ADDRESSES)),
        headers=maybe(headers()),
        fingerprint=maybe(Fingerprint(pick(TEXTS), pick(("basic", "vendorjs")))),
    )
    paid = Payment(
        id=pick(TEXTS),
        type=pick(("purchase", "verify")),
        status=pick(("initiated", "succeeded", "declined")),
        currency=maybe(pick(CURRENCIES)),
        amount=maybe(pick(AMOUNTS)),
        timestamp=pick(INSTANTS),
        method=maybe(Method(type=pick(TEXTS), card=maybe(card))),
        backend=maybe(Backend(maybe(pick(ADDRESSES)), maybe(headers()))),
        device=maybe(device),
        user=maybe(User(maybe(pick(TEXTS)), maybe(pick(TEXTS)))),
        order=maybe(Order(maybe(pick(TEXTS)))),
        merchant=maybe(Merchant(pick(TEXTS), maybe(pick(("BR", "US"))), maybe("5411"))),
        transactions=attempts,
        metadata=maybe({name: pick(ENTRIES) for name in "abc" if random.random() < 0.8}),
    )
    client = Client("browser", maybe("chrome"), maybe("windows"), pick((True, False)))
    recorded = StoredFacts(
        payment=paid,
        card_fingerprint=maybe("41111111-1234"),
        device_client=maybe(client),
        backend_client=maybe(client),
    )
    return recall(recorded, 1_000)


def decision(random: Random) -> Decision | None:
    """What was decided about a payment."""
    pick = random.choice
    rule = AppliedRule(pick(TEXTS), 1, pick((None, *TEXTS)))
    made = Decision(pick((None, "allow", "deny")), pick((None, 0, 50, 100)), pick((None, rule)))
    return pick((None, made))


def value(random: Random, kind: t.Type) -> Any:
    """A value of a type, as it is carried; None for missing."""
    if random.random() < 0.2:
        return None
    match kind:
        case t.Boolean():
            return random.choice((True, False))
        case t.Number(scale=None):
            return random.choice((0.0, -0.0, 0.5, 1e-300, -1e308, 1e308, 1e300))
        case t.Number(scale=int(scale), low=low, high=high):
            sizes = (0, 1, 2, 999, 10**14, 10**37, 10**38 - 1)
            pool = [sign * size for size in sizes for sign in (1, -1)]
            return random.choice(
                [
                    each
                    for each in pool
                    if (low is None or each >= low.scaleb(scale))
                    and (high is None or each <= high.scaleb(scale))
                ]
            )
        case t.Instant():
            return to_microseconds(random.choice(INSTANTS))
        case t.Duration():
            return random.choice((0, 1, -1, 10**6, 86_400_000_000, 10**18, -(10**18)))
        case t.Ip():
            return address_number(random.choice(ADDRESSES))
        case _:
            return random.choice(TEXTS)


def read(random: Random, history: p.History) -> Any:
    """A value of an aggregate over history."""
    if history.function in ("count", "distinct"):
        return random.choice((None, 0, 1, 2, 5, 10**6))
    return value(random, history.type)


_ROWS = [
    {"text": "a", "amount": 1, "flag": True},
    {"text": None, "amount": 0.1, "flag": False},
    {"text": "visa", "amount": None, "flag": None},
]


def _table(*keys: str) -> list[dict[str, Any]]:
    return [{"value": key, "columns": row} for key, row in zip(keys, _ROWS, strict=True)]


HELD: dict[str, list[dict[str, Any]]] = {
    "strings": [{"value": "a"}, {"value": "visa"}],
    "numbers": [{"value": 0.1}, {"value": 10}],
    "addresses": [{"value": "10.0.0.0/8"}, {"value": "2001:db8::/32"}],
    "rows": _table("a", "visa", "42"),
    "bins": _table("4", "4111", "41111111"),
    "places": _table("10.0.0.0/8", "1.2.3.4", "2001:db8::/64"),
}
SPECS: dict[str, Spec] = {name: ListSpec(kind) for name, kind in LISTS.items()} | TABLES


def held_entries(name: str) -> list[ListEntry]:
    """What the list or table has in `ENVIRONMENT`."""
    entries = [read_entry(SPECS[name], row, "entry") for row in HELD[name]]
    assert all(isinstance(entry, ListEntry) for entry in entries), entries
    return [entry for entry in entries if isinstance(entry, ListEntry)]


def _held(name: str) -> Any:
    return build_contents(SPECS[name], held_entries(name))


ENVIRONMENT = Environment(
    lists={name: _held(name) for name in LISTS},
    tables={name: _held(name) for name in TABLES},
    rates={("BRL", "USD"): 1_800_000_001, ("EUR", "USD"): 10**36},
    time_zone=ZoneInfo("America/Sao_Paulo"),
)
EMPTY = Environment()


@dataclass(frozen=True)
class Situation:
    """Everything that a program reads."""

    facts: Facts
    score: int | None
    values: tuple[Any, ...]
    environment: Environment


def situation(random: Random, histories: tuple[p.History, ...]) -> Situation:
    """A payment with everything beside it."""
    return Situation(
        payment(random),
        random.choice((None, 0, 1, 50, 60, 99, 100)),
        tuple(read(random, history) for history in histories),
        random.choice((ENVIRONMENT, ENVIRONMENT, EMPTY)),
    )
