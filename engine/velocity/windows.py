"""Exact aggregates over history, read atomically; held in this process's memory, by one thread.

All that happened and all that was configured has its number in one sequence. A record is observed
(it takes its sequence number, and the aggregates of its decision are read), settled (what was
decided joins it) and, when it could not be kept, withdrawn. Each of the three is one step for the
account: nothing else of that account happens within it.

    observation = await windows.observe(record, reads)
    observation = await windows.settle(observation, decision)   # before the append, for the next
    await windows.withdraw(observation)                         # only when the append failed

A window is (t - over, t] on event time, t being the reading record's own (docs/language.md,
"Aggregates"). The record itself is in it, unless the window is `earlier`: that one, `age`,
`interval`, `since` and `first` look at records of earlier sequence numbers only. A streak has no
window: its series is grouped by whether the `where` is met, too, and holds times of arrival.

A new series is filled from the journal while traffic goes on:

    fill = await windows.add(account, plans)
    for batch in the journal's records of `fill.account` up to sequence number `fill.up_to`:
        await windows.fill(fill, batch)
    while not await windows.seal(fill): …                       # what came in meanwhile is merged
    await windows.keep(account, plans of everything active)     # gives memory back

No verb ever suspends.
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
"""How many elements an account's windows may hold."""
TOTAL_CAP = 25_000_000
"""How many the windows of all accounts may hold together, a hundredth more for a moment."""


class Windows:
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
        """The next sequence number, for something that no window counts."""
        self._sequence += 1
        return self._sequence

    async def observe(
        self, record: Record, reads: Sequence[Read], own: Sequence[tuple[Window, ...]] = ()
    ) -> Observation:
        """Gives the record its sequence number and counts it; reads as of its event time.

        `own` are, for each program, windows to read in the groups that the record itself has in
        their series; of a new payment alone. Raises `NotWholeError`, and counts nothing then.
        """
        self._uncounted -= 1
        if self._uncounted < 0:
            self._hold_to_total_cap()
        account = self._account(record.account)
        account.require(reads, own)
        self._sequence = sequence = self._sequence + 1
        values = account.observe(sequence, record, reads, own)
        return Observation(sequence, record, values, account.lost_at(reads, own, record.time))

    async def settle(self, observation: Observation, decision: Decision) -> Observation:
        """The observation with what was decided, which series that read decisions count from now."""
        sequence, record = observation.sequence, observation.record
        was = record.state
        state = State(was.payment, decision, was.data, was.environment, was.label)
        self._account(record.account).settle(sequence, record, state)
        settled = replace(record, state=state)
        return Observation(sequence, settled, observation.values, observation.lost)

    async def withdraw(self, observation: Observation) -> None:
        """Undoes an observation, settled or not; its sequence number stays empty.

        Of several observations of one payment, the latest is withdrawn first.
        """
        record = observation.record
        self._account(record.account).change(
            StateChange(
                observation.sequence, record.event, record.time, record.state, record.before
            )
        )

    async def read(self, account: int, at: int, reads: Sequence[Read]) -> tuple[Value | None, ...]:
        """The aggregates as of event time `at` (µs), observing nothing.

        Missing where `observe` would call them lost. Raises `NotWholeError`.
        """
        held = self._account(account)
        held.require(reads)
        return held.read(reads, at)

    async def add(self, account: int, plans: Sequence[SeriesPlan]) -> Fill:
        """Begins to fill what `plans` need beyond what is whole; `fill.series` may be empty.

        Records of sequence numbers up to `fill.up_to` are taken from `fill` alone: the journal must
        have written or refused all of them before it is read.
        """
        return self._account(account).begin(next(self._fills), self._sequence, plans)

    async def fill(self, fill: Fill, records: Iterable[Record]) -> None:
        """Takes in stored records, in the order of their sequence numbers; each with its decision.

        Raises `AbandonedError`.
        """
        account = self._account(fill.account)
        account.take_in(fill, records)
        account.hold_to_cap()
        self._hold_to_total_cap()

    async def seal(self, fill: Fill) -> bool:
        """Merges some of what was observed since `add`; true once the series are whole.

        Raises `AbandonedError`.
        """
        return self._account(fill.account).seal(fill)

    async def keep(self, account: int, plans: Sequence[SeriesPlan]) -> None:
        """Gives back what none of `plans` needs, abandoned fills included."""
        self._account(account).keep(plans)

    async def follow(self, records: Mapping[int, Sequence[Record]], up_to: int) -> None:
        """Counts what another process observed, in one step: by account all that the journal holds
        beyond what is counted, up to sequence number `up_to`.

        As `fill` takes records, a payment's creation and updates as one. Whoever follows observes
        nothing by itself until it has all.
        """
        for number, of_account in records.items():
            account = self._account(number)
            account.follow(of_account, up_to)
            account.hold_to_cap()
        self._sequence = up_to
        self._hold_to_total_cap()

    async def restore(
        self, fill: Fill, series: str, newest: int, columns: Iterable[Columns]
    ) -> None:
        """Takes in some of what `snapshot` gave of a series, before records of later ones.

        Raises `AbandonedError`.
        """
        self._account(fill.account).restore(fill, series, newest, columns)

    def snapshot(self) -> Iterator[SeriesPart]:
        """What the whole series of every account hold; nothing else may happen meanwhile."""
        for account in self._accounts.values():
            yield from account.snapshot()

    async def status(self, account: int) -> Status:
        """What the account's windows hold."""
        held = self._account(account)
        return Status(held.entries, self._cap, held.statuses())

    def _hold_to_total_cap(self) -> None:
        """The account that holds most gives up its largest series, until all together are within."""
        accounts = self._accounts.values()
        while (entries := sum(each.entries for each in accounts)) > self.total_cap:
            number, largest = max(self._accounts.items(), key=lambda held: held[1].entries)
            series = largest.give_up_largest()
            get_logger().error(
                "windows_over_total_cap", account=number, series=series, cap=self.total_cap
            )
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
