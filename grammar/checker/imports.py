"""Import lets of definitions, and the series behind a metric, into a program."""

from __future__ import annotations

from collections.abc import Iterator

from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.walk import move_expression, parts


def take_let(work: Work, lets: tuple[p.Let, ...], index: int, source: str) -> int:
    """Import a let of another file, with the lets it uses; returns its index in this program.

    A let uses only those above it, so importing them in order is enough.
    """
    wanted = sorted(_reachable_lets(lets, index))
    for each in wanted:
        if (source, each) in work.imported:
            continue
        let = lets[each]
        renumbered = tuple(work.imported.get((source, i), -1) for i in range(each))
        value = move_expression(let.value, work.next_id, renumbered)
        work.next_id += 1 + max(part.id for part in parts(let.value))
        work.names_read.update(_lists_in(let.value))
        work.imported[source, each] = work.add_let(
            p.Let(let.name, let.span, value, let.source or source)
        )
    return work.imported[source, index]


def series_of(work: Work, event: p.EventType, metric: p.Metric) -> p.Series:
    """Return a metric's series with its lets replaced by this program's."""
    source = f"{p.OF_EVENT}{event.name}"
    history = metric.history
    inner = [part.index for part in parts(history) if isinstance(part, p.LetValue)]
    for index in inner:
        take_let(work, event.lets, index, source)
    renumbered = tuple(work.imported.get((source, i), -1) for i in range(len(event.lets)))
    ids = work.next_id
    work.next_id += 1 + max(part.id for part in parts(history))
    return move_expression(history, ids, renumbered).series


def _lists_in(value: p.Expression) -> Iterator[str]:
    for part in parts(value):
        if isinstance(part, p.InList):
            yield f"@{part.list}"
        elif isinstance(part, p.TableValue):
            yield f"@{part.table}"


def _reachable_lets(lets: tuple[p.Let, ...], index: int) -> set[int]:
    found: set[int] = set()
    waiting = [index]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(
                part.index for part in parts(lets[each].value) if isinstance(part, p.LetValue)
            )
    return found
