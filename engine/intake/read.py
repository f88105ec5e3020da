"""Read a payment or an update from a body: one decode, then the rules that types can't express.

A body that either refuses goes to the full search (`find_violations.py`), which decides.

`read_creation` and `read_update` never raise on a body, whatever it holds.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from msgspec import MsgspecError, Raw, Struct, json
from msgspec.structs import force_setattr, replace

from tollkeeper.engine.instants import from_microseconds
from tollkeeper.engine.intake.addresses import is_address, public_number
from tollkeeper.engine.intake.exact_numbers import double_of
from tollkeeper.engine.intake.field_rules import SETTLED, FieldRules, is_deeper, is_plain, rules_at
from tollkeeper.engine.intake.find_violations import find_violations
from tollkeeper.engine.intake.identifiers import new_identifier
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS, Limits
from tollkeeper.engine.intake.payment import (
    MAX_HEADER,
    MAX_TEXT,
    Analyze,
    AnalyzeRule,
    Card,
    Creation,
    CreationBody,
    Omittable,
    Payment,
    Transaction,
    Update,
    UpdateBody,
)
from tollkeeper.engine.intake.redaction import (
    Mask,
    mask_for,
    mask_method,
    mask_transaction,
    mask_update,
    scrub_metadata,
    scrub_origin,
)
from tollkeeper.engine.intake.violations import Violation


class _CreationAsWritten(Creation, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A creation whose amount is not decoded yet: its rules need the text as written."""

    amount: Omittable[Raw] = None  # type: ignore[assignment]


class _BodyAsWritten(Struct, frozen=True, gc=False):
    payment: _CreationAsWritten


class _Metadata(Struct, frozen=True, gc=False):
    metadata: Raw = Raw()


class _MetadataBody(Struct, frozen=True, gc=False):
    payment: _Metadata


_CREATION = json.Decoder(_BodyAsWritten, float_hook=double_of)
_UPDATE = json.Decoder(UpdateBody)
_METADATA = json.Decoder(_MetadataBody)

# A larger body goes to the full search at once: it may break a rule, and would be decoded in vain.
_LARGE = 64 * 1024

try:
    from tollkeeper.engine.intake._plain import plain_amount
except ImportError:  # where C can't be built
    _PLAIN_AMOUNT = re.compile(rb"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,2})?")

    def plain_amount(text: Raw | bytes, /) -> float | None:
        """The amount; None unless it is written as digits with at most two decimals."""
        return float(text) if _PLAIN_AMOUNT.fullmatch(text) else None


def read_creation(
    body: bytes, now: int, limits: Limits = DEFAULT_LIMITS
) -> Payment | tuple[Violation, ...]:
    """The payment in the body of `POST /payments`, scrubbed and complete, or all its violations.

    `now` is the request's one reading of the clock, in µs since the epoch.
    """
    rules = rules_at(now, limits)
    creation = creation_of(body, rules)
    if isinstance(creation, tuple):
        return creation
    return _complete(creation, now, mask_for(body))


def creation_of(body: bytes, rules: FieldRules) -> Creation | tuple[Violation, ...]:
    """The payment in `body` as it was sent, or every violation of a field rule."""
    limits = rules.limits
    try:
        if len(body) <= limits.metadata_size or (
            len(body) <= _LARGE and _metadata_fits(body, limits)
        ):
            creation = _CREATION.decode(body).payment
            if _set_amount(creation) and _creation_holds(creation, rules, len(body)):
                return creation
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    request = find_violations(body, CreationBody, rules)
    return request if isinstance(request, tuple) else request.payment


def read_update(
    body: bytes, now: int, limits: Limits = DEFAULT_LIMITS
) -> Update | tuple[Violation, ...]:
    """The update in the body of `PATCH /payments/{id}`, scrubbed, or all its violations.

    `now` is the request's one reading of the clock, in µs since the epoch.
    """
    update = update_of(body, rules_at(now, limits))
    mask = mask_for(body)
    if isinstance(update, tuple) or mask is None:
        return update
    return mask_update(update, mask)


def update_of(body: bytes, rules: FieldRules) -> Update | tuple[Violation, ...]:
    """The update in `body` as it was sent, or every violation of a field rule."""
    try:
        update = _UPDATE.decode(body).payment
        if _update_holds(update, rules):
            return update
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    request = find_violations(body, UpdateBody, rules)
    return request if isinstance(request, tuple) else request.payment


