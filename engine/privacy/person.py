"""Which stored data are one person's, and what an erasure leaves of a record.

A payment keeps what the merchant's accounting needs: its id, order, amount, merchant, status and
attempts, and the decision. An event keeps its numbers, booleans, times and choices; its free texts
and addresses are erased, as their type does not say whether they are personal data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import replace

from tollkeeper.engine.facts.facts import StoredFacts
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.monitors.alerts import Transition, transitions_of
from tollkeeper.engine.programs.event_contract import Contract
from tollkeeper.engine.stored_records import StoredEvent
from tollkeeper.grammar import types as t

ERASED_VALUE = "erased"
"""Replaces, in the audit log, a value that named the person."""

_ASKED = 200
_encode = msgspec.json.Encoder().encode
_PLAIN = (t.Number, t.Boolean, t.Instant, t.Duration)


@dataclass(frozen=True, slots=True)
class Person:
    """A user's identifier, and the e-mail addresses that payments have with it, in lower case."""

    user: str
    emails: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        """What the audit log names the person by: the SHA-256, in hex, of the identifier."""
        return hashlib.sha256(self.user.encode()).hexdigest()

    @property
    def names(self) -> frozenset[str]:
        return self.emails | {self.user}

    def is_named(self, value: object) -> bool:
        """Whether a value is the person's identifier or address."""
        return isinstance(value, str) and (value == self.user or value.lower() in self.emails)

    def written(self) -> list[list[str]]:
        """The names as JSON writes them, with ASCII letters in lower case, split into lists that
        are short enough for one query: a person may have used many addresses.
        """
        names = sorted(_encode(name)[1:-1].lower().decode() for name in self.names)
        return [names[first : first + _ASKED] for first in range(0, len(names), _ASKED)]

    def may_be_in(self, stored: bytes) -> bool:
        """False for JSON that certainly does not name the person."""
        small = stored.lower()
        return any(name.encode() in small for name in chain.from_iterable(self.written()))

    def pays(self, payment: Payment) -> bool:
        """Whether it is the person's payment: by its user id, or by the address when it has none."""
        user = payment.user
        if user is None:
            return False
        return user.id == self.user or (user.id is None and self.is_named(user.email))


def address_of(payment: Payment) -> str | None:
    """The user's e-mail address in lower case; None for a domain alone, which many people share."""
    email = payment.user.email if payment.user is not None else None
    if email is None or "@" not in email.removeprefix("@"):
        return None
    return email.lower()


def erase_payment(recorded: StoredFacts, person: Person) -> StoredFacts:
    """A stored payment without the data that identify the payer, the card and the device."""
    payment: Payment = recorded.payment
    card, order = payment.method.card, payment.order
    if card is not None:
        card = replace(card, bin=None, last_four=None)
    return StoredFacts(
        payment=replace(
            payment,
            user=None,
            device=None,
            backend=None,
            metadata=None,
            method=replace(payment.method, card=card),
            order=None if order is not None and person.is_named(order.id) else order,
        )
    )


def erase_event(kept: StoredEvent, contract: Contract, person: Person) -> StoredEvent:
    """An event without its free texts and addresses."""

    def stays(name: str) -> bool:
        type_ = types.get(name)
        chosen = isinstance(type_, t.String) and type_.choices is not None
        return (chosen or isinstance(type_, _PLAIN)) and not person.is_named(kept.data[name])

    types = {field.name: field.type for field in contract.fields}
    data = {name: value for name, value in kept.data.items() if stays(name)}
    return StoredEvent(kept.type, kept.version, data)


def erase_transitions(outcome: bytes | None, tells: Callable[[object], bool]) -> bytes | None:
    """An entry's outcome in which each transition that shows a value for which `tells` is true is
    blank.

    A blank transition keeps its place: alerts are identified by their record and their index in it.
    """
    transitions = transitions_of(outcome)
    blank = tuple(erase_transition(transition, tells) for transition in transitions)
    if outcome is None or blank == transitions:
        return outcome
    rest = msgspec.json.decode(outcome, type=dict[str, msgspec.Raw])
    rest["turns"] = msgspec.Raw(_encode(blank))
    return _encode(rest)


def erase_transition(transition: Transition, tells: Callable[[object], bool]) -> Transition:
    if not any(map(tells, (*transition.key, *transition.values.values()))):
        return transition
    return replace(transition, key=(None,) * len(transition.key), values={})


def unless_in(left: bytes) -> Callable[[object], bool]:
    """A predicate for texts that are not in the rest of a record, so that they came from erased
    data."""
    known = set(_texts(msgspec.json.decode(left)))
    return lambda value: isinstance(value, str) and value not in known


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)
