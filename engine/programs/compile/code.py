"""Pieces of generated Python, built as `ast`: values that may be missing, and the tests they need.

A piece is used only once in the generated function, unless it is a name or a constant.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

GENERATED = "<rule>"
"""The file name of generated functions, as tracebacks show it."""
NONE_NODE = ast.Constant(None)
TRUE = ast.Constant(True)
FALSE = ast.Constant(False)

_OPERATORS: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
    "in": ast.In,
    "not in": ast.NotIn,
    "is": ast.Is,
    "is not": ast.IsNot,
}
_ARITHMETIC: dict[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    ">>": ast.RShift,
}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True, slots=True)
class Code:
    """A value: `result` holds it when every test of `needs`, in this order, is true.

    `needs` may bind names that `result` uses. `optional`: the result itself may be None.
    """

    result: ast.expr
    needs: tuple[ast.expr, ...] = ()
    optional: bool = False

    def test(self) -> ast.expr:
        """For a boolean: truthy where it is definitely true."""
        return both((*self.needs, self.result))

    def expression(self) -> ast.expr:
        """The value or None."""
        if not self.needs:
            return self.result
        return ast.IfExp(both(self.needs), self.result, NONE_NODE)


def name(identifier: str) -> ast.Name:
    return ast.Name(identifier, ast.Load())


def constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


def attribute(value: ast.expr, identifier: str) -> ast.expr:
    return ast.Attribute(value, identifier, ast.Load())


def item(value: ast.expr, index: int) -> ast.expr:
    return ast.Subscript(value, constant(index), ast.Load())


def tuple_of(values: Iterable[Code]) -> ast.expr:
    """The values in a tuple, None for those that are missing."""
    return ast.Tuple([each.expression() for each in values], ast.Load())


def call(function: str | ast.expr, *arguments: ast.expr) -> ast.expr:
    called = name(function) if isinstance(function, str) else function
    return ast.Call(called, list(arguments), [])


def compare_code(operator: str, left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.Compare(left, [_OPERATORS[operator]()], [right])


def between_code(low: ast.expr, value: ast.expr, high: ast.expr) -> ast.expr:
    return ast.Compare(low, [ast.LtE(), ast.LtE()], [value, high])


def inside(low: ast.expr, value: ast.expr, high: ast.expr) -> ast.expr:
    return ast.Compare(low, [ast.Lt(), ast.Lt()], [value, high])


def binary(operator: str, left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, _ARITHMETIC[operator](), right)


def either_value(test: ast.expr, then: ast.expr, otherwise: ast.expr) -> ast.expr:
    return ast.IfExp(test, then, otherwise)


def bind(identifier: str, value: ast.expr) -> ast.expr:
    """An expression that gives the value a name and has the value."""
    return ast.NamedExpr(ast.Name(identifier, ast.Store()), value)


def is_there(value: ast.expr) -> ast.expr:
    return compare_code("is not", value, NONE_NODE)


def both(tests: Iterable[ast.expr]) -> ast.expr:
    """Truthy where all the tests are."""
    return _join_tests(ast.And(), tests, TRUE)


def either(tests: Iterable[ast.expr]) -> ast.expr:
    """Truthy where one of the tests is."""
    return _join_tests(ast.Or(), tests, FALSE)


def _join_tests(operator: ast.boolop, tests: Iterable[ast.expr], empty: ast.expr) -> ast.expr:
    flat: list[ast.expr] = []
    known: set[str] = set()
    for test in tests:
        same = isinstance(test, ast.BoolOp) and type(test.op) is type(operator)
        for part in test.values if same and isinstance(test, ast.BoolOp) else (test,):
            name_there = _name_that_is_there(part)
            if name_there is None or name_there not in known or isinstance(operator, ast.Or):
                flat.append(part)
            known.add(name_there or "")
    if not flat:
        return empty
    return flat[0] if len(flat) == 1 else ast.BoolOp(operator, flat)


def _name_that_is_there(test: ast.expr) -> str | None:
    """The name that the test checks for not being None; a name's value never changes."""
    match test:
        case ast.Compare(left=ast.Name(id=identifier), ops=[ast.IsNot()]):
            return identifier
        case ast.Compare(left=ast.NamedExpr(target=ast.Name(id=identifier)), ops=[ast.IsNot()]):
            return identifier
        case _:
            return None


def opposite(test: ast.expr) -> ast.expr:
    """True where a two-valued test is false."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def assign(identifier: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(identifier, ast.Store())], value)


def assign_name(memo: str, slot: int) -> ast.expr:
    return ast.Subscript(name(memo), constant(slot), ast.Store())


def when(test: ast.expr, then: Sequence[ast.stmt]) -> ast.stmt:
    return ast.If(test, list(then), [])


def function(identifier: str, parameters: Sequence[str], body: Sequence[ast.stmt]) -> ast.stmt:
    arguments = ast.arguments([], [ast.arg(each) for each in parameters], None, [], [], None, [])
    # Python 3.12 requires type parameters here, and 3.11 does not have them.
    later: dict[str, Any] = {"type_params": []}
    return ast.FunctionDef(identifier, arguments, list(body), [], **later)


_NODES = frozenset(
    each
    for each in vars(ast).values()
    if isinstance(each, type) and issubclass(each, ast.expr | ast.stmt | ast.arguments)
)
"""The types of nodes that can be a part of another, with parts that have a place: no operators."""


def define(functions: Sequence[ast.stmt], entry: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Compile generated functions and return `entry`; they see only `names`."""
    module = ast.Module(list(functions), [])
    # Without recursion, unlike ast.fix_missing_locations, and quicker than ast.walk.
    waiting: list[ast.AST] = [module]
    while waiting:
        members = vars(waiting.pop())
        for part in members.values():
            kind = type(part)
            if kind is list:
                waiting += part
            elif kind in _NODES:
                waiting.append(part)
        # A node without a place ignores them.
        members["lineno"] = 1
        members["col_offset"] = 0
    space: dict[str, Any] = {"__builtins__": {}, **names}
    exec(compile(module, GENERATED, "exec"), space)  # noqa: S102  # built above, never from text
    made: Callable[..., Any] = space[entry]
    return made
