"""The lists and rates that a program needs; without them it runs, but not as its author meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from tollkeeper.engine.lists.contents import Contents
from tollkeeper.engine.programs.active import ActivePrograms
from tollkeeper.grammar import program as p
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.walk import parts, roots


class AccountNeed(NamedTuple):
    """A list or table that needs entries, or a currency that needs a rate to it.

    `span` is where the text first names it; the beginning of the text, if only its definitions do.
    """

    what: Literal["list", "rate"]
    name: str
    span: Span


def needs_of_program(program: p.Program) -> tuple[AccountNeed, ...]:
    """The lists and rates that a program needs."""
    found: dict[tuple[str, str], AccountNeed] = {}
    for root, is_own in roots(program):
        for part in parts(root):
            for what, name in _needs(part):
                span = part.span if is_own else Span(0, 0)
                found.setdefault((what, name), AccountNeed(what, name, span))
    return tuple(found.values())


def unmet_needs(needs: Iterable[AccountNeed], active: ActivePrograms) -> tuple[Diagnostic, ...]:
    """A warning for each list without entries and each currency that no rate leads to."""
    # A list that publishing makes is as empty as one that is there without entries.
    filled = {name for name, held in active.contents.items() if not _is_empty(held)}
    priced = {to for _, to in active.environment.rates}
    found = []
    for need in sorted(needs, key=lambda each: each.span):
        if need.what == "list" and need.name not in filled:
            found.append(_empty_list(need.span, need.name))
        elif need.what == "rate" and need.name not in priced:
            found.append(_no_rates(need.span, need.name))
    return tuple(found)


def _needs(part: p.Expression) -> Iterator[tuple[Literal["list", "rate"], str]]:
    match part:
        case p.InList(list=name) | p.TableValue(table=name):
            yield "list", name
        case p.Call(function="amount_in", arguments=(p.Constant(value=str(currency)),)):
            yield "rate", currency
        case _:
            pass


def _is_empty(held: Contents) -> bool:
    return not any(entry for layer in held.index.held.layers for entry in layer.values())


def _empty_list(span: Span, name: str) -> Diagnostic:
    message = f"`@{name}` has no entries yet, so that nothing is found in it"
    return Diagnostic("empty-list", "warning", span, message, f"`toll lists add {name} …`")


def _no_rates(span: Span, currency: str) -> Diagnostic:
    message = f"the account has no rate to {currency}: amounts in other currencies are missing here"
    help_ = f"`toll accounts set ACCOUNT rates.EUR.{currency}=…`, for each currency that you take"
    return Diagnostic("no-rates", "warning", span, message, help_)
