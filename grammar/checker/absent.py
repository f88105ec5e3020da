"""Conditions that need a field's value and also require that it is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.needed_fields import NeededFields, path_of
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.walk import resolve_let


def absent(
    work: Work, inner: Iterable[p.Expression], lets: Sequence[p.Let], needed: NeededFields
) -> Iterator[Diagnostic]:
    """Warn of each `and` with an operand that says a field is missing and another that needs it."""
    for part in inner:
        if not isinstance(part, p.And):
            continue
        missing_paths = {path for each in part.operands if (path := _missing_path(each, lets))}
        for operand in part.operands:
            for fact in needed.of(operand) if missing_paths else ():
                path = path_of(fact)
                missing_path = next(
                    (each for each in missing_paths if path[: len(each)] == each), None
                )
                if missing_path is not None:
                    yield say.absent(operand.span, ".".join(missing_path), work.text(fact.span))
                    break


def _missing_path(node: p.Expression, lets: Sequence[p.Let]) -> tuple[str, ...] | None:
    match resolve_let(node, lets):
        case p.Presence(operand=p.Fact(path=path), state="missing"):
            return path
        case _:
            return None
