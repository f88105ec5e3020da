"""Warn of amounts that are compared or added up without regard to their currency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.walk import children, resolve_let

_AMOUNT = ("amount",)
_CURRENCY = ("currency",)
_SUMMING = ("sum", "decay", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class Money:
    """What a let does with money, directly or through the lets it uses."""

    is_amount: bool
    is_number: bool
    compares: bool
    reads_currency: bool


def of_lets(lets: Sequence[p.Let]) -> tuple[Money, ...]:
    """Find this for each let; a let uses only those above it."""
    found: list[Money] = []
    for let in lets:
        place, reads_currency = _read(let.value, found)
        is_amount = _is_amount(let.value, found)
        found.append(
            Money(is_amount, _is_number(let.value, found), place is not None, reads_currency)
        )
    return tuple(found)


def compared_amounts(
    conditions: Iterable[p.Expression], lets: Sequence[Money], program: p.Program
) -> Iterator[Diagnostic]:
    """Warn of conditions that compare an amount with a number and don't read the currency.

    A comparison in a let counts where the condition names the let. A rule's condition that is met
    by all but some currencies guards the conditions after it.
    """
    for root in conditions:
        place, reads_currency = _read(root, lets)
        if place is not None and not reads_currency:
            yield say.no_currency(place)
        if isinstance(program, p.Rule) and _leaves_some(root, program.lets):
            return


def _leaves_some(root: p.Expression, lets: Sequence[p.Let]) -> bool:
    """Whether a condition is met whenever the currency is not one of some."""
    waiting, followed = [root], set[int]()
    while waiting:
        match waiting.pop():
            case p.LetValue(index=index):
                # Follow each let once: lets that use the one before twice would double the work
                # each time.
                if index not in followed:
                    followed.add(index)
                    waiting.append(lets[index].value)
            case p.Or(operands=operands):
                waiting.extend(operands)
            case (
                p.Compare(operator="!=", left=p.Fact(path=path), right=p.Constant())
                | p.OneOf(value=p.Fact(path=path), negated=True)
            ):
                if path == _CURRENCY:
                    return True
            case p.Not(operand=operand):
                if _is_of_some(operand, lets):
                    return True
    return False


def _is_of_some(root: p.Expression, lets: Sequence[p.Let]) -> bool:
    """Whether an expression is true exactly for some currencies."""
    match resolve_let(root, lets):
        case p.Compare(operator="==", left=p.Fact(path=path), right=p.Constant()):
            return path == _CURRENCY
        case p.OneOf(value=p.Fact(path=path), negated=False):
            return path == _CURRENCY
        case _:
            return False


def _read(root: p.Expression, lets: Sequence[Money]) -> tuple[Span | None, bool]:
    """Return the first place that compares an amount with a number, and whether the currency is
    read.
    """
    place: Span | None = None
    reads_currency = False
    waiting = [root]
    while waiting:
        part = waiting.pop()
        of_let = lets[part.index] if isinstance(part, p.LetValue) else None
        if (isinstance(part, p.Fact) and part.path == _CURRENCY) or (
            of_let is not None and of_let.reads_currency
        ):
            reads_currency = True
        if (of_let is not None and of_let.compares) or _compares_amount(part, lets):
            place = min(place or part.span, part.span)
        if not isinstance(part, p.History):
            waiting.extend(children(part))
    return place, reads_currency


def summed_amounts(inner: Iterable[p.Expression], lets: Sequence[Money]) -> Iterator[Diagnostic]:
    """Warn of aggregates over amounts that mix currencies, among the parts of an expression."""
    for part in inner:
        if isinstance(part, p.History) and part.function in _SUMMING:
            series = part.series
            read = [*series.by, *([series.where] if series.where is not None else [])]
            if _is_amount(series.value, lets) and not any(_read(each, lets)[1] for each in read):
                yield say.mixed_currencies(part.span, part.function, series.by[-1].span)


def _compares_amount(part: p.Expression, lets: Sequence[Money]) -> bool:
    match part:
        case p.Compare(left=left, right=right):
            pair = (left, right)
        case p.Between(value=value, low=low):
            pair = (value, low)
        case p.OneOf(value=value, options=options):
            pair = (value, options[0])
        case p.Curve(value=value, bounds=bounds) if bounds:
            pair = (value, bounds[-1])
        case _:
            return False
    amounts = [_is_amount(each, lets) for each in pair]
    return amounts.count(True) == 1 and any(_is_number(each, lets) for each in pair)


def _is_amount(node: p.Expression | None, lets: Sequence[Money]) -> bool:
    """Whether a value is an amount of money in the payment's own currency."""
    match node:
        case p.Fact():
            return node.path == _AMOUNT
        case p.History(function="sum" | "avg" | "min" | "max" | "decay", series=series):
            return _is_amount(series.value, lets) and any(_read(by, lets)[1] for by in series.by)
        case p.LetValue():
            return lets[node.index].is_amount
        case p.Arithmetic(operator="+" | "-" | "*"):
            return _is_amount(node.left, lets) or _is_amount(node.right, lets)
        case p.Negate():
            return _is_amount(node.operand, lets)
        case p.Call(function="abs" | "round" | "min" | "max" | "coalesce"):
            return any(_is_amount(argument, lets) for argument in node.arguments)
        case _:
            return False


def _is_number(node: p.Expression, lets: Sequence[Money]) -> bool:
    """Whether a value is a literal number other than 0; 0 is the same in any currency."""
    if isinstance(node, p.LetValue):
        return lets[node.index].is_number
    return isinstance(node, p.Constant) and node.value != 0
