"""The syntax tree: frozen nodes, each with its id and span.

Ids are unique in a file, in the order in which the parser makes the nodes; spans are half-open
character offsets into the text. Names are not resolved and types not checked here: the checker does
that (`program.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias


class Span(NamedTuple):
    """Half-open range of character offsets into a file's text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Node:
    id: int
    span: Span


@dataclass(frozen=True, slots=True)
class Identifier(Node):
    text: str


# Expressions


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A number as written, `10.00`; a sign is a `Negate` around it."""

    text: str


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A string literal with its escapes resolved."""

    value: str


@dataclass(frozen=True, slots=True)
class Boolean(Node):
    value: bool


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """A length of time as written, `24h`."""

    amount: int
    unit: Literal["ms", "s", "m", "h", "d"]


@dataclass(frozen=True, slots=True)
class Regex(Node):
    """`/pattern/` or `/pattern/i`, with `\\/` already resolved to `/`."""

    pattern: str
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare name: the first part of a path."""

    text: str


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`base.name`."""

    base: Expression
    name: Identifier


@dataclass(frozen=True, slots=True)
class Subscript(Node):
    """`base[key, …]`: a header, a metadata entry, a metric's keys, a table's key."""

    base: Expression
    keys: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ListName(Node):
    """`@name`: a list or table of the account."""

    name: str


@dataclass(frozen=True, slots=True)
class ListLiteral(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Two or more operands, in order."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class And(Node):
    """Two or more operands, in order."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Compare(Node):
    operator: Literal["==", "!=", "<", "<=", ">", ">="]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Between(Node):
    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Membership(Node):
    """`value in container`, or `not in` when `negated`."""

    value: Expression
    container: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class TextTest(Node):
    operator: Literal["contains", "starts with", "ends with"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Matches(Node):
    value: Expression
    regex: Expression


@dataclass(frozen=True, slots=True)
class Presence(Node):
    """`operand is missing` or `operand is present`."""

    operand: Expression
    state: Literal["missing", "present"]


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    operator: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Negate(Node):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`name([earlier] arguments [of records] [by keys] [over length] [half life length] [where
    filter])`.

    A function or an aggregate; `earlier` is the word itself.
    """

    name: Identifier
    arguments: tuple[Expression, ...]
    by: tuple[Expression, ...]
    over: Duration | None
    where: Expression | None
    earlier: Identifier | None
    of: Identifier | None
    half_life: Duration | None = None


Expression: TypeAlias = (
    Number
    | Text
    | Boolean
    | Duration
    | Regex
    | Name
    | Attribute
    | Subscript
    | ListName
    | ListLiteral
    | Or
    | And
    | Not
    | Compare
    | Between
    | Membership
    | TextTest
    | Matches
    | Presence
    | Arithmetic
    | Negate
    | Call
)


# Items of a declaration


@dataclass(frozen=True, slots=True)
class ValueType(Node):
    """The type of a list, a column or an event's field: a name, or a choice of strings."""

    name: Identifier | None
    choices: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Use(Node):
    name: Identifier


@dataclass(frozen=True, slots=True)
class ListDeclaration(Node):
    name: Identifier
    type: ValueType


@dataclass(frozen=True, slots=True)
class Column(Node):
    name: Identifier
    type: ValueType


@dataclass(frozen=True, slots=True)
class TableDeclaration(Node):
    """`by` is `value`, `prefix` or `network`; left out it is None and means by exact value."""

    name: Identifier
    by: Identifier | None
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Let(Node):
    name: Identifier
    value: Expression


@dataclass(frozen=True, slots=True)
class Condition(Node):
    name: Identifier
    title: Text | None
    when: Expression
    action: Identifier


@dataclass(frozen=True, slots=True)
class Must(Node):
    """`must ["name"] when EXPR never|always ACTION, …`."""

    title: Text | None
    when: Expression
    never: bool
    actions: tuple[Identifier, ...]


@dataclass(frozen=True, slots=True)
class Otherwise(Node):
    action: Identifier


@dataclass(frozen=True, slots=True)
class Baseline(Node):
    value: Expression


@dataclass(frozen=True, slots=True)
class CurveStep(Node):
    """`< BOUND: ADDS`, with the sign as it was written."""

    sign: str
    bound: Expression
    adds: Expression


@dataclass(frozen=True, slots=True)
class Curve(Node):
    """`curves EXPR [rising|falling] { < BOUND: ADDS, …, else ADDS[, missing: ADDS] }`."""

    value: Expression
    direction: Literal["rising", "falling"] | None
    steps: tuple[CurveStep, ...]
    beyond: Expression
    absent: Expression | None


@dataclass(frozen=True, slots=True)
class Signal(Node):
    """`adds` may be a curve only without a `when`."""

    name: Identifier
    title: Text | None
    adds: Expression | Curve
    when: Expression | None


@dataclass(frozen=True, slots=True)
class Field(Node):
    """A field of an event type."""

    name: Identifier
    type: ValueType
    required: bool


@dataclass(frozen=True, slots=True)
class Metric(Node):
    name: Identifier
    title: Text | None
    value: Expression


@dataclass(frozen=True, slots=True)
class Monitor(Node):
    """`monitor NAME ["title"] when EXPR [by KEY, …] [every 10m]`."""

    name: Identifier
    title: Text | None
    when: Expression
    by: tuple[Expression, ...]
    every: Duration | None


@dataclass(frozen=True, slots=True)
class LabelStatement(Node):
    """`label fraud of payment_id when EXPR`; `label` is a label's name, or `none`."""

    label: Identifier
    payment: Expression
    when: Expression


# Tests


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    """`target = value` in a `given`: a field, a let, `score`, `@list` or `@table[key].column`."""

    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class GivenValues(Node):
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class GivenFile(Node):
    """`given payment "p.json"`, `given history "h.json"`; the path is relative to the file."""

    kind: Literal["payment", "history", "event"]
    path: Text


@dataclass(frozen=True, slots=True)
class ExpectAction(Node):
    """`expect ACTION [by CONDITION]`; the action may be `default`."""

    action: Identifier
    by: Identifier | None


@dataclass(frozen=True, slots=True)
class ExpectAlert(Node):
    """`expect alert MONITOR`, or `expect no alert [MONITOR]` when `negated`."""

    monitor: Identifier | None
    negated: bool


@dataclass(frozen=True, slots=True)
class ExpectValue(Node):
    """`expect EXPR`, such as `score >= 0.8`, which must be definitely true."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Test(Node):
    title: Text
    given: tuple[GivenValues | GivenFile, ...]
    expect: tuple[ExpectAction | ExpectAlert | ExpectValue, ...]


Item: TypeAlias = (
    Use
    | ListDeclaration
    | TableDeclaration
    | Let
    | Condition
    | Must
    | Otherwise
    | Baseline
    | Signal
    | Field
    | Metric
    | Monitor
    | LabelStatement
    | Test
)


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """`# …` to the end of its line, without the mark."""

    text: str


@dataclass(frozen=True, slots=True)
class File(Node):
    """One file: its declaration, its items in order, its comments."""

    kind: Literal["rule", "scorecard", "event", "definitions"]
    name: Identifier
    title: Text | None
    items: tuple[Item, ...]
    comments: tuple[Comment, ...]
