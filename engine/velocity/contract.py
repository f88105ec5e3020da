"""What goes into windows and comes out of them: records, series, windows, reads, observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.instants import HOUR
from tollkeeper.grammar.program import AggregateFunction, Value
from tollkeeper.grammar.types import Type

LATE = 25 * HOUR
"""How far behind the latest arrival a record's event time may be by default: 24 hours, and 1 for
clocks that differ."""
BEFORE_ALL = -(10**18)
"""Earlier (µs) than every instant."""

Key: TypeAlias = tuple[Value, ...]


class State(Struct, frozen=True, gc=False):
    """A record as known at one moment, as compiled functions take it: `p`, `d`, `v`, `e` and `y`.

    `payment` is what the payment's fields are read from, None for an event; `data` what the
    event's are, None for a payment; `decision` what was decided, None while nothing is.
    `environment` holds the lists, tables and rates as they stood when the record arrived, `label`
    what is known of the payment by now.
    """

    payment: Any = None
    decision: Decision | None = None
    data: Any = None
    environment: Any = None
    label: str | None = None


class Record(Struct, frozen=True, gc=False):
    """Something that happened: a payment's creation or update, or an event.

    `time` is the event time, for an update its payment's; `arrived` is the arrival. Both in µs.
    `before` is what was known until an update, with its decision; `event` the type of an event.
    """

    account: int
    id: str
    time: int
    arrived: int
    state: State
    before: State | None = None
    event: str | None = None


class CompiledSeries(Protocol):
    """A series' expressions, compiled: what a record brings to which group."""

    @property
    def key(self) -> Callable[[Any, Any, Any, Any, Any], Key | None]:
        """`(p, d, v, e, y)` to the group, None when a key is missing."""
        ...

    @property
    def values(self) -> Callable[[Any, Any, Any, Any, Any], Sequence[Value | None]]:
        """`(p, d, v, e, y)` to the value of each element whose `where` is definitely true.

        A missing value is None; without a value expression each element gives True.
        """
        ...

    @property
    def facts(self) -> frozenset[tuple[str, ...]]:
        """The attributes of `p` that both read; those of a payment alone
        (engine/facts/fields_read.py).
        """
        ...


Group: TypeAlias = Value | Key
"""A key as it is held: a key of one part is that part, which takes less memory."""
Columns: TypeAlias = tuple[list[Group], list[int], bytes | bytearray, list[Any]]
"""Groups, how many elements each has, their times (µs) as numbers of 64 bits, and their values."""
Put: TypeAlias = Callable[[int, Any, Any], None]
"""Takes an element: its event time (µs), its group (a key of one part as that part), its value."""
Count: TypeAlias = Callable[[Any, Any, Any, Any, Any, int, Sequence[Put]], Sequence[Any]]
"""`(p, d, v, e, y, time, puts)`: brings a record to several series, to each by the put of its index.

Gives the record's groups in them, None where a key is missing; see `Counted`.
"""


class CountedSeries(NamedTuple):
    """A function that counts several series, and where among its groups that of each series is."""

    function: Count
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """One aggregate that a program reads; `over` in µs, None for `age`, `interval`, `since`,
    `first` and `streak`.

    `series` is the digest of what it looks at, `type` that of the values, None for bare records.
    `earlier` leaves out the record that is observed. `half_life` (µs) is that of a `decay`.
    """

    series: str
    function: AggregateFunction
    over: int | None
    type: Type | None
    earlier: bool = False
    half_life: int | None = None

    @property
    def is_of_earlier(self) -> bool:
        """Whether it looks at earlier records only."""
        return self.earlier or (self.over is None and self.function != "streak")


@dataclass(frozen=True, slots=True)
class SeriesPlan:
    """A series that live programs need.

    `event` is the type whose events it holds, None for payments. Series with the same `by` find the
    same key in every record of it. `over` is its longest window in µs, None when only `age`,
    `interval`, `since`, `first` and `streak` are read. `ages` says whether these are. `decided`
    says whether its expressions read the decision, `looks_up` whether they read lists, tables or
    rates, `labelled` whether the label; `valued` whether its elements have values. `missing` says
    whether elements whose value is missing are kept, as `any` and `all` need. `counting`, where
    there is one, counts some series of the same program at once, by their digests. `distinct` are
    the lengths (µs) of the windows that count its different values. A series with a `half_life`
    (µs) keeps weighed totals.
    """

    digest: str
    event: str | None
    by: str
    over: int | None
    ages: bool
    decided: bool
    valued: bool
    missing: bool
    compiled: CompiledSeries
    counting: Callable[[tuple[str, ...]], CountedSeries] | None = None
    distinct: tuple[int, ...] = ()
    looks_up: bool = False
    labelled: bool = False
    half_life: int | None = None


Read: TypeAlias = tuple[Window, Key | None]
"""A window and the group to read; with a key missing the value is, too."""


class Observation(Struct, frozen=True):
    """`values` are aligned with `own` and the reads behind it; `lost` are the indexes of those that
    cannot be exact.

    A lost read gives missing: its series was given up over a cap, or the record is
    older than the setting for late ones allows.
    """

    sequence: int
    record: Record
    values: tuple[Value | None, ...]
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Fill:
    """Series being filled: from the account's records of sequence numbers up to `up_to`.

    Records whose event time is more than `reach` µs behind the account's latest arrival are not
    needed; with `reach` None, all are. A payment may be given once, as known at `up_to`, instead of
    its creation and updates.
    """

    number: int
    account: int
    series: tuple[str, ...]
    reach: int | None
    up_to: int


class SeriesPart(NamedTuple):
    """Some of what an account's series holds: from as far back as `reach` (µs) behind the latest
    arrival `newest` (µs).
    """

    account: int
    series: str
    reach: int
    newest: int
    columns: Columns


@dataclass(frozen=True, slots=True)
class SeriesStatus:
    """`state` is `over_cap` once the series was given up; adding its plan again refills it."""

    digest: str
    state: Literal["whole", "filling", "over_cap"]
    keys: int
    entries: int


@dataclass(frozen=True, slots=True)
class Status:
    """What an account's windows hold, against its cap of entries."""

    entries: int
    cap: int
    series: tuple[SeriesStatus, ...]

    @property
    def over_cap(self) -> bool:
        """Whether a series was given up."""
        return any(each.state == "over_cap" for each in self.series)


class NotWholeError(Exception):
    """A read of a series that was never added, or is still being filled."""

    def __init__(self, digest: str) -> None:
        super().__init__(f"series `{digest}` is not filled")
        self.digest = digest


class AbandonedError(Exception):
    """A fill that `keep` has given back."""

    def __init__(self, number: int) -> None:
        super().__init__(f"fill {number} was abandoned")
        self.number = number
