"""The bodies and outcomes of payments, updates and events in the journal, which are JSON.

`StoredRecords` decodes only the fields that the windows' series read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.facts import StoredFacts, recall
from tollkeeper.engine.facts.fields_read import Access, facts_decoder
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.event_contract import Contract, recall_data
from tollkeeper.engine.programs.event_versions import contract_of
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.velocity.contract import Record, SeriesPlan, State

encode_stored = msgspec.json.Encoder().encode
decode_recorded = msgspec.json.Decoder(StoredFacts).decode
decode_decision = msgspec.json.Decoder(Decision).decode


class StoredEvent(Struct, frozen=True):
    """The body of an event: the version of its type that it was checked against, and its data."""

    type: str
    version: int
    data: dict[str, Any]


decode_event = msgspec.json.Decoder(StoredEvent).decode

ReadEvent: TypeAlias = Callable[[Entry], Record]


def state_of(
    created: Entry, latest: Entry, environment: Environment | None = None, label: str | None = None
) -> State:
    """A payment as its latest update left it; `latest` is `created` when it has none.

    `environment` holds the lists, tables and rates at its arrival; it and `label` are None where
    nothing reads them.
    """
    facts = recall(decode_recorded(latest.body), created.arrived)
    decision = decode_decision(created.outcome) if created.outcome else None
    return State(facts, decision, None, environment, label)


def event_reader(account: Account) -> ReadEvent:
    """A reader of the account's stored events, by the version that each was checked against."""

    def contract(type_: str, number: int) -> Contract:
        return contract_of(account.files["event", type_].versions[number - 1])

    return event_reader_by(contract)


def event_reader_by(contract: Callable[[str, int], Contract]) -> ReadEvent:
    """A reader of stored events; `contract(type, version)` gives the fields of their data."""
    find_contract = cache(contract)

    def read(entry: Entry) -> Record:
        stored = decode_event(entry.body)
        contract = find_contract(stored.type, stored.version)
        state = State(data=recall_data(contract, stored.data, entry.id, entry.time))
        return Record(entry.account, entry.id, entry.time, entry.arrived, state, event=stored.type)

    return read


class StoredRecords:
    """Turns the journal's payments and events into the records that the series of `plans` count.

    `kinds` are the kinds of entries that the series count. `environments` gives the lists, tables
    and rates as of a sequence number, `label` the label of a payment's id; each is called only when
    a series reads it.
    """

    def __init__(
        self,
        account: Account,
        plans: Sequence[SeriesPlan],
        environments: Callable[[int], Environment],
        label: Callable[[str], str | None],
    ) -> None:
        of_payments = [plan for plan in plans if plan.event is None]
        self.kinds = {Kind.PAYMENT if plan.event is None else Kind.EVENT for plan in plans}
        self._facts_of = _facts_decoder(
            frozenset(fact for plan in of_payments for fact in plan.compiled.facts)
        )
        self._decided = any(plan.decided for plan in of_payments)
        self._looks_up = any(plan.looks_up for plan in of_payments)
        self._labelled = any(plan.labelled for plan in of_payments)
        self._environments = environments
        self._label = label
        self._event_of = event_reader(account)

    def counts(self, entry: Entry) -> bool:
        """Whether the series count the entry: a payment with its updates, or an event."""
        return (Kind.PAYMENT if entry.kind == Kind.UPDATE else entry.kind) in self.kinds

    def record(self, entry: Entry) -> Record:
        """The record of a payment or an event."""
        if entry.kind == Kind.EVENT:
            return self._event_of(entry)
        return Record(entry.account, entry.id, entry.time, entry.arrived, self._state(entry))

    def amended_record(self, before: Entry, after: Entry) -> Record:
        """A payment that an update changed, from its entries before and after the update."""
        old, new = self._state(before), self._state(after)
        return Record(after.account, after.id, after.time, after.arrived, new, old)

    def relabelled_record(self, payment: Entry, before: str | None) -> Record:
        """A payment whose label was `before`."""
        new = self._state(payment)
        old = replace(new, label=before)
        return Record(payment.account, payment.id, payment.time, payment.arrived, new, old)

    def _state(self, entry: Entry) -> State:
        decision = decode_decision(entry.outcome) if self._decided and entry.outcome else None
        environment = self._environments(entry.sequence) if self._looks_up else None
        label = self._label(entry.id) if self._labelled else None
        return State(self._facts_of(entry), decision, None, environment, label)


# Cached: making a decoder makes new types, which takes milliseconds.
@lru_cache(64)
def _facts_decoder(wanted: frozenset[Access]) -> Callable[[Entry], Any]:
    return facts_decoder(wanted)
