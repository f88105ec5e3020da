"""Traverse checked expressions, and move them to another program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar, get_args

from tollkeeper.grammar.program import (
    Definitions,
    EventType,
    Expression,
    Let,
    LetValue,
    Node,
    Program,
    Rule,
    Scorecard,
    Series,
)

_Part = TypeVar("_Part", bound=Node)


PARTS: Mapping[Any, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind) if field.name not in ("id", "span"))
    for kind in (*get_args(Expression), Series)
}


def _fields_of_parts(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields that hold expressions."""
    held = ("Expression", "Constant", "Series")
    return tuple(field.name for field in fields(kind) if any(h in str(field.type) for h in held))


def _reader(kind: Any) -> Callable[[Any], tuple[Expression, ...]]:
    """Return the function that reads the direct parts of expressions of a type."""
    names = _fields_of_parts(kind)
    types = {field.name: str(field.type) for field in fields(kind)}
    if not names:
        return lambda _: ()
    if any(types[name] != "Expression" for name in names):
        return lambda node: tuple(_parts_in(getattr(node, name) for name in names))
    if len(names) == 1:
        read = attrgetter(*names)
        return lambda node: (read(node),)
    return attrgetter(*names)


def _parts_in(values: Iterable[Any]) -> Iterator[Expression]:
    for value in values:
        if isinstance(value, tuple):
            yield from value
        elif isinstance(value, Series):
            yield from children(value)
        elif value is not None:
            yield value


_READERS = {kind: _reader(kind) for kind in PARTS}
_LEAVES = frozenset(kind for kind in PARTS if not _fields_of_parts(kind))


def resolve_let(node: Expression, lets: Sequence[Let]) -> Expression:
    """Return the expression itself, or the value of the let that it reads."""
    while isinstance(node, LetValue):
        node = lets[node.index].value
    return node


def children(node: Node | Series) -> tuple[Expression, ...]:
    """Return the direct parts of an expression, in the order of its fields."""
    return _READERS[type(node)](node)


def parts(node: Expression) -> Iterator[Expression]:
    """Yield the expression and everything in it; a let's value is not part of its use."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(children(part))


def compounds(node: Expression) -> Iterator[Expression]:
    """Yield those of `parts` that have parts themselves: a minority, as most are names and
    constants.
    """
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if type(part) not in _LEAVES:
            yield part
            waiting += children(part)


def statements(program: Program) -> Iterator[Expression]:
    """Yield the expressions of conditions, signals, metrics, monitors and labels."""
    match program:
        case Rule():
            yield from (each.when for each in program.conditions)
        case Scorecard():
            for signal in program.signals:
                yield signal.adds
                if signal.when is not None:
                    yield signal.when
        case EventType():
            yield from (each.history for each in program.metrics)
            yield from (each.when for each in program.monitors)
            yield from (each.when for each in program.labels)
            yield from (each.payment for each in program.labels)
        case Definitions():
            pass


def roots(program: Program) -> Iterator[tuple[Expression, bool]]:
    """Yield the expressions of statements and lets, and whether each is in the program's own text."""
    yield from ((each, True) for each in statements(program))
    yield from ((let.value, let.source is None) for let in program.lets)


def move_expression(part: _Part, ids: int, lets: tuple[int, ...]) -> _Part:
    """Move an expression to another program: ids grow by `ids`, let *i* becomes `lets[i]`."""

    def move(value: Any) -> Any:
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(map(move, value))
        if isinstance(value, LetValue):
            return replace(value, id=value.id + ids, index=lets[value.index])
        if isinstance(value, Node):
            own = {name: move(getattr(value, name)) for name in PARTS[type(value)]}
            return replace(value, id=value.id + ids, **own)
        if isinstance(value, Series):
            return replace(value, **{name: move(getattr(value, name)) for name in PARTS[Series]})
        return value

    result: _Part = move(part)
    return result
