"""Stored payments and events as the windows take them in, and nothing of them that is not read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tollkeeper.engine.events.stored import reader
from tollkeeper.engine.facts.fields_read import Access, facts_decoder
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.programs.event_contract import Contract
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.update import decode_decision
from tollkeeper.engine.velocity.contract import Record, SeriesPlan, State
from tollkeeper.grammar.program import EventType


class StoredRecords:
    """`kinds` are those of the entries that the series of `plans` hold."""

    def __init__(self, account: Account, plans: Sequence[SeriesPlan]) -> None:
        of_payments = [plan for plan in plans if plan.event is None]
        self.kinds = {Kind.PAYMENT if plan.event is None else Kind.EVENT for plan in plans}
        self._facts_of = _facts_decoder(
            frozenset(fact for plan in of_payments for fact in plan.compiled.facts)
        )
        self._decided = any(plan.decided for plan in of_payments)

        def contract(type_: str, number: int) -> Contract:
            return _contract(account.files["event", type_].versions[number - 1].program)

        self._event_of = reader(contract)

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


# Made of new types, which takes milliseconds.
@lru_cache(64)
def _facts_decoder(wanted: frozenset[Access]) -> Callable[[Entry], Any]:
    return facts_decoder(wanted)


# Series know contracts by identity: one for each version, so that they don't come to know many.
@lru_cache(64)
def _contract(encoded: bytes) -> Contract:
    program = decode_program(encoded)
    assert isinstance(program, EventType)
    return Contract.of(program)
