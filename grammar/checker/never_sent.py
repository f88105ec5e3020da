"""Warn of comparisons with texts and addresses that a field's rules refuse, so that they never
occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.diagnostics import Diagnostic, Fix
from tollkeeper.grammar.fixes import replacing
from tollkeeper.grammar.vocabulary import Field
from tollkeeper.grammar.walk import resolve_let


def never_sent(
    work: Work, inner: Iterable[p.Expression], lets: Sequence[p.Let]
) -> Iterator[Diagnostic]:
    """Return the warnings of comparisons among the parts of an expression."""
    for part in inner:
        match part:
            case p.Compare(operator="==" | "!=", left=left, right=p.Constant() as right):
                yield from _of_value(work, part, resolve_let(left, lets), right)
            case p.Compare(operator="==" | "!=", left=p.Constant() as left, right=right):
                yield from _of_value(work, part, resolve_let(right, lets), left)
            case p.OneOf(value=value, options=options):
                for option in options:
                    yield from _of_value(work, part, resolve_let(value, lets), option)
            case p.TextTest(left=left, right=p.Constant() as right):
                yield from _of_cased(resolve_let(left, lets), right)
            case p.InNetworks(value=value, networks=networks):
                yield from _of_networks(work, part, resolve_let(value, lets), networks)
            case _:
                pass


def _field_of(work: Work, node: p.Expression) -> Field | None:
    match node:
        case p.Fact():
            return work.vocabulary.payment.get(".".join(node.path))
        case p.ElementFact():
            return work.vocabulary.transaction.get(".".join(node.path))
        case _:
            return None


def _of_value(
    work: Work, part: p.Expression, value: p.Expression, literal: p.Constant
) -> Iterator[Diagnostic]:
    field = _field_of(work, value)
    refusal = None if field is None or field.refuses is None else field.refuses(literal.value)
    if field is not None and refusal is not None:
        yield say.never_sent(
            literal.span, ".".join(field.path), refusal, *_prefix_fix(work, part, literal)
        )
    yield from _of_cased(value, literal)


def _prefix_fix(work: Work, part: p.Expression, literal: p.Constant) -> Iterator[Fix]:
    """The fix for a few digits that were probably meant as a prefix."""
    if not isinstance(part, p.Compare) or part.operator != "==" or part.left is literal:
        return
    if isinstance(literal.value, str) and literal.value.isdecimal() and len(literal.value) < 8:
        written = f"{work.text(part.left.span)} starts with {work.text(literal.span)}"
        yield replacing(part.span, written)


def _of_cased(value: p.Expression, literal: p.Constant) -> Iterator[Diagnostic]:
    """Warn of texts that functions never return: `lower`, `upper` and `email_domain` return one
    case, a domain has no `@`, and `left` shortens.
    """
    if not isinstance(value, p.Call) or not isinstance(literal.type, t.String):
        return
    text = str(literal.value)
    match value.function:
        case "lower":
            meant = _by_character(str.lower, text)
        case "upper":
            meant = _by_character(str.upper, text)
        case "left":
            meant = text[: _length(value)]
        case "email_domain":
            meant = _by_character(str.lower, text).rpartition("@")[2]
        case _:
            return
    if meant != text:
        yield say.never_given(literal.span, value.function, meant)


def _by_character(case: Callable[[str], str], text: str) -> str:
    """The text as `lower` and `upper` give it: no character becomes two, none goes by its neighbours."""
    return "".join(one if len(one := case(character)) == 1 else character for character in text)


def _length(left: p.Call) -> int:
    length = left.arguments[1]
    assert isinstance(length, p.Constant)
    return int(length.value)


def _of_networks(
    work: Work, part: p.InNetworks, value: p.Expression, networks: tuple[tuple[int, int], ...]
) -> Iterator[Diagnostic]:
    field = _field_of(work, value)
    if field is None or field.refuses is None:
        return
    ends = [(first, first + (1 << (128 - bits)) - 1) for first, bits in networks]
    refusals = {field.refuses(end) for each in ends for end in each}
    if None not in refusals:
        yield say.never_sent(part.span, ".".join(field.path), str(refusals.pop()))