def _complete(creation: Creation, now: int, mask: Mask | None) -> Payment:
    """The payment without confidential data, with defaults for what was not sent."""
    moment = from_microseconds(now)
    method, transactions = creation.method, creation.transactions
    if mask is not None:
        method = mask_method(method, mask)
        transactions = tuple(mask_transaction(each, mask) for each in transactions)
    return Payment(
        id=creation.id or new_identifier(now),
        type=creation.type,
        status=creation.status or "initiated",
        currency=creation.currency,
        amount=creation.amount,
        timestamp=creation.timestamp or moment,
        method=method,
        backend=creation.backend and scrub_origin(creation.backend, mask),
        device=creation.device and scrub_origin(creation.device, mask),
        user=creation.user,
        order=creation.order,
        merchant=creation.merchant,
        transactions=date_transactions(transactions, moment),
        metadata=creation.metadata and scrub_metadata(creation.metadata, mask),
        analyze=creation.analyze and _with_rule_name(creation.analyze),
    )


def _with_rule_name(analyze: Analyze) -> Analyze:
    """`analyze` with a rule's name that is a string or null: any other value names no rule."""
    if analyze.rule is None:
        return analyze
    name: object = analyze.rule.name
    if name is None or (isinstance(name, str) and len(name) <= MAX_TEXT):
        return analyze
    cut = name[:MAX_TEXT] if isinstance(name, str) else ""
    return replace(analyze, rule=AnalyzeRule(cut))


def _metadata_fits(body: bytes, limits: Limits) -> bool:
    return len(_METADATA.decode(body).payment.metadata) <= limits.metadata_size


def _set_amount(creation: _CreationAsWritten) -> bool:
    """Decode the amount; False for one in an unusual form, which the full search judges."""
    written: Any = creation.amount
    if written is not None:
        amount = plain_amount(written)
        if amount is None:
            return False
        force_setattr(creation, "amount", amount)
    return True


def _creation_holds(creation: Creation, rules: FieldRules, size: int) -> bool:
    """Whether the rules hold that types can't express; the full search would find the same."""
    limits = rules.limits
    merchant, card = creation.merchant, creation.method.card
    user, order = creation.user, creation.order
    backend, device = creation.backend, creation.device
    metadata = creation.metadata
    return (
        creation.currency in limits.currencies
        and (user is None or (user.id != "" and user.email != ""))
        and (order is None or order.id != "")
        and (merchant.country is None or merchant.country in limits.countries)
        and (merchant.category_code is None or merchant.category_code in limits.category_codes)
        and (card is None or _card_holds(card))
        and (backend is None or not backend.ip_address or is_address(backend.ip_address))
        and (
            device is None or not device.ip_address or public_number(device.ip_address) is not None
        )
        and (creation.timestamp is None or rules.is_within(creation.timestamp))
        and _transactions_hold(creation.status, creation.transactions, rules)
        and (
            metadata is None or is_plain(metadata) or not is_deeper(metadata, limits.metadata_depth)
        )
        and (size <= MAX_HEADER or _headers_hold(creation, rules))
    )


def _update_holds(update: Update, rules: FieldRules) -> bool:
    card = None if update.method is None else update.method.card
    return (card is None or _card_holds(card)) and _transactions_hold(
        update.status, update.transactions, rules
    )


def _card_holds(card: Card) -> bool:
    """Whether the numbers are digits; their types check the lengths."""
    digits = (card.bin or "0") + (card.last_four or "0")
    return digits.isdigit() and digits.isascii()


def _transactions_hold(
    status: str | None, transactions: tuple[Transaction, ...], rules: FieldRules
) -> bool:
    if not transactions:
        return status not in SETTLED
    named = []
    for transaction in transactions:
        if transaction.status in SETTLED and not transaction.connector.response_code:
            return False
        timestamp = transaction.timestamp
        if timestamp is not None and not rules.is_within(timestamp):
            return False
        if transaction.id is not None:
            named.append(transaction.id)
    return len(named) < 2 or len(set(named)) == len(named)


def _headers_hold(creation: Creation, rules: FieldRules) -> bool:
    return not any(
        origin is not None and origin.headers is not None and any(rules.headers("", origin.headers))
        for origin in (creation.backend, creation.device)
    )


def date_transactions(
    transactions: tuple[Transaction, ...], moment: datetime
) -> tuple[Transaction, ...]:
    """The transactions, those without a timestamp initiated at `moment`."""
    if not transactions or None not in [transaction.timestamp for transaction in transactions]:
        return transactions
    return tuple(
        replace(transaction, timestamp=moment) if transaction.timestamp is None else transaction
        for transaction in transactions
    )
