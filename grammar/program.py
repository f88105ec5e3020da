"""The checked program: every name resolved, every expression typed, nothing left to fail.

Expressions keep the id and span of their syntax, so that explanation, coverage and diagnostics
refer to the same places. `types.py` defines the representation of constants. Each expression yields
a value of its type, or None if missing.

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
    """A field of the payment; inside a history aggregate, of the historical record's payment."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeaderFact(Node):
    """One header of `side` (`device` or `backend`); `name` is in lower case."""

    side: Literal["device", "backend"]
    name: str


@dataclass(frozen=True, slots=True)
class MetadataFact(Node):
    """One metadata entry; missing unless it is of `type` (boolean, string, number of scale 6).

    `inner` are the further keys, into nested objects. As the operand of `Presence` its type is
    `Metadata`: a value of any type counts.
    """

    key: str
    inner: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ElementFact(Node):
    """A field of the transaction that a `where` or a value reads."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecisionFact(Node):
    """`decision.action`, `.rule`, `.condition`, `.score` of a historical record."""

    name: Literal["action", "rule", "condition", "score"]


@dataclass(frozen=True, slots=True)
class ArrivalFact(Node):
    """When a payment arrived. Authors can't name it; streaks are ordered by it."""


@dataclass(frozen=True, slots=True)
class LabelFact(Node):
    """`label`: what is known by now of a historical record's payment."""


@dataclass(frozen=True, slots=True)
class EventFact(Node):
    """A field of an event's data, or its own `timestamp` or `id`."""

    name: str


@dataclass(frozen=True, slots=True)
class Score(Node):
    """The rounded score, as in the response: a number of scale 2, or missing."""


@dataclass(frozen=True, slots=True)
class LetValue(Node):
    """The value of `program.lets[index]`."""

    index: int


@dataclass(frozen=True, slots=True)
class TableValue(Node):
    """`@table[key].column`; missing if the key is missing or not in the table."""

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
    """`low <= value and value <= high`."""

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
    """`ip in ["10.0.0.0/8", …]`; each network is (first address, prefix length of 128 bits)."""

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

    Missing if the entry is not a list. Elements of other types are skipped.
    """

    value: Expression
    entry: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class EntryCount(Node):
    """`count(metadata["skus"])`: the list's length; missing if the entry is not a list."""

    entry: Expression


@dataclass(frozen=True, slots=True)
class TextTest(Node):
    operator: Literal["contains", "starts with", "ends with"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Matches(Node):
    """An RE2 pattern, found anywhere in the text."""

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
    """A signal's curve: the amount of the first bound that the value is below, the last amount
    beyond all bounds, `absent` if the value is missing. Always a double.

    The bounds ascend, in the value's type; there is one more amount than bounds. `direction` is as
    declared, and the amounts keep to it.
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
    """The records that an aggregate over history covers, grouped by a key.

    `by`, `where` and `value` are evaluated on the historical record: `Fact` is its payment,
    `ElementFact` the transaction of a `transactions` series, `DecisionFact` the decision,
    `LabelFact` the label, `EventFact` the data of an `events` series. `event` names the type of an
    `events` series. A `LetValue` in them refers to the program that holds the series.
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
"""The functions of aggregates over history."""


@dataclass(frozen=True, slots=True)
class History(Node):
    """An aggregate over history.

    `keys` are evaluated on the current payment (or event) and select the group. They equal
    `series.by`, except for a metric that is read with keys of its own
    (`events.TYPE.METRIC[user.id]`). `over` is the window's length in microseconds, None for `age`,
    `interval`, `since`, `first` and `streak`, which cover all history. `earlier` excludes the
    record being decided. `half_life` (µs) is that of a `decay`, whose `over` is the longest time
    for which a record has any weight.
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
    score; a number's constant has the scale it was written with.
    """

    target: Fact | HeaderFact | MetadataFact | EventFact | LetValue | Score
    value: Constant


@dataclass(frozen=True, slots=True)
class GivenList:
    """All entries of a list; addresses and networks as written."""

    list: str
    entries: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class GivenRow:
    """One column of a table's row; `key` as written."""

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
    """`action` `default`: no condition is met, and the account's configuration decides."""

    span: Span
    action: Action | Literal["default"]
    condition: str | None


@dataclass(frozen=True, slots=True)
class ExpectAlert:
    """`monitor` None means any; `negated` expects that it is not raised."""

    span: Span
    monitor: str | None
    negated: bool


@dataclass(frozen=True, slots=True)
class ExpectValue:
    """`value` must be definitely true."""

    span: Span
    value: Expression


Given: TypeAlias = GivenValue | GivenList | GivenRow | GivenFile
Expected: TypeAlias = ExpectAction | ExpectAlert | ExpectValue


@dataclass(frozen=True, slots=True)
class Test:
    """Only the given values are present (docs/language.md, "Tests")."""

    span: Span
    title: str
    given: tuple[Given, ...]
    expected: tuple[Expected, ...]


# Programs

OF_EVENT = "event "
"""What the source of a let begins with that comes from an event type."""


@dataclass(frozen=True, slots=True)
class Let:
    """`source` names the definitions or event type that the let comes from; its spans refer to that
    text.
    """

    name: str
    span: Span
    value: Expression
    source: str | None = None

    @property
    def event(self) -> str | None:
        """The event type that the let comes from with a metric; its name may be another let's too."""
        source = self.source or ""
        return source.removeprefix(OF_EVENT) if source.startswith(OF_EVENT) else None


@dataclass(frozen=True, slots=True)
class ListUse:
    """A list that the program reads, and the type of its entries."""

    name: str
    type: Literal["string", "number", "ip"]


@dataclass(frozen=True, slots=True)
class TableUse:
    """A table that the program reads: how it is looked up, and its columns by name."""

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
    """A property of every payment: where `when` is definitely true, the action is never, or always,
    one of `actions`. It decides nothing; see `engine/offline/prove`.
    """

    span: Span
    title: str | None
    when: Expression
    never: bool
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions in order; `otherwise` None leaves the decision to the account's configuration.

    `histories` are all aggregates over history in conditions and lets, each once, in the order in
    which their values are passed in. `lists`, `tables` and `lets` include what is read of
    definitions; a let comes after those it uses.
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
    """logit(score) = logit(baseline) + the sum of `adds` of all signals whose `when` is met."""

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
    """Raises an alert when `when` becomes true, once per `by` key and `every` µs."""

    id: int
    span: Span
    name: str
    title: str | None
    when: Expression
    by: tuple[Expression, ...]
    every: int | None


@dataclass(frozen=True, slots=True)
class EventLabel:
    """Labels the payment whose id is `payment` if `when` is definitely true; a `label` of None
    removes the one that an event of this type set before.
    """

    span: Span
    label: Literal["fraud", "legitimate", "unsure"] | None
    payment: Expression
    when: Expression


BUILT_IN_EVENT = "payment"
"""The event type whose monitors run on each payment after it is decided."""


@dataclass(frozen=True, slots=True)
class EventType:
    """Of `labels`, the first whose condition is met applies."""

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
