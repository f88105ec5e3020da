"""Reads a request: one decode and the rules that types cannot say; the careful walk on any doubt.

`read_creation` and `read_update` never raise on a body, whatever it holds.
"""

from __future__ import annotations

from typing import Any

from msgspec import MsgspecError, json

from tollkeeper.engine.addresses import is_address, is_public_address
from tollkeeper.engine.card_numbers import may_hold_card_number
from tollkeeper.engine.careful import walk
from tollkeeper.engine.field_rules import (
    SETTLED,
    FieldRules,
    has_two_decimals,
    is_deeper,
    is_digits,
    rules_at,
)
from tollkeeper.engine.identifiers import new_identifier
from tollkeeper.engine.instants import from_microseconds
from tollkeeper.engine.limits import DEFAULT_LIMITS, Limits
from tollkeeper.engine.payment import (
    MAX_HEADER,
    Card,
    Creation,
    CreationBody,
    Payment,
    Transaction,
    Update,
    UpdateBody,
)
from tollkeeper.engine.scrub import (
    masked_payment,
    masked_update,
    scrubbed_metadata,
    without_secrets,
)
from tollkeeper.engine.updates import dated
from tollkeeper.engine.violations import Violation

_CREATION = json.Decoder(CreationBody)
_UPDATE = json.Decoder(UpdateBody)


def read_creation(
    body: bytes, now: int, limits: Limits = DEFAULT_LIMITS
) -> Payment | tuple[Violation, ...]:
    """The payment in the body of `POST /payments`, scrubbed and complete, or all its violations.

    `now` is the request's one reading of the clock, in µs since the epoch.
    """
    creation = creation_of(body, rules_at(now, limits))
    if isinstance(creation, tuple):
        return creation
    payment = _completed(creation, now)
    return masked_payment(payment) if may_hold_card_number(body) else payment


def creation_of(body: bytes, rules: FieldRules) -> Creation | tuple[Violation, ...]:
    """The payment in `body` as it was sent, or every violation of a field rule."""
    try:
        creation = _CREATION.decode(body).payment
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        creation = None
    if creation is not None and _creation_holds(creation, rules, len(body)):
        return creation
    walked = walk(body, CreationBody, rules)
    return walked if isinstance(walked, tuple) else walked.payment


def update_of(body: bytes, rules: FieldRules) -> Update | tuple[Violation, ...]:
    """The update in `body` as it was sent, or every violation of a field rule."""
    try:
        update = _UPDATE.decode(body).payment
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        update = None
    if update is not None and _update_holds(update, rules):
        return update
    walked = walk(body, UpdateBody, rules)
    return walked if isinstance(walked, tuple) else walked.payment


def read_update(
    body: bytes, now: int, limits: Limits = DEFAULT_LIMITS
) -> Update | tuple[Violation, ...]:
    """The update in the body of `PATCH /payments/{id}`, scrubbed, or all its violations.

    `now` is the request's one reading of the clock, in µs since the epoch.
    """
    update = update_of(body, rules_at(now, limits))
    if isinstance(update, tuple):
        return update
    return masked_update(update) if may_hold_card_number(body) else update


def _completed(creation: Creation, now: int) -> Payment:
    """The payment without its secrets, what was not sent filled in."""
    moment = from_microseconds(now)
    return Payment(
        id=creation.id or new_identifier(now),
        type=creation.type,
        status=creation.status or "initiated",
        currency=creation.currency,
        amount=creation.amount,
        timestamp=creation.timestamp or moment,
        method=creation.method,
        backend=creation.backend and without_secrets(creation.backend),
        device=creation.device and without_secrets(creation.device),
        user=creation.user,
        order=creation.order,
        merchant=creation.merchant,
        transactions=dated(creation.transactions, moment),
        metadata=creation.metadata and scrubbed_metadata(creation.metadata),
        analyze=creation.analyze,
    )


def _creation_holds(creation: Creation, rules: FieldRules, size: int) -> bool:
    """Whether the rules that types cannot say hold, as the careful walk would find."""
    limits = rules.limits
    amount, merchant, card = creation.amount, creation.merchant, creation.method.card
    backend, device = creation.backend, creation.device
    return (
        creation.currency in limits.currencies
        and (merchant.country is None or merchant.country in limits.countries)
        and (merchant.category_code is None or merchant.category_code in limits.category_codes)
        and (amount is None or has_two_decimals(amount))
        and (card is None or _card_holds(card))
        and (backend is None or not backend.ip_address or is_address(backend.ip_address))
        and (device is None or not device.ip_address or is_public_address(device.ip_address))
        and (creation.timestamp is None or rules.is_within(creation.timestamp))
        and _transactions_hold(creation.status, creation.transactions, rules)
        and (creation.metadata is None or _metadata_holds(creation.metadata, limits, size))
        and (size <= MAX_HEADER or _headers_hold(creation, rules))
    )


def _update_holds(update: Update, rules: FieldRules) -> bool:
    card = None if update.method is None else update.method.card
    return (card is None or _card_holds(card)) and _transactions_hold(
        update.status, update.transactions, rules
    )


def _card_holds(card: Card) -> bool:
    return (card.bin is None or is_digits(card.bin, 8)) and (
        card.last_four is None or is_digits(card.last_four, 4)
    )


def _transactions_hold(
    status: str | None, transactions: tuple[Transaction, ...], rules: FieldRules
) -> bool:
    if not transactions:
        return status not in SETTLED
    identifiers = set()
    unnamed = 0
    for transaction in transactions:
        if transaction.status in SETTLED and not transaction.connector.response_code:
            return False
        if transaction.timestamp is not None and not rules.is_within(transaction.timestamp):
            return False
        if transaction.id is None:
            unnamed += 1
        else:
            identifiers.add(transaction.id)
    return len(identifiers) + unnamed == len(transactions)


def _metadata_holds(metadata: dict[str, Any], limits: Limits, size: int) -> bool:
    """A larger body is left to the walk, which knows the size of the metadata in it."""
    return size <= limits.metadata_size and not is_deeper(metadata, limits.metadata_depth)


def _headers_hold(creation: Creation, rules: FieldRules) -> bool:
    return not any(
        origin is not None and origin.headers is not None and any(rules.headers("", origin.headers))
        for origin in (creation.backend, creation.device)
    )
