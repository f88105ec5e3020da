"""Check arithmetic on numbers, instants and durations (docs/language.md, "Types and missing
values").
"""

from __future__ import annotations

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import ranges
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.words import kind_of


def arithmetic(
    work: Work, node: s.Arithmetic, left: p.Expression | None, right: p.Expression | None
) -> p.Expression | None:
    """Check a sum, difference, product or quotient."""
    if left is None or right is None:
        return None
    if isinstance(left.type, t.Number) and isinstance(right.type, t.Number):
        number = _number(node, left.type, right.type)
        if number is None:
            work.report(say.too_many_decimals(node.span))
            return None
        return p.Arithmetic(node.id, node.span, number, node.operator, left, right)
    result = _time(node.operator, left.type, right.type)
    if result is None:
        work.report(
            say.bad_operands(node.span, node.operator, kind_of(left.type), kind_of(right.type))
        )
        return None
    return p.Arithmetic(node.id, node.span, result, node.operator, left, right)


def negate(work: Work, node: s.Negate, operand: p.Expression | None) -> p.Expression | None:
    """Check a negative sign."""
    match operand:
        case None:
            return None
        case _ if isinstance(operand.type, t.Number):
            return p.Negate(node.id, node.span, ranges.opposite(operand.type), operand)
        case _ if isinstance(operand.type, t.Duration):
            return p.Negate(node.id, node.span, operand.type, operand)
        case _:
            work.report(say.bad_operand(node.span, kind_of(operand.type)))
            return None


def _number(node: s.Arithmetic, left: t.Number, right: t.Number) -> t.Number | None:
    match node.operator:
        case "+":
            return ranges.total(left, right)
        case "-":
            return ranges.total(left, ranges.opposite(right))
        case "*":
            return ranges.product(left, right)
        case "/":
            return t.Number(None)


def _time(operator: str, left: t.Type, right: t.Type) -> t.Type | None:
    match operator, left, right:
        case "-", t.Instant(), t.Instant():
            return t.Duration()
        case (("+" | "-"), t.Instant(), t.Duration()):
            return t.Instant()
        case "+", t.Duration(), t.Instant():
            return t.Instant()
        case (("+" | "-"), t.Duration(), t.Duration()):
            return t.Duration()
        case ("*", t.Duration(), t.Number()) | ("*", t.Number(), t.Duration()):
            return t.Duration()
        case "/", t.Duration(), t.Duration():
            return t.Number(None)
        case _:
            return None
