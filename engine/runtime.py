"""The engine's parts, held together: what a running service has open."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from tollkeeper.engine.clock_watch import ClockWatch
from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.folder_key import FolderKey
from tollkeeper.engine.journal.damage import Damage
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.monitors.outbox import Outbox
from tollkeeper.engine.monitors.watch import Watch
from tollkeeper.engine.monitors.webhook_reach import Reach
from tollkeeper.engine.programs.active import ActivePrograms
from tollkeeper.engine.registry.accesses import AccessLedger
from tollkeeper.engine.registry.changes import ProgramKind
from tollkeeper.engine.registry.claims import Claims
from tollkeeper.engine.registry.past_states import PastStates
from tollkeeper.engine.registry.person_entries import PersonEntries
from tollkeeper.engine.registry.sessions import Sessions
from tollkeeper.engine.registry.state import Configuration
from tollkeeper.engine.shadow_queue import ShadowQueue
from tollkeeper.engine.turns import Turns
from tollkeeper.engine.velocity.first_seen_store import SeenTimesStore
from tollkeeper.engine.velocity.snapshot import Snapshot
from tollkeeper.engine.velocity.windows import Windows

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Beside(Protocol):
    """Does for an account what would hold the interpreter for long: `work` stands in a module, and is
    given and gives what can be pickled. Raises what `work` raises, and `JournalError`."""

    async def __call__(
        self, account: int, work: Callable[_P, _T], /, *given: _P.args, **named: _P.kwargs
    ) -> _T: ...


async def in_this_process(
    _account: int, work: Callable[_P, _T], /, *given: _P.args, **named: _P.kwargs
) -> _T:
    """Where no service has a process for it."""
    return await asyncio.to_thread(work, *given, **named)


@dataclass(slots=True)
class Engine:
    """`source` is where the journal is, `folder` what else is kept on this machine. `clock` gives
    µs since the epoch. `state` and `active` are replaced whole by each change, under `changing`; a
    request that has begun keeps the picture it started with. An account's programs are published
    one at a time, under `publishing`; what becomes of one payment, and of one idempotency key, is
    worked out one after the other, by `turns`. `filling` tells how far each is, from 0 to 1, by
    account, kind and name. `watch` is what monitors know, `reach` which addresses their webhooks
    may have. `ready` is set once the windows are whole; until then `rebuilt` is the share that is,
    from 0 to 1, and `snapshot` what they are filled from; `snapshot_writer` is the process that
    writes one, as a file descriptor; `snapshot_due` is set when the last one lacks an account and
    another can be written, `snapshot_changing` held while an account is taken out of it.
    `rewriting` are the accounts whose past is being changed, or was when that failed;
    `unfinished_erasures` what an erasure had found that failed, by account and user. `damage` holds
    what could not be read, `clock_watch` whether the clock is right. `key_uses` is the time (µs) of
    each key's last use, by its id; `claims` are payments that somebody is judging. `beside` does
    what would hold up the loop. `accesses` are requests for what tells of persons, to be noted.
    `forwards_to` is the address of the node that owns the journal, None where this one does or none
    is known; `follows` is true once the windows are whole and as long as the journal is not this
    node's.
    """

    source: JournalSource
    folder: Path
    folder_key: FolderKey
    journal: Journal
    outbox: Outbox
    windows: Windows
    seen_times: SeenTimesStore
    clients: Clients
    clock: Callable[[], int]
    state: Configuration
    past_states: PastStates
    active: dict[int, ActivePrograms] = field(default_factory=dict)
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    publishing: defaultdict[int, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    turns: Turns = field(default_factory=Turns)
    filling: dict[tuple[int, ProgramKind, str], float] = field(default_factory=dict)
    shadows: ShadowQueue = field(default_factory=ShadowQueue)
    background: set[asyncio.Task[Any]] = field(default_factory=set)
    watch: Watch = field(default_factory=Watch)
    reach: Reach = "public"
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    snapshot: Snapshot | None = None
    snapshot_writer: int | None = None
    snapshot_due: asyncio.Event = field(default_factory=asyncio.Event)
    snapshot_changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    rewriting: set[int] = field(default_factory=set)
    unfinished_erasures: dict[tuple[int, str], PersonEntries] = field(default_factory=dict)
    rebuilt: float = 0.0
    damage: Damage = field(default_factory=Damage)
    clock_watch: ClockWatch = field(default_factory=ClockWatch)
    key_uses: dict[str, int] = field(default_factory=dict)
    accesses: AccessLedger = field(default_factory=AccessLedger)
    sessions: Sessions = field(default_factory=Sessions)
    claims: Claims = field(default_factory=Claims)
    beside: Beside = in_this_process
    forwards_to: str | None = None
    follows: bool = False

    def obstacle(self) -> str | None:
        """Why no traffic may come, None when it may."""
        if self.forwards_to is not None:
            return None
        if self.damage.policy == "read-only":
            return "the service was started read-only"
        if self.follows:
            return "no node is known to own the journal"
        if not self.ready.is_set():
            return f"the windows are being rebuilt: {self.rebuilt:.0%} done"
        if (failure := self.journal.write_failure()) is not None:
            return f"the journal can't be written: {failure}"
        return None
