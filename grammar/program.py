"""The checked program: every name resolved, every expression typed, nothing left to fail.

Expressions keep the id and the span of the syntax they came from, so that explanation,
coverage and diagnostics speak of the same places. Values in constants are carried as
`types.py` says. Each expression gives a value of its type, or None for missing.

Logic is three-valued; `Presence` is never missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.types import Type

Action: TypeAlias = Literal["allow", "challenge", "deny"]
Value: TypeAlias = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Node:
    id: int
    span: Span
    type: Type


# Leaves


@dataclass(frozen=True, slots=True)
class Constant(Node):
    value: Value


@dataclass(frozen=True, slots=True)
class Fact(Node):
    """A field of the payment; within a history aggregate, of the historical record's payment."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeaderFact(Node):
    """One header of `side` (`device` or `backend`); `name` is in lower case."""

    side: Literal["device", "backend"]
    name: str


@dataclass(frozen=True, slots=True)
class MetadataFact(Node):
    """One metadata entry, missing when it is not of `type` (boolean, string, number of scale 6).

    `inner` are the keys that lead on from it, into objects within it. As the operand of `Presence`
    its type is `Metadata`: there, whatever its type.
    """

    key: str
    inner: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ElementFact(Node):
    """A field of the transaction that a `where` or a value is looking at."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecisionFact(Node):
    """`decision.action`, `.rule`, `.condition`, `.score` of a historical record."""

    name: Literal["action", "rule", "condition", "score"]


@dataclass(frozen=True, slots=True)
class ArrivalFact(Node):
    """When a payment arrived: an instant that no author can name, by which streaks are ordered."""


@dataclass(frozen=True, slots=True)
class LabelFact(Node):
    """`label`: what is known of a historical record's payment by now."""


@dataclass(frozen=True, slots=True)
class EventFact(Node):
    """A field of an event's data, or its own `timestamp` or `id`."""

    name: str


@dataclass(frozen=True, slots=True)
class Score(Node):
    """The rounded score that the response shows: a number of scale 2, or missing."""


@dataclass(frozen=True, slots=True)
class LetValue(Node):
    """The value of `program.lets[index]`."""

    index: int


@dataclass(frozen=True, slots=True)
class TableValue(Node):
    """`@table[key].column`; missing when the key is missing or not there."""

    table: str
    key: Expression
    column: str


# Logic and tests


@dataclass(frozen=True, slots=True)
class Not(Node):
    operand: Expression


