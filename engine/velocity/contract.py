"""The types that windows take and return: records, plans of series, windows, reads, observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.instants import HOUR
from tollkeeper.grammar.program import AggregateFunction, Value
from tollkeeper.grammar.types import Type

LATE = 25 * HOUR
"""How far (µs) behind the latest arrival a record's event time may be by default: 24 hours, and 1
more for clocks that differ."""
BEFORE_ALL = -(10**18)
"""Earlier (µs) than every instant."""

Key: TypeAlias = tuple[Value, ...]


class State(Struct, frozen=True, gc=False):
    """A record as known at one moment: the arguments `p`, `d`, `v`, `e` and `y` of compiled functions.

    `payment` (`p`) has the payment's fields, None for an event; `decision` (`d`) is None before there
    is one; `data` (`v`) has the event's fields, None for a payment; `environment` (`e`) has the lists,
    tables and rates as they were when the record arrived; `label` (`y`) is the payment's verdict.
    """

    payment: Any = None
    decision: Decision | None = None
    data: Any = None
    environment: Any = None
    label: str | None = None


class Record(Struct, frozen=True, gc=False):
    """A payment's creation or update, or an event.

    `time` (µs) is the event time, for an update its payment's; `arrived` (µs) is the arrival.
    `before` is the payment's state before an update, with its decision, and None for what is new;
    `event` is the event's type, None for a payment.
    """

    account: int
    id: str
    time: int
    arrived: int
    state: State
    before: State | None = None
    event: str | None = None


class CompiledSeries(Protocol):
    """A series' expressions, compiled: which group a record belongs to, and its elements' values."""

    @property
    def key(self) -> Callable[[Any, Any, Any, Any, Any], Key | None]:
        """From `(p, d, v, e, y)` to the key, None when a part of it is missing."""
        ...

    @property
    def values(self) -> Callable[[Any, Any, Any, Any, Any], Sequence[Value | None]]:
        """From `(p, d, v, e, y)` to the value of each element whose `where` is definitely true.

        A missing value is None; without a value expression each value is True.
        """
        ...

    @property
    def facts(self) -> frozenset[tuple[str, ...]]:
        """The payment's fields that `key` and `values` read, see engine/facts/fields_read.py."""
        ...


Group: TypeAlias = Value | Key
"""A key as series hold it: a key of one part is held as that part, which takes less memory."""
Columns: TypeAlias = tuple[list[Group], list[int], bytes | bytearray, list[Any]]
"""Groups, each one's number of elements, all elements' event times (µs) as packed 64-bit integers,
and their values, an empty list in a series without values."""
Put: TypeAlias = Callable[[int, Any, Any], None]
"""Adds an element to a series: event time (µs), group, value."""
Count: TypeAlias = Callable[[Any, Any, Any, Any, Any, int, Sequence[Put]], Sequence[Any]]
"""`(p, d, v, e, y, time, puts)`: adds a record's elements to several series, to each by its `Put`.

Returns the record's groups, None where a key is missing; `CountedSeries.positions` says which is
whose.
"""


@dataclass(frozen=True)
class CountedSeries:
    """Functions that add records to several series.

    `positions` are each series' index in the groups that `count` returns. `add` does the same
    without groups, and is quicker: for many records in a row. It is compiled when first called for.
    """

    positions: tuple[int, ...]
    count: Count
    compile_add: Callable[[], Count]

    @cached_property
    def add(self) -> Count:
        return self.compile_add()


@dataclass(frozen=True, slots=True)
class Window:
    """One aggregate that a program reads.

    `series` is the digest of its series; `over` (µs) is the window's length, None for `age`,
    `interval`, `since`, `first` and `streak`; `type` is the values' type, None without values.
    `earlier` leaves out the record that is being observed. `half_life` (µs) is that of a `decay`.
    """

    series: str
    function: AggregateFunction
    over: int | None
    type: Type | None
    earlier: bool = False
    half_life: int | None = None

    @property
    def is_of_earlier(self) -> bool:
        """Whether it reads records of lower sequence numbers only."""
        return self.earlier or (self.over is None and self.function != "streak")


@dataclass(frozen=True, slots=True)
class SeriesPlan:
    """A series that live programs need.

    `event` is the type of its events, None for payments. Series with the same `by` compute the same
    key for every record. `over` is the length (µs) of its longest window, None without windows;
    `ages` says whether `age`, `interval`, `since`, `first` or `streak` read it. `decided` says
    whether its expressions read the decision, `looks_up` whether they read lists, tables or rates,
    `labelled` whether they read the label. `valued` says whether its elements have values, `missing`
    whether elements with a missing value are kept, as `any` and `all` need. `counting`, if not None,
    makes one function for several series of the same program, given by digest. `distinct` are the
    lengths (µs) of its `distinct` windows. A series with a `half_life` (µs) holds decayed totals.
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
"""A window and the key to read it for; with None for the key, the value is missing."""


class Observation(Struct, frozen=True):
    """The result of `Windows.observe`: `values` of the windows `own`, then of the reads.

    `lost` are the indexes of values that are missing because they can't be exact: their series was
    given up over a cap, or the record is later than the limit for late records allows.
    """

    sequence: int
    record: Record
    values: tuple[Value | None, ...]
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Fill:
    """Series being filled with the account's records of sequence numbers up to `up_to`.

    Records with event times more than `reach` µs before the account's latest arrival may be left
    out, with `reach` None no records. A payment may be passed once, as known at `up_to`, instead of
    its creation and updates.
    """

    number: int
    account: int
    series: tuple[str, ...]
    reach: int | None
    up_to: int


class SeriesPart(NamedTuple):
    """Some of the elements of an account's series, which holds all with event times later than
    `newest - reach`; `newest` is the latest arrival. Both in µs.
    """

    account: int
    series: str
    reach: int
    newest: int
    columns: Columns


@dataclass(frozen=True, slots=True)
class SeriesStatus:
    """`state` is `over_cap` once the series was given up; adding its plan again fills it again."""

    digest: str
    state: Literal["whole", "filling", "over_cap"]
    keys: int
    entries: int


@dataclass(frozen=True, slots=True)
class Status:
    """The number of elements that an account's windows hold, and the most they may."""

    entries: int
    cap: int
    series: tuple[SeriesStatus, ...]

    @property
    def over_cap(self) -> bool:
        """Whether a series was given up over a cap."""
        return any(each.state == "over_cap" for each in self.series)


class NotWholeError(Exception):
    """A series was read that was never added, or is still being filled."""

    def __init__(self, digest: str) -> None:
        super().__init__(f"series `{digest}` is not filled")
        self.digest = digest


class AbandonedError(Exception):
    """A fill whose series `keep` has dropped."""

    def __init__(self, number: int) -> None:
        super().__init__(f"fill {number} was abandoned")
        self.number = number
