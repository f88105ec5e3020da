"""What an update makes of a stored payment (docs/api.md, "Analysis")."""

from __future__ import annotations

from msgspec.structs import replace

from tollkeeper.engine.instants import from_microseconds
from tollkeeper.engine.intake import violations
from tollkeeper.engine.intake.payment import (
    MAX_TRANSACTIONS,
    Card,
    Method,
    MethodUpdate,
    Payment,
    Transaction,
    Update,
)
from tollkeeper.engine.intake.read import date_transactions
from tollkeeper.engine.intake.violations import Violation


def merge(stored: Payment, update: Update, now: int) -> Payment | tuple[Violation, ...]:
    """The payment as known after `update` arrived at `now` (µs since the epoch).

    Violations when it would have more transactions than a payment may have.
    """
    transactions = _merge_transactions(stored.transactions, update.transactions, now)
    if len(transactions) > MAX_TRANSACTIONS:
        return (violations.too_long("payment.transactions", MAX_TRANSACTIONS, "items in all"),)
    return replace(
        stored,
        status=update.status,
        method=_merge_method(stored.method, update.method),
        transactions=transactions,
    )


def _merge_transactions(
    stored: tuple[Transaction, ...], sent: tuple[Transaction, ...], now: int
) -> tuple[Transaction, ...]:
    """Stored attempts in their places, replaced where their id was sent again, then new ones."""
    again = {transaction.id: transaction for transaction in sent if transaction.id is not None}
    known = {transaction.id for transaction in stored}
    replaced = (
        _replace_attempt(attempt, again[attempt.id]) if attempt.id in again else attempt
        for attempt in stored
    )
    added = (attempt for attempt in sent if attempt.id is None or attempt.id not in known)
    return date_transactions((*replaced, *added), from_microseconds(now))


def _replace_attempt(stored: Transaction, sent: Transaction) -> Transaction:
    """An attempt sent again keeps its timestamp unless a new one is sent."""
    return sent if sent.timestamp is not None else replace(sent, timestamp=stored.timestamp)


def _merge_method(stored: Method, sent: MethodUpdate | None) -> Method:
    if sent is None:
        return stored
    return Method(type=sent.type or stored.type, card=_merge_card(stored.card, sent.card))


def _merge_card(stored: Card | None, sent: Card | None) -> Card | None:
    if stored is None or sent is None:
        return sent or stored
    return replace(sent, bin=sent.bin or stored.bin, last_four=sent.last_four or stored.last_four)