@dataclass(frozen=True, slots=True)
class And(Node):
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """Two values of one kind; numbers may differ in scale, or one of them be a double."""

    operator: Literal["==", "!=", "<", "<=", ">", ">="]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Between(Node):
    """Both ends in: `low <= value and value <= high`."""

    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class OneOf(Node):
    """`value in [constants]` by equality, as `or` over `==`; not for networks."""

    value: Expression
    options: tuple[Constant, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class InNetworks(Node):
    """`ip in ["10.0.0.0/8", …]`: each network as (first address, prefix length of 128 bits)."""

    value: Expression
    networks: tuple[tuple[int, int], ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class InList(Node):
    """`value in @list`."""

    value: Expression
    list: str
    negated: bool


@dataclass(frozen=True, slots=True)
class InEntry(Node):
    """`value in metadata["skus"]`: whether an element of that list equals the value.

    Missing where the entry is no list. An element of another type than the value's is passed over.
    """

    value: Expression
    entry: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class EntryCount(Node):
    """`count(metadata["skus"])`: how many elements that list has, missing where it is no list."""

    entry: Expression


@dataclass(frozen=True, slots=True)
class TextTest(Node):
    operator: Literal["contains", "starts with", "ends with"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Matches(Node):
    """RE2, unanchored."""

    value: Expression
    pattern: str
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class Presence(Node):
    """`is missing`, `is present`; the operand may be a record or the collection."""

    operand: Expression
    state: Literal["missing", "present"]


# Values


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """On numbers, instants, durations (docs/language.md, "Types and missing values")."""

    operator: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negate(Node):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Curve(Node):
    """What a signal adds by steps: the amount of the first bound that the value is below, the last
    one beyond all of them, `absent` where the value is missing. Always a double.

    The bounds ascend, in the value's kind; there is one amount more than bounds. `direction` is
    what the author wrote, and the amounts keep to it.
    """

    value: Expression
    direction: Literal["rising", "falling"] | None
    bounds: tuple[Constant, ...]
    amounts: tuple[Constant, ...]
    absent: Constant | None


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function of `functions.py`."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Fold(Node):
    """An aggregate over the current payment's transactions."""

    function: Literal["any", "all", "count", "sum", "min", "max", "avg", "distinct"]
    value: Expression | None
    where: Expression | None


@dataclass(frozen=True, slots=True)
class Series:
    """The records an aggregate over history looks at, grouped by a key.

    `by`, `where` and `value` are read on the historical record: `Fact` is its payment,
    `ElementFact` the transaction of a `transactions` series, `DecisionFact` what was decided,
    `LabelFact` what is known, `EventFact` the data of an `events` series. `event` names the type of
    an `events` series. A `LetValue` in them belongs to the program that holds the series.
    """

    collection: Literal["payments", "transactions", "events"]
    event: str | None
    by: tuple[Expression, ...]
    where: Expression | None
    value: Expression | None


AggregateFunction: TypeAlias = Literal[
    "any",
    "all",
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "distinct",
    "age",
    "interval",
    "since",
    "first",
    "streak",
    "decay",
]
"""What may be asked of the records of history."""


@dataclass(frozen=True, slots=True)
class History(Node):
    """An aggregate over history.

    `keys` are read on the current payment (or event) and select the group. They are the same
    expressions as `series.by`, but for a metric read with keys of its own
    (`events.TYPE.METRIC[user.id]`). `over` is the window's length in microseconds, None for `age`,
    `interval`, `since`, `first` and `streak`, which look at all of the history. `earlier` leaves
    out the record that is being decided. `half_life`, in microseconds, is that of a `decay`, whose
    `over` is as far back as anything weighs.
    """

    function: AggregateFunction
    series: Series
    keys: tuple[Expression, ...]
    over: int | None
    earlier: bool = False
    half_life: int | None = None


Expression: TypeAlias = (
    Constant
    | Fact
    | HeaderFact
    | MetadataFact
    | ElementFact
    | DecisionFact
    | LabelFact
    | ArrivalFact
    | EventFact
    | Score
    | LetValue
    | TableValue
    | Not
    | And
    | Or
    | Compare
    | Between
    | OneOf
    | InNetworks
    | InList
    | InEntry
    | EntryCount
    | TextTest
    | Matches
    | Presence
    | Arithmetic
    | Negate
    | Curve
    | Call
    | Fold
    | History
)


# Tests


@dataclass(frozen=True, slots=True)
class GivenValue:
    """`target` is a field of the payment or the event, a header, a metadata entry, a let or the
    score; a number's constant has the scale it was written with."""

    target: Fact | HeaderFact | MetadataFact | EventFact | LetValue | Score
    value: Constant


@dataclass(frozen=True, slots=True)
class GivenList:
    """All entries of a list; addresses and networks as they were written."""

    list: str
    entries: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class GivenRow:
    """One column of a table's row; `key` as it was written."""

    table: str
    key: str
    column: str
    value: Constant


@dataclass(frozen=True, slots=True)
class GivenFile:
    """`path` is relative to the file that holds the test."""

    kind: Literal["payment", "history", "event"]
    path: str


@dataclass(frozen=True, slots=True)
class ExpectAction:
    """`action` `default` means that no condition is met and the rule leaves it to the account."""

    span: Span
    action: Action | Literal["default"]
    condition: str | None


@dataclass(frozen=True, slots=True)
class ExpectAlert:
    """`monitor` None is any; `negated` expects that it is not raised."""

    span: Span
    monitor: str | None
    negated: bool


@dataclass(frozen=True, slots=True)
class ExpectValue:
    """`value` is definitely true."""

    span: Span
    value: Expression


Given: TypeAlias = GivenValue | GivenList | GivenRow | GivenFile
Expected: TypeAlias = ExpectAction | ExpectAlert | ExpectValue


@dataclass(frozen=True, slots=True)
class Test:
    """Only what is given is there (docs/language.md, "Tests")."""

    span: Span
    title: str
    given: tuple[Given, ...]
    expected: tuple[Expected, ...]


# Programs


@dataclass(frozen=True, slots=True)
class Let:
    """`source` names the definitions or event type it was taken from, whose text its spans mean."""

    name: str
    span: Span
    value: Expression
    source: str | None = None


@dataclass(frozen=True, slots=True)
class ListUse:
    """A list the program reads: what its entries are."""

    name: str
    type: Literal["string", "number", "ip"]


@dataclass(frozen=True, slots=True)
class TableUse:
    """A table the program reads: how it is looked up, and its columns by name."""

    name: str
    by: Literal["value", "prefix", "network"]
    columns: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Condition:
    id: int
    span: Span
    name: str
    title: str | None
    when: Expression
    action: Action


@dataclass(frozen=True, slots=True)
class Promise:
    """What must hold of every payment: where `when` is definitely true, the action is never, or
    always, one of `actions`. It decides nothing; see `engine/offline/prove`."""

    span: Span
    title: str | None
    when: Expression
    never: bool
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions in order; `otherwise` None means the account's configuration decides.

    `histories` are all the aggregates over history that conditions and lets hold, each once,
    in the order in which a reader hands over their values. `lists`, `tables` and `lets` hold
    what is read of definitions too; a let comes after those it uses.
    """

    name: str
    title: str | None
    lists: tuple[ListUse, ...]
    tables: tuple[TableUse, ...]
    lets: tuple[Let, ...]
    conditions: tuple[Condition, ...]
    otherwise: Action | None
    histories: tuple[History, ...]
    tests: tuple[Test, ...]
    promises: tuple[Promise, ...] = ()


@dataclass(frozen=True, slots=True)
class Signal:
    id: int
    span: Span
    name: str
    title: str | None
    adds: Expression
    when: Expression | None


@dataclass(frozen=True, slots=True)
class Scorecard:
    """logit(score) = logit(baseline) + the sum of `adds` of the signals whose `when` is met."""

    name: str
    title: str | None
    lists: tuple[ListUse, ...]
    tables: tuple[TableUse, ...]
    lets: tuple[Let, ...]
    baseline: float
    signals: tuple[Signal, ...]
    histories: tuple[History, ...]
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class EventField:
    name: str
    type: Type
    required: bool


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    title: str | None
    history: History


@dataclass(frozen=True, slots=True)
class Monitor:
    """Raises an alert when `when` goes from not met to met, once per `by` key and `every` µs."""

    id: int
    span: Span
    name: str
    title: str | None
    when: Expression
    by: tuple[Expression, ...]
    every: int | None


@dataclass(frozen=True, slots=True)
class EventLabel:
    """Where `when` is definitely true, what an event says of the payment whose id is `payment`:
    None takes back what one of its type said before."""

    span: Span
    label: Literal["fraud", "legitimate", "unsure"] | None
    payment: Expression
    when: Expression


@dataclass(frozen=True, slots=True)
class EventType:
    """Of `labels` the first one counts whose condition is met."""

    name: str
    title: str | None
    lists: tuple[ListUse, ...]
    tables: tuple[TableUse, ...]
    lets: tuple[Let, ...]
    fields: tuple[EventField, ...]
    metrics: tuple[Metric, ...]
    monitors: tuple[Monitor, ...]
    histories: tuple[History, ...]
    tests: tuple[Test, ...]
    labels: tuple[EventLabel, ...] = ()


@dataclass(frozen=True, slots=True)
class Definitions:
    name: str
    title: str | None
    lists: tuple[ListUse, ...]
    tables: tuple[TableUse, ...]
    lets: tuple[Let, ...]


Program: TypeAlias = Rule | Scorecard | EventType | Definitions
