"""PATCH: what an update makes of a stored payment (docs/api.md, "Analysis")."""

from __future__ import annotations

from typing import Any

from msgspec import json

from tollkeeper.engine.intake.merge import merge
from tollkeeper.engine.intake.payment import Payment, Update
from tollkeeper.engine.intake.read import read_creation, read_update

CREATED = 1_768_478_400_000_000
NOW = CREATED + 3_600_000_000


def attempt(identifier: str | None = None, **changes: Any) -> dict[str, Any]:
    named = {} if identifier is None else {"id": identifier}
    return {"status": "failed", "connector": {"id": "acquirer"}} | named | changes


def created(**changes: Any) -> Payment:
    sent = {
        "id": "p",
        "type": "purchase",
        "currency": "BRL",
        "amount": 10.5,
        "method": {"type": "card"},
        "merchant": {"id": "store"},
        "metadata": {"sku": "1"},
    }
    read = read_creation(json.encode({"payment": sent | changes}), CREATED)
    assert isinstance(read, Payment), read
    return read


def updated(stored: Payment, **changes: Any) -> Payment:
    read = read_update(json.encode({"payment": {"status": "failed"} | changes}), NOW)
    assert isinstance(read, Update), read
    merged = merge(stored, read, NOW)
    assert isinstance(merged, Payment), merged
    return merged


def test_an_update_sets_the_status_and_keeps_the_rest() -> None:
    stored = created()
    payment = updated(stored, status="blocked")
    assert payment.status == "blocked"
    assert (payment.id, payment.amount, payment.metadata) == ("p", 10.5, {"sku": "1"})
    assert payment.timestamp == stored.timestamp
    assert payment.method == stored.method


def test_members_of_the_method_that_are_sent_replace_the_stored_ones() -> None:
    card = {"network": "visa", "presence": "card_present", "bin": "41111111", "last_four": "1111"}
    stored = created(method={"type": "card", "card": card})
    sent = {"network": "elo", "presence": "card_not_present", "bin": None, "last_four": "2222"}
    payment = updated(stored, method={"card": sent})
    assert payment.method.type == "card"
    assert payment.method.card is not None
    assert payment.method.card.network == "elo"
    assert payment.method.card.presence == "card_not_present"
    assert payment.method.card.bin == "41111111"
    assert payment.method.card.last_four == "2222"
    assert updated(stored, method={"type": "wallet"}).method.type == "wallet"
    assert updated(stored, method={}).method == stored.method


def test_a_card_not_sent_at_creation_is_supplemented() -> None:
    sent = {"network": "visa", "presence": "card_present", "bin": "41111111"}
    payment = updated(created(), method={"card": sent})
    assert payment.method.card is not None
    assert payment.method.card.bin == "41111111"


def test_a_transaction_sent_again_replaces_that_attempt_and_keeps_its_timestamp() -> None:
    stored = created(transactions=[attempt("a", duration=5), attempt("b")])
    payment = updated(stored, transactions=[attempt("a", status="canceled")])
    first, second = payment.transactions
    assert (first.id, first.status, first.duration) == ("a", "canceled", None)
    assert first.microseconds == CREATED
    assert second == stored.transactions[1]


def test_a_transaction_sent_again_takes_a_new_timestamp() -> None:
    stored = created(transactions=[attempt("a")])
    again = attempt("a", timestamp="2026-01-15T12:30:00Z")
    (payment,) = updated(stored, transactions=[again]).transactions
    assert payment.microseconds == CREATED + 1_800_000_000


def test_other_transactions_are_added() -> None:
    stored = created(transactions=[attempt("a"), attempt()])
    payment = updated(stored, transactions=[attempt("b"), attempt()])
    assert [sent.id for sent in payment.transactions] == ["a", None, "b", None]
    assert [sent.microseconds for sent in payment.transactions] == [CREATED, CREATED, NOW, NOW]


def test_a_payment_never_has_more_transactions_than_its_bound() -> None:
    stored = created(transactions=[attempt(str(number)) for number in range(99)])
    assert len(updated(stored, transactions=[attempt("0"), attempt("x")]).transactions) == 100
    sent = {"status": "failed", "transactions": [attempt("x"), attempt("y")]}
    update = read_update(json.encode({"payment": sent}), NOW)
    assert isinstance(update, Update)
    refused = merge(stored, update, NOW)
    assert isinstance(refused, tuple)
    assert [(item.field, item.type) for item in refused] == [("payment.transactions", "too_long")]
