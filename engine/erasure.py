"""One person's data erased: from payments, from lists, from windows; the audit trail stays.

What is left of a payment is what the merchant's books need: its id, order, amount, merchant,
status and attempts, and what was decided.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from tollkeeper.engine.change import make_change
from tollkeeper.engine.decide import encode
from tollkeeper.engine.engine import Engine
from tollkeeper.engine.facts import Recorded
from tollkeeper.engine.forgetting import count_as, take_back
from tollkeeper.engine.journal.entries import Entry, Kind, Remove
from tollkeeper.engine.lists.contents import Contents, holds
from tollkeeper.engine.lists.entries import canonical_value
from tollkeeper.engine.payment import Payment
from tollkeeper.engine.registry.changes import EntriesChanged
from tollkeeper.engine.update import decode_recorded, state_of


@dataclass(slots=True)
class Found:
    """The person's payments, each as created and as last updated, and the e-mail addresses."""

    user: str
    first: dict[str, Entry] = field(default_factory=dict)
    last: dict[str, Entry] = field(default_factory=dict)
    emails: set[str] = field(default_factory=set)

    def erase(self, entry: Entry) -> Entry:
        """The entry without the person, noted; another's entry as it is."""
        if entry.kind not in (Kind.PAYMENT, Kind.UPDATE) or self._needle not in entry.body:
            return entry
        recorded = decode_recorded(entry.body)
        user = recorded.payment.user
        if user is None or user.id != self.user:
            return entry
        self.first.setdefault(entry.id, entry)
        self.last[entry.id] = entry
        # A domain alone stands for many people.
        if user.email is not None and not user.email.startswith("@") and "@" in user.email:
            self.emails.add(user.email)
        return entry._replace(body=encode(erased(recorded)))

    @property
    def _needle(self) -> bytes:
        return msgspec.json.encode(self.user)


async def erase_user(engine: Engine, account: int, by: str, user: str) -> int:
    """Erase all that is kept of a user; how many payments it was in. Raises `JournalError`.

    Done again after it was cut off, it does the rest; what was said meanwhile goes as well.
    """
    found = Found(user)
    async with engine.publishing[account]:
        while await engine.journal.rewrite(account, found.erase):
            pass
        for id_, first in found.first.items():
            await take_back(engine, account, id_, state_of(first, found.last[id_]))
            known = await engine.journal.known(account, id_)
            if known is not None:
                await count_as(engine, account, id_, state_of(*known))
    names = {user, *found.emails}
    await _erase_from_lists(engine, account, by, names)
    await engine.journal.forget(account, names)
    return len(found.first)


def erased(recorded: Recorded) -> Recorded:
    """A recorded payment without what tells who paid, with what, and from where."""
    payment: Payment = recorded.payment
    card = payment.method.card
    if card is not None:
        card = replace(card, bin=None, last_four=None)
    return Recorded(
        payment=replace(
            payment,
            user=None,
            device=None,
            backend=None,
            metadata=None,
            method=replace(payment.method, card=card),
        )
    )


async def _erase_from_lists(engine: Engine, account: int, by: str, names: Iterable[str]) -> None:
    """The change says how many entries went, never which."""
    async with engine.changing:
        for name, held in engine.force[account].contents.items():
            values = tuple(sorted(_held(held, names)))
            if values:
                change = EntriesChanged(name, "remove", len(values), ())
                await make_change(engine, account, by, change, Remove(name, values))


def _held(contents: Contents, names: Iterable[str]) -> set[str]:
    found = set()
    for name in names:
        try:
            value = canonical_value(contents.spec, name)
        except ValueError:
            continue
        if holds(contents, value):
            found.add(value)
    return found
