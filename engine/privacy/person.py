"""What tells of one person in what is stored, and what is left of it without the person.

Left of a payment is what the merchant's books need: its id, order, amount, merchant, status and
attempts, and what was decided. Left of an event are its numbers, truth values, times and choices:
what a free text or an address says of a person, its type does not tell.
"""

from __future__ import annotations

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
"""Stands in the audit log for a value that named the person."""

_ASKED = 200
_encode = msgspec.json.Encoder().encode
_PLAIN = (t.Number, t.Boolean, t.Instant, t.Duration)


@dataclass(frozen=True, slots=True)
class Person:
    """A user's identifier, and the addresses that stand beside it in payments, in small letters."""

    user: str
    emails: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        return self.emails | {self.user}

    def is_named(self, value: object) -> bool:
        """Whether a value is nothing but the person's identifier or address."""
        return isinstance(value, str) and (value == self.user or value.lower() in self.emails)

    def written(self) -> list[list[str]]:
        """The names as JSON writes them, with ASCII letters small, as many in each list as a query
        takes: anybody may have paid with many addresses.
        """
        names = sorted(_encode(name)[1:-1].lower().decode() for name in self.names)
        return [names[first : first + _ASKED] for first in range(0, len(names), _ASKED)]

    def may_be_in(self, stored: bytes) -> bool:
        """False for JSON in which the person is surely not named."""
        small = stored.lower()
        return any(name.encode() in small for name in chain.from_iterable(self.written()))

    def pays(self, payment: Payment) -> bool:
        """Whether a payment is theirs: by its user, or by the address when it names no user."""
        user = payment.user
        if user is None:
            return False
        return user.id == self.user or (user.id is None and self.is_named(user.email))


def address_of(payment: Payment) -> str | None:
    """The user's e-mail address in small letters; a domain alone stands for many people."""
    email = payment.user.email if payment.user is not None else None
    if email is None or "@" not in email.removeprefix("@"):
        return None
    return email.lower()


def erase_payment(recorded: StoredFacts, person: Person) -> StoredFacts:
    """A recorded payment without what tells who paid, with what, and from where."""
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
    """An event that names the person, without its free texts and addresses."""

    def stays(name: str) -> bool:
        type_ = types.get(name)
        chosen = isinstance(type_, t.String) and type_.choices is not None
        return (chosen or isinstance(type_, _PLAIN)) and not person.is_named(kept.data[name])

    types = {field.name: field.type for field in contract.fields}
    data = {name: value for name, value in kept.data.items() if stays(name)}
    return StoredEvent(kept.type, kept.version, data)


def erase_transitions(outcome: bytes | None, tells: Callable[[object], bool]) -> bytes | None:
    """The outcome of an entry with every transition blank that shows something which `tells`.

    A blank transition stays in its place: alerts are known by their record and their number in it.
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
    """Tells texts that are not in what is left of a record: they came from what is erased."""
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
