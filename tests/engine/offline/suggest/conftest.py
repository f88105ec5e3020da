"""A labelled history with attacks on cards among ordinary buyers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tollkeeper.tests.engine.offline.prove.forked import forked_solver

__all__ = ["forked_solver"]

START = datetime(2026, 3, 2, tzinfo=UTC)
DAYS = 10
ATTACKS = 24
PER_ATTACK = 15
BUYERS = 900
SECRETS = ("attacker", "buyer", "mail.example", "203.0.", "198.51.")
"""What stands in the identities of the history, and must not be in a rule that is made of it."""


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each attack tries many cards on one device within minutes; most are declined."""
    path = tmp_path_factory.mktemp("suggest") / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in history_lines(Random(5))))
    return path


def history_lines(chance: Random) -> Iterator[dict[str, Any]]:
    happened = [*attacks(chance), *purchases(chance)]
    happened.sort(key=lambda each: each[0])
    for at, line in happened:
        yield {**line, "at": moment(at)}


def attacks(chance: Random) -> Iterator[tuple[float, dict[str, Any]]]:
    for attack in range(ATTACKS):
        begun = (attack + 0.5) * DAYS * 86_400 / ATTACKS
        for number in range(PER_ATTACK):
            at, id_ = begun + 40 * number, f"f-{attack}-{number}"
            paid = payment(id_, at, f"attacker-{attack}", chance, amount=chance.choice([1.5, 3, 9]))
            yield at, {"payment": paid, "label": 1}
            yield at + 1, finished(id_, at, "declined" if number % 5 else "succeeded")


def purchases(chance: Random) -> Iterator[tuple[float, dict[str, Any]]]:
    for number in range(BUYERS):
        at, id_ = chance.random() * DAYS * 86_400, f"h-{number}"
        paid = payment(id_, at, f"buyer-{number % 500}", chance, amount=chance.randint(5, 200))
        yield at, {"payment": paid, "label": 0}
        yield at + 1, finished(id_, at, "declined" if chance.random() < 0.05 else "succeeded")


def payment(id_: str, at: float, who: str, chance: Random, amount: float) -> dict[str, Any]:
    own = abs(hash_of(who))
    card = (
        f"{chance.randrange(10_000):04d}" if who.startswith("attacker") else f"{own % 10_000:04d}"
    )
    return {
        "id": id_,
        "type": "purchase",
        "currency": "EUR",
        "amount": amount,
        "timestamp": moment(at),
        "method": {
            "type": "card",
            "card": {
                "network": "visa",
                "presence": "card_not_present",
                "bin": "41111111",
                "last_four": card,
            },
        },
        "device": {
            "ip_address": f"203.0.{own % 250}.{own // 250 % 250}",
            "fingerprint": {"id": f"device-{who}", "provider": "basic"},
        },
        "user": {"id": who, "email": f"{who}@mail.example"},
        "merchant": {"id": "m"},
    }


def finished(id_: str, at: float, status: str) -> dict[str, Any]:
    attempt = {"status": status, "connector": {"id": "c", "response_code": "00"}}
    return {
        "update": {
            "id": id_,
            "status": status,
            "transactions": [{**attempt, "timestamp": moment(at + 0.5)}],
        }
    }


def hash_of(text: str) -> int:
    """The same in every process, as `hash` is not."""
    found = 7
    for character in text:
        found = found * 131 + ord(character)
    return found


def moment(at: float) -> str:
    return (START + timedelta(seconds=at)).isoformat()
