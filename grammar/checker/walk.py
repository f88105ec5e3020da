"""Ways over checked expressions: their parts, and their move to another program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

from tollkeeper.grammar.program import (
    Definitions,
    EventType,
    Expression,
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


_INNER: Mapping[Any, tuple[str, ...]] = {
    kind: tuple(
        field.name
        for field in fields(kind)
        if any(held in str(field.type) for held in ("Expression", "Constant", "Series"))
    )
    for kind in PARTS
}
"""The fields that hold expressions."""


def children(node: Node | Series) -> Iterator[Expression]:
    """The direct parts of an expression, in the order of its fields."""
    for name in _INNER[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            yield from value
        elif isinstance(value, Series):
            yield from children(value)
        elif value is not None:
            yield value


def parts(node: Expression) -> Iterator[Expression]:
    """The expression and everything in it; what a let holds is not part of it."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(children(part))


def roots(program: Program) -> Iterator[tuple[Expression, bool]]:
    """The expressions of conditions, signals, monitors and lets, and whether the program's own text
    has them.
    """
    match program:
        case Rule():
            yield from ((each.when, True) for each in program.conditions)
        case Scorecard():
            for signal in program.signals:
                yield signal.adds, True
                if signal.when is not None:
                    yield signal.when, True
        case EventType():
            yield from ((each.history, True) for each in program.metrics)
            yield from ((each.when, True) for each in program.monitors)
            yield from ((each.when, True) for each in program.labels)
            yield from ((each.payment, True) for each in program.labels)
        case Definitions():
            pass
    yield from ((let.value, let.source is None) for let in program.lets)


def move_expression(part: _Part, ids: int, lets: tuple[int, ...]) -> _Part:
    """The expression in another program: ids grow by `ids`, let *i* becomes `lets[i]`."""

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
