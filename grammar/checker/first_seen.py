"""Warn of `age`, `interval` and `since` of a key that is seen for the first time, or is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.missing import Missing
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.walk import children, resolve_let

_SINCE = ("age", "interval", "since")
FIRST_SEEN = (*_SINCE, "first")
"""The functions of a key's first or last record; conditions without one need no check."""


def first_seen(
    work: Work, root: p.Expression, lets: Sequence[p.Let], missing: Missing, numbers: Numbers
) -> Iterator[Diagnostic]:
    """Return the warnings of a condition.

    In `or` and `and`, a test for the first record guards the other operands. Beside a count in an
    `and`, a small age isn't reported: the count requires several records.
    """
    waiting: list[tuple[p.Expression, frozenset[int]]] = [(root, frozenset())]
    while waiting:
        node, guarded = waiting.pop()
        if isinstance(node, p.Or | p.And):
            guarded |= {
                numbers.of(history.series)
                for operand in node.operands
                if (history := _asks_of_the_first(operand, lets)) is not None
            }
        if isinstance(node, p.And) and _counts(node.operands, lets):
            waiting.extend((each, guarded) for each in node.operands if not _is_young(each, lets))
            continue
        match node:
            case p.Presence(state="missing", operand=operand):
                history = _age(operand, lets)
                key = None if history is None else _missing_key(history, missing)
                if history is not None and key is not None and operand is history:
                    first = _as_first(work.text(history.span))
                    if first is not None:
                        yield say.missing_without_key(
                            node.span, history.function, work.text(key.span), first
                        )
            case p.Compare(operator="<" | "<=", left=left, right=right) if not isinstance(
                right, p.History
            ):
                history = _age(left, lets)
                if (
                    history is not None
                    and _is_young(node, lets)
                    and numbers.of(history.series) not in guarded
                ):
                    yield _young(work, node, history, is_written=left is history)
            case _:
                pass
        waiting.extend((child, guarded) for child in children(node))


def _young(work: Work, node: p.Compare, history: p.History, *, is_written: bool) -> Diagnostic:
    first = _as_first(work.text(history.span)) if is_written else None
    return say.young_but_not_first(node.span, first, work.text(Span(*node.span)))


def _as_first(written: str) -> str | None:
    """The aggregate as `first(…)`; None for a metric of an event type, which is read by its name."""
    while written.startswith("("):
        written = written[1:-1].strip()
    rest = written.partition("(")[2]
    return f"first({rest}" if rest.endswith(")") else None


def _age(node: p.Expression, lets: Sequence[p.Let]) -> p.History | None:
    node = resolve_let(node, lets)
    is_age = isinstance(node, p.History) and node.function in _SINCE
    return node if is_age else None  # type: ignore[return-value]


def _is_young(node: p.Expression, lets: Sequence[p.Let]) -> bool:
    """Whether a test requires that a key was first seen recently."""
    if not isinstance(node, p.Compare) or node.operator not in ("<", "<="):
        return False
    history = _age(node.left, lets)
    return history is not None and history.function == "age"


def _counts(operands: Sequence[p.Expression], lets: Sequence[p.Let]) -> bool:
    """Whether one of the tests reads an aggregate over a window."""
    waiting = list(operands)
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, p.LetValue):
            if part.index not in seen:
                seen.add(part.index)
                waiting.append(lets[part.index].value)
        elif isinstance(part, p.History) and part.over is not None:
            return True
        else:
            waiting.extend(children(part))
    return False


def _asks_of_the_first(node: p.Expression, lets: Sequence[p.Let]) -> p.History | None:
    """Return the aggregate if a test distinguishes its first record from later ones."""
    node = resolve_let(node, lets)
    match node:
        case p.Not():
            return _asks_of_the_first(node.operand, lets)
        case p.Presence():
            return _age(node.operand, lets)
        case p.History(function="first"):
            return node
        case _:
            return None


def _missing_key(history: p.History, missing: Missing) -> p.Expression | None:
    found = (missing.first(key, frozenset()) for key in history.keys)
    return next((each for each in found if each is not None), None)
