"""Exact aggregates over history, in this process's memory, used from one thread.

Records and configuration changes share one sequence of numbers. A record is observed (it gets its
sequence number, and the aggregates for its decision are read), settled (its decision is counted)
and, when it could not be appended to the journal, withdrawn. Each of these is atomic.

    observation = await windows.observe(record, reads)
    observation = await windows.settle(observation, decision)   # before the append
    await windows.withdraw(observation)                         # only when the append failed

A window is (t - over, t] on event time, t being the reading record's event time (docs/language.md,
"Aggregates"). The record itself is in it, unless the window is `earlier`. Those windows, `age`,
`interval`, `since` and `first` read records of lower sequence numbers only. A streak has no window:
its series is also grouped by whether the `where` is met, and holds times of arrival.

A new series is filled from the journal while traffic goes on:

    fill = await windows.add(account, plans)
    for batch in the journal's records of `fill.account` up to sequence number `fill.up_to`:
        await windows.fill(fill, batch)
    while not await windows.seal(fill): …                       # merges records observed meanwhile
    await windows.keep(account, plans of everything active)     # drops what is not needed

The methods are coroutines, but none of them ever suspends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

from msgspec.structs import replace

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.log import get_logger
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
"""The most elements that an account's windows may hold."""
TOTAL_CAP = 25_000_000
"""The most that all accounts' windows may hold together; they exceed it by up to 1 % for a moment."""


class Windows:
    """The windows of all accounts.

    `after` is the last sequence number taken; `cap` is the most elements that an account may hold,
    `total_cap` the most of all accounts; `late` (µs) is how far behind the latest arrival a record's
    event time may be; `seen_times` creates the store of an account's series, given by digest, for
    the times at which its groups were seen.
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
        # How many records may be observed before the elements of all accounts are counted again.
        self._records_until_count = 0
        self.late = late
        self._memory = memory
        self._seen_times = seen_times
        self._fills = count(1)
        self._accounts: dict[int, AccountWindows] = {}

    def drop(self) -> None:
        """Drop the elements of all accounts, once nothing is observed or read any more."""
        self._accounts.clear()

    async def take_sequence(self) -> int:
        """The next sequence number, for an entry that no window counts."""
        self._sequence += 1
        return self._sequence

    async def observe(
        self, record: Record, reads: Sequence[Read], own: Sequence[tuple[Window, ...]] = ()
    ) -> Observation:
        """Give the record its sequence number, count it, and read windows as of its event time.

        `own` are, for each program, windows to read in the record's own group in their series; only
        for a new payment. Raises `NotWholeError`, and then counts nothing.
        """
        self._records_until_count -= 1
        if self._records_until_count < 0:
            self._enforce_total_cap()
        account = self._account(record.account)
        account.require(reads, own)
        self._sequence = sequence = self._sequence + 1
        values = account.observe(sequence, record, reads, own)
        return Observation(sequence, record, values, account.lost_at(reads, own, record.time))

    async def settle(self, observation: Observation, decision: Decision) -> Observation:
        """Count the decision in the series that read decisions; returns the observation with it."""
        sequence, record = observation.sequence, observation.record
        before = record.state
        state = State(before.payment, decision, before.data, before.environment, before.label)
        self._account(record.account).settle(sequence, record, state)
        settled = replace(record, state=state)
        return Observation(sequence, settled, observation.values, observation.lost)

    async def withdraw(self, observation: Observation) -> None:
        """Undo an observation, settled or not; its sequence number is not used again.

        Of several observations of one payment, withdraw the latest first.
        """
        record = observation.record
        self._account(record.account).change(
            StateChange(
                observation.sequence, record.event, record.time, record.state, record.before
            )
        )

    async def read(self, account: int, at: int, reads: Sequence[Read]) -> tuple[Value | None, ...]:
        """The aggregates as of event time `at` (µs), without observing a record.

        Missing where `observe` would report them as lost. Raises `NotWholeError`.
        """
        windows = self._account(account)
        windows.require(reads)
        return windows.read(reads, at)

    async def add(self, account: int, plans: Sequence[SeriesPlan]) -> Fill:
        """Begin to fill the series of `plans` that are not whole; `fill.series` may be empty.

        Records up to sequence number `fill.up_to` must be passed to `fill`: before the journal is read
        for them, it must have written or refused all of them.
        """
        return self._account(account).begin(next(self._fills), self._sequence, plans)

    async def fill(self, fill: Fill, records: Iterable[Record]) -> None:
        """Count stored records, with their decisions, in the order of their sequence numbers.

        Raises `AbandonedError`.
        """
        account = self._account(fill.account)
        account.count_stored(fill, records)
        account.enforce_cap()
        self._enforce_total_cap()

    async def seal(self, fill: Fill) -> bool:
        """Merge some of the records observed since `add`; True once the series are whole.

        Raises `AbandonedError`.
        """
        return self._account(fill.account).seal(fill)

    async def keep(self, account: int, plans: Sequence[SeriesPlan]) -> None:
        """Drop what none of `plans` needs, also of series being filled."""
        self._account(account).keep(plans)

    async def follow(self, records: Mapping[int, Sequence[Record]], up_to: int) -> None:
        """Count records that another process observed, atomically: each account's from the last
        number counted up to sequence number `up_to`.

        A payment's creation and updates may be passed as one record, as for `fill`. A follower must
        not observe records itself.
        """
        for number, account_records in records.items():
            account = self._account(number)
            account.follow(account_records, up_to)
            account.enforce_cap()
        self._sequence = up_to
        self._enforce_total_cap()

    async def restore(
        self, fill: Fill, series: str, newest: int, columns: Iterable[Columns]
    ) -> None:
        """Load some of a series' elements from a snapshot, before later records are filled in.

        Raises `AbandonedError`.
        """
        self._account(fill.account).restore(fill, series, newest, columns)

    def snapshot(self) -> Iterator[SeriesPart]:
        """The elements of every account's whole series; the windows must not change meanwhile."""
        for account in self._accounts.values():
            yield from account.snapshot()

    async def status(self, account: int) -> Status:
        """How much the account's windows hold."""
        windows = self._account(account)
        return Status(windows.entries, self._cap, windows.statuses())

    def _enforce_total_cap(self) -> None:
        """While there are more than `total_cap` elements, give up the largest series of the account
        that holds most."""
        accounts = self._accounts.values()
        while (entries := sum(each.entries for each in accounts)) > self.total_cap:
            number, largest = max(self._accounts.items(), key=lambda item: item[1].entries)
            series = largest.give_up_largest()
            get_logger().error(
                "windows_over_total_cap", account=number, series=series, cap=self.total_cap
            )
        # Counting visits every account, so it is done once for many records, also near the cap.
        room = max(self.total_cap - entries, self.total_cap // 100)
        self._records_until_count = room // max(
            [1, *(each.max_elements_per_record for each in accounts)]
        )

    def _account(self, number: int) -> AccountWindows:
        account = self._accounts.get(number)
        if account is None:
            account = self._accounts[number] = AccountWindows(
                number, self._cap, self.late, self._seen_times, self._memory
            )
        return account
