"""Windows in this process's memory: one thread, and no verb ever suspends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

from msgspec.structs import replace
from structlog import get_logger

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.velocity.account import AccountWindows
from tollkeeper.engine.velocity.contract import (
    LATE,
    Columns,
    Fill,
    Observation,
    Read,
    Record,
    SeriesPart,
    SeriesPlan,
    State,
    Status,
    Window,
)
from tollkeeper.engine.velocity.first_seen import MemorySeenTimes, SeenTimes
from tollkeeper.engine.velocity.series import FASTEST, Memory
from tollkeeper.engine.velocity.series_set import StateChange
from tollkeeper.grammar.program import Value

CAP = 25_000_000
"""How many elements an account's windows may hold."""
TOTAL_CAP = 25_000_000
"""How many the windows of all accounts may hold together, a hundredth more for a moment."""

log = get_logger()


class MemoryWindows:
    """`after` is the last sequence number taken, `cap` how many elements an account may hold,
    `total_cap` how many all of them may, and `late` (µs) how far behind the latest arrival a
    record's event time may be; `seen_times` makes where an account keeps the times at
    which a series' groups were seen.
    """

    def __init__(
        self,
        after: int = 0,
        cap: int = CAP,
        late: int = LATE,
        seen_times: Callable[[int, str], SeenTimes] = lambda _account, _series: MemorySeenTimes(),
        memory: Memory = FASTEST,
        total_cap: int = TOTAL_CAP,
    ) -> None:
        self._sequence = after
        self._cap = cap
        self.total_cap = total_cap
        # How many records may come before the elements of all accounts are counted.
        self._uncounted = 0
        self.late = late
        self._memory = memory
        self._seen_times = seen_times
        self._fills = count(1)
        self._accounts: dict[int, AccountWindows] = {}

    async def take_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    async def observe(
        self, record: Record, reads: Sequence[Read], own: Sequence[tuple[Window, ...]] = ()
    ) -> Observation:
        self._uncounted -= 1
        if self._uncounted < 0:
            self._hold_to_total_cap()
        account = self._account(record.account)
        account.require(reads, own)
        self._sequence = sequence = self._sequence + 1
        values = account.observe(sequence, record, reads, own)
        return Observation(sequence, record, values, account.lost_at(reads, own, record.time))

    async def settle(self, observation: Observation, decision: Decision) -> Observation:
        sequence, record = observation.sequence, observation.record
        was = record.state
        state = State(was.payment, decision, was.data, was.environment, was.label)
        self._account(record.account).settle(sequence, record, state)
        settled = replace(record, state=state)
        return Observation(sequence, settled, observation.values, observation.lost)

    async def withdraw(self, observation: Observation) -> None:
        record = observation.record
        self._account(record.account).change(
            StateChange(
                observation.sequence, record.event, record.time, record.state, record.before
            )
        )

    async def read(self, account: int, at: int, reads: Sequence[Read]) -> tuple[Value | None, ...]:
        held = self._account(account)
        held.require(reads)
        return held.read(reads, at)

    async def add(self, account: int, plans: Sequence[SeriesPlan]) -> Fill:
        return self._account(account).begin(next(self._fills), self._sequence, plans)

    async def fill(self, fill: Fill, records: Iterable[Record]) -> None:
        account = self._account(fill.account)
        account.take_in(fill, records)
        account.hold_to_cap()
        self._hold_to_total_cap()

    async def seal(self, fill: Fill) -> bool:
        return self._account(fill.account).seal(fill)

    async def keep(self, account: int, plans: Sequence[SeriesPlan]) -> None:
        self._account(account).keep(plans)

    async def follow(self, records: Mapping[int, Sequence[Record]], up_to: int) -> None:
        for number, of_account in records.items():
            account = self._account(number)
            account.follow(of_account, up_to)
            account.hold_to_cap()
        self._sequence = up_to
        self._hold_to_total_cap()

    async def restore(
        self, fill: Fill, series: str, newest: int, columns: Iterable[Columns]
    ) -> None:
        self._account(fill.account).restore(fill, series, newest, columns)

    def snapshot(self) -> Iterator[SeriesPart]:
        for account in self._accounts.values():
            yield from account.snapshot()

    async def status(self, account: int) -> Status:
        held = self._account(account)
        return Status(held.entries, self._cap, held.statuses())

    def _hold_to_total_cap(self) -> None:
        """The account that holds most gives up its largest series, until all together are within."""
        accounts = self._accounts.values()
        while (entries := sum(each.entries for each in accounts)) > self.total_cap:
            number, largest = max(self._accounts.items(), key=lambda held: held[1].entries)
            series = largest.give_up_largest()
            log.error("windows_over_total_cap", account=number, series=series, cap=self.total_cap)
        # Counting visits every account: near the cap, it is done once for many records.
        room = max(self.total_cap - entries, self.total_cap // 100)
        self._uncounted = room // max([1, *(each.most_a_record for each in accounts)])

    def _account(self, number: int) -> AccountWindows:
        account = self._accounts.get(number)
        if account is None:
            account = self._accounts[number] = AccountWindows(
                number, self._cap, self.late, self._seen_times, self._memory
            )
        return account
