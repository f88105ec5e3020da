"""Events as the journal keeps them, and as the windows take them in again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from tollkeeper.engine.events.data import Contract, recall_data
from tollkeeper.engine.events.versions import contract_of
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.windows.contract import Record, State


class Kept(Struct, frozen=True):
    """What the journal keeps of an event: the version it was checked against, and its data."""

    type: str
    version: int
    data: dict[str, Any]


decode_kept = msgspec.json.Decoder(Kept).decode


def event_reader(account: Account) -> Callable[[Entry], Record]:
    """Reads the account's stored events, each under the version that it came with."""
    contracts: dict[tuple[str, int], Contract] = {}

    def read(entry: Entry) -> Record:
        kept = decode_kept(entry.body)
        of = (kept.type, kept.version)
        if of not in contracts:
            version = account.files["event", kept.type].versions[kept.version - 1]
            contracts[of] = contract_of(version)
        data = recall_data(contracts[of], kept.data, entry.id, entry.time)
        state = State(data=data)
        return Record(entry.account, entry.id, entry.time, entry.arrived, state, event=kept.type)

    return read
