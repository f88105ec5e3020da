"""Stored payments and events as the windows take them in, and nothing of them that is not read."""

from __future__ import annotations

from collections.abc import Sequence

from tollkeeper.engine.events.stored import event_reader
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.needs import facts_decoder
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.update import decode_decision
from tollkeeper.engine.windows.contract import Record, SeriesPlan, State


class StoredRecords:
    """`kinds` are those of the entries that the series of `plans` hold."""

    def __init__(self, account: Account, plans: Sequence[SeriesPlan]) -> None:
        of_payments = [plan for plan in plans if plan.event is None]
        self.kinds = {Kind.PAYMENT if plan.event is None else Kind.EVENT for plan in plans}
        self._facts_of = facts_decoder(
            {fact for plan in of_payments for fact in plan.compiled.facts}
        )
        self._decided = any(plan.decided for plan in of_payments)
        self._event_of = event_reader(account)

    def record(self, entry: Entry) -> Record:
        """A payment, as the entry knows it, or an event."""
        if entry.kind == Kind.EVENT:
            return self._event_of(entry)
        return Record(entry.account, entry.id, entry.time, entry.arrived, self._state(entry))

    def amended(self, before: Entry, after: Entry) -> Record:
        """A payment that was known otherwise before."""
        known = self._state(before)
        return Record(after.account, after.id, after.time, after.arrived, self._state(after), known)

    def _state(self, entry: Entry) -> State:
        decision = decode_decision(entry.outcome) if self._decided and entry.outcome else None
        return State(self._facts_of(entry), decision)
