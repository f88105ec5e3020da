"""What the journal stores of payments, updates and events, written and read back.

Bodies and outcomes are JSON. `StoredRecords` gives windows what their series read, and no more.
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

    `environment` is what its arrival met, `label` what is known of it; None where nobody asks.
    """
    facts = recall(decode_recorded(latest.body), created.arrived)
    decision = decode_decision(created.outcome) if created.outcome else None
    return State(facts, decision, None, environment, label)


def event_reader(account: Account) -> ReadEvent:
    """Reads the account's stored events, each by the version that it was checked against."""

    def contract(type_: str, number: int) -> Contract:
        return contract_of(account.files["event", type_].versions[number - 1])

    return event_reader_by(contract)


def event_reader_by(contract: Callable[[str, int], Contract]) -> ReadEvent:
    """Reads stored events; `contract(type, version)` says what their data holds."""
    find_contract = cache(contract)

    def read(entry: Entry) -> Record:
        stored = decode_event(entry.body)
        contract = find_contract(stored.type, stored.version)
        state = State(data=recall_data(contract, stored.data, entry.id, entry.time))
        return Record(entry.account, entry.id, entry.time, entry.arrived, state, event=stored.type)

    return read


class StoredRecords:
    """Stored payments and events as the series of `plans` count them.

    `kinds` are those of the entries that the series hold. `environments` gives what a record's
    arrival met by its sequence number, `label` what is known of the payment of an id; they are
    asked where a series reads them.
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

    def record(self, entry: Entry) -> Record:
        """A payment, as the entry knows it, or an event."""
        if entry.kind == Kind.EVENT:
            return self._event_of(entry)
        return Record(entry.account, entry.id, entry.time, entry.arrived, self._state(entry))

    def amended(self, before: Entry, after: Entry) -> Record:
        """A payment that an update changed: `before` and `after` are what was stored of it."""
        old, new = self._state(before), self._state(after)
        return Record(after.account, after.id, after.time, after.arrived, new, old)

    def relabelled(self, known: Entry, before: str | None) -> Record:
        """A payment of which something else was known before."""
        new = self._state(known)
        old = replace(new, label=before)
        return Record(known.account, known.id, known.time, known.arrived, new, old)

    def _state(self, entry: Entry) -> State:
        decision = decode_decision(entry.outcome) if self._decided and entry.outcome else None
        environment = self._environments(entry.sequence) if self._looks_up else None
        label = self._label(entry.id) if self._labelled else None
        return State(self._facts_of(entry), decision, None, environment, label)


# A decoder is made of new types, which takes milliseconds.
@lru_cache(64)
def _facts_decoder(wanted: frozenset[Access]) -> Callable[[Entry], Any]:
    return facts_decoder(wanted)
