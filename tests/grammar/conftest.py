"""A small vocabulary, and the way from rule text to what the checker says of it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

import pytest

from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import CheckOutcome, KnownNames, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import Definitions, EventType, ListUse, TableUse
from tollkeeper.grammar.vocabulary import Field, Vocabulary

Check: TypeAlias = Callable[..., CheckOutcome]

_STATUS = t.String(("initiated", "succeeded", "declined", "failed", "blocked"))
_ATTEMPT = t.String(("succeeded", "declined", "failed", "canceled"))
_ACTION = t.String(("allow", "challenge", "deny"))
_NETWORK = t.String(("visa", "mastercard", "elo", "other"))
_CLIENT = t.String(("browser", "app", "library", "crawler", "headless", "unknown"))

_PAYMENT: dict[str, t.Type] = {
    "id": t.String(),
    "type": t.String(("purchase", "verify")),
    "status": _STATUS,
    "currency": t.String(("BRL", "EUR", "USD")),
    "amount": t.Number(2, Decimal(0), Decimal(10**12)),
    "timestamp": t.Instant(),
    "method": t.Record(),
    "method.type": t.String(),
    "method.card": t.Record(),
    "method.card.network": _NETWORK,
    "method.card.bin": t.String(),
    "method.card.fingerprint": t.String(),
    "device": t.Record(),
    "device.ip_address": t.Ip(),
    "device.headers": t.Headers(),
    "device.fingerprint": t.Record(),
    "device.fingerprint.id": t.String(),
    "device.client": t.Record(),
    "device.client.kind": _CLIENT,
    "device.client.consistent": t.Boolean(),
    "backend": t.Record(),
    "backend.ip_address": t.Ip(),
    "backend.headers": t.Headers(),
    "user": t.Record(),
    "user.id": t.String(),
    "user.email": t.String(),
    "order": t.Record(),
    "order.id": t.String(),
    "merchant": t.Record(),
    "merchant.id": t.String(),
    "merchant.country": t.String(("BR", "DE", "US")),
    "transactions": t.Collection(),
    "metadata": t.Metadata(),
}
_TRANSACTION: dict[str, t.Type] = {
    "id": t.String(),
    "status": _ATTEMPT,
    "duration": t.Number(0, Decimal(0)),
    "timestamp": t.Instant(),
    "connector": t.Record(),
    "connector.id": t.String(),
    "connector.response_code": t.String(),
}
_DECISION: dict[str, t.Type] = {
    "decision.action": _ACTION,
    "decision.rule": t.String(),
    "decision.condition": t.String(),
    "decision.score": t.Number(2, Decimal(0), Decimal(1)),
}
_REFUSALS = {
    "method.card.bin": lambda value: None if len(value) == 8 else "it has exactly 8 digits",
    "device.ip_address": lambda value: (
        "a private one is refused" if value >> 24 == 0xFFFF_0A else None
    ),
}
_REQUIRED = {"id", "type", "status", "currency", "timestamp", "merchant", "merchant.id", "method"}


def _fields(types: dict[str, t.Type]) -> dict[str, Field]:
    return {
        name: Field(
            tuple(name.split(".")),
            kind,
            "",
            tuple(name.split(".")),
            name in _REQUIRED,
            _REFUSALS.get(name),
        )
        for name, kind in types.items()
    }


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    return Vocabulary(_fields(_PAYMENT), _fields(_TRANSACTION), _fields(_DECISION))


@pytest.fixture(scope="session")
def check_text(vocabulary: Vocabulary) -> Check:
    """Parses and checks a file without syntax errors."""

    def run(text: str, known: KnownNames | None = None) -> CheckOutcome:
        parsed = parse(text)
        assert parsed.file is not None, parsed.diagnostics
        assert parsed.diagnostics == ()
        return check(parsed.file, text, vocabulary, known or KnownNames())

    return run


@pytest.fixture(scope="session")
def known(check_text: Check) -> KnownNames:
    """What an account has already: definitions, an event type, a list and a table."""
    cards = check_text(
        """definitions cards
  list stolen_cards: string
  list unread: number
  let small_amount = currency == "USD" and amount < 10.00
  let seen = count(payments by user.id over 1h)
  let busy = seen > 5 and small_amount
  let stolen = method.card.fingerprint in @stolen_cards
  let risky = score > 0.5
"""
    )
    sign_ins = check_text(
        """event user_authentication
  field user_id: string required
  field result: "success" | "failure" required
  let failed = result == "failure"
  metric failures = count(events by user_id over 1h where failed)
  metric pairs = count(events by user_id, result over 1h)
  monitor brute_force when failures >= 10 by user_id every 10m
"""
    )
    own = check_text("definitions velocity let two = count(payments by user.id over 2h)")
    assert isinstance(own.program, Definitions), own.diagnostics
    assert isinstance(cards.program, Definitions), cards.diagnostics
    assert isinstance(sign_ins.program, EventType), sign_ins.diagnostics
    return KnownNames(
        definitions={"cards": cards.program, "velocity": own.program, "broken": None},
        events={"user_authentication": sign_ins.program},
        lists={"trusted_merchants": ListUse("trusted_merchants", "string")},
        tables={"bins": TableUse("bins", "prefix", {"country": t.String()})},
        own_for_shipped=frozenset({"velocity"}),
    )
