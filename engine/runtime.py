"""The engine: everything that a running service holds open for one journal."""

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
from tollkeeper.engine.journal.appends import Arrivals
from tollkeeper.engine.journal.damage import Damage
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.monitors.outbox import Outbox
from tollkeeper.engine.monitors.states import Monitors
from tollkeeper.engine.monitors.webhook_reach import Reach
from tollkeeper.engine.programs.active import ActivePrograms
from tollkeeper.engine.record_locks import RecordLocks
from tollkeeper.engine.registry.accesses import AccessLedger
from tollkeeper.engine.registry.changes import ProgramKind
from tollkeeper.engine.registry.claims import Claims
from tollkeeper.engine.registry.past_states import PastStates
from tollkeeper.engine.registry.person_entries import PersonEntries
from tollkeeper.engine.registry.sessions import Sessions
from tollkeeper.engine.registry.state import Configuration
from tollkeeper.engine.shadow_queue import ShadowQueue
from tollkeeper.engine.velocity.first_seen_store import SeenTimesStore
from tollkeeper.engine.velocity.snapshot import Snapshot
from tollkeeper.engine.velocity.windows import Windows

_P = ParamSpec("_P")
_T = TypeVar("_T")


class RunInWorker(Protocol):
    """Runs, for an account, work that would hold the interpreter for long, in a process if there is
    one: `work` is a function of a module, with arguments and a result that can be pickled. Raises
    what `work` raises, and `JournalError`."""

    async def __call__(
        self, account: int, work: Callable[_P, _T], /, *given: _P.args, **named: _P.kwargs
    ) -> _T: ...


async def in_this_process(
    _account: int, work: Callable[_P, _T], /, *given: _P.args, **named: _P.kwargs
) -> _T:
    """Runs the work here, where there is no other process for it."""
    return await asyncio.to_thread(work, *given, **named)


@dataclass(slots=True)
class Engine:
    """The parts of a running engine; times in µs unless a name says otherwise.

    Storage: `source` is where the journal is, `folder` where this machine keeps derived files.

    Configuration: `state` and `active` are replaced as a whole by each change, under `changing`; a
    request keeps the objects that it started with. An account publishes one program at a time,
    under `publishing`; `filling` is the progress of each, from 0 to 1, by account, kind and name.
    `locks` serialise the requests for one payment or one idempotency key; `arrivals` grow with
    sequence numbers.

    Start: `ready` is set once the windows are whole. Until then `rebuilt` is the share that is,
    from 0 to 1, and `snapshot` what they are restored from.

    Snapshots: `snapshot_writer` is the file descriptor of the process that writes one.
    `snapshot_due` is set when the last one lacks an account and another can be written;
    `snapshot_changing` is held while an account is taken out of it.

    Changes of the past: `rewriting` are the accounts whose history is being changed, or was when
    that failed; `unfinished_erasures` is what a failed erasure had found, by account and user.

    Checks: `damage` are entries that could not be read, `clock_watch` whether the clock can be
    trusted. `reach` is which addresses webhooks may have.

    In memory only: `key_uses` are the times of keys' last uses by their ids, `claims` payments
    under review, `accesses` reads of personal data that are not in the journal yet.

    Nodes: `forwards_to` is the address of the journal's owner, None if this node owns it or no
    owner is known; `follows` is true when the windows are whole and another node owns the journal.

    `run_in_worker` runs work that would hold the interpreter for long.
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
    arrivals: Arrivals
    state: Configuration
    past_states: PastStates
    active: dict[int, ActivePrograms] = field(default_factory=dict)
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    publishing: defaultdict[int, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    locks: RecordLocks = field(default_factory=RecordLocks)
    filling: dict[tuple[int, ProgramKind, str], float] = field(default_factory=dict)
    shadows: ShadowQueue = field(default_factory=ShadowQueue)
    background: set[asyncio.Task[Any]] = field(default_factory=set)
    monitors: Monitors = field(default_factory=Monitors)
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
    run_in_worker: RunInWorker = in_this_process
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
