"""Events as the journal keeps them, and as the windows take them in again."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.events.versions import contract_of
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.programs.event_contract import Contract, recall_data
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.velocity.contract import Record, State


class Kept(Struct, frozen=True):
    """What the journal keeps of an event: the version it was checked against, and its data."""

    type: str
    version: int
    data: dict[str, Any]


decode_kept = msgspec.json.Decoder(Kept).decode


ReadEvent: TypeAlias = Callable[[Entry], Record]


def event_reader(account: Account) -> ReadEvent:
    """Reads the account's stored events, each under the version that it came with."""

    def contract(type_: str, number: int) -> Contract:
        return contract_of(account.files["event", type_].versions[number - 1])

    return reader(contract)


def reader(contract: Callable[[str, int], Contract]) -> ReadEvent:
    """Reads stored events; `contract` is that of a type's version."""
    known = cache(contract)

    def read(entry: Entry) -> Record:
        kept = decode_kept(entry.body)
        data = recall_data(known(kept.type, kept.version), kept.data, entry.id, entry.time)
        state = State(data=data)
        return Record(entry.account, entry.id, entry.time, entry.arrived, state, event=kept.type)

    return read
