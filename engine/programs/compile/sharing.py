"""Choose the parts of a program that are computed once and kept: those used in several places.

A let counts as used where it is read, so a let that is read twice is treated like an expression
that is written twice. Cheap parts are computed again; a part that would nest the generated Python
too deeply is kept as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.grammar import program as p
from tollkeeper.grammar.walk import children, parts, resolve_let

CHEAP = 6
"""Parts of less weight are computed again."""
_COSTLY = 10
_DEEP = 64
_MOST_WEIGHT = 1000


@dataclass(frozen=True, slots=True)
class SharedPart:
    """A part to keep; `depth` is how deeply kept parts are nested in it."""

    node: p.Expression
    depth: int


def operands(node: p.Expression) -> Iterator[p.Expression]:
    """The parts that are computed with `node`; of an aggregate only those that read no element."""
    if isinstance(node, p.History):
        return
    if isinstance(node, p.Fold):
        for part in children(node):
            yield from same_for_all(part)
    else:
        yield from children(node)


def same_for_all(node: p.Expression) -> Iterator[p.Expression]:
    """The largest parts that have one value for all elements that `node` is computed for."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if not any(isinstance(each, p.ElementFact) for each in parts(part)):
            yield part
        else:
            waiting.extend(children(part))


def leading(node: p.Expression, lets: Sequence[p.Let]) -> Iterator[p.Expression]:
    """`node`, and the parts that are computed whenever it is: its first operand, and so on."""
    first: p.Expression | None = node
    while first is not None:
        first = resolve_let(first, lets)
        yield first
        inner = () if isinstance(first, p.Fold) else operands(first)
        first = next((each for each in inner if not isinstance(each, p.Constant)), None)


def kept_parts(
    roots: Iterable[p.Expression], lets: Sequence[p.Let], digests: Digests
) -> dict[str, SharedPart]:
    """The parts to keep, by digest, inner ones before outer ones."""
    uses: Counter[str] = Counter()
    found: dict[str, p.Expression] = {}
    waiting = list(roots)
    while waiting:
        node = resolve_let(waiting.pop(), lets)
        digest = digests.of(node)
        uses[digest] += 1
        if uses[digest] == 1:
            found[digest] = node
            waiting.extend(operands(node))
            if isinstance(node, p.Fold):
                # Evaluated again for each transaction.
                waiting.extend(operands(node))
    return _parts_to_keep(found, uses, lets, digests)


def _parts_to_keep(
    found: dict[str, p.Expression], uses: Counter[str], lets: Sequence[p.Let], digests: Digests
) -> dict[str, SharedPart]:
    weights: dict[str, int] = {}
    heights: dict[str, int] = {}
    calls: dict[str, int] = {}
    kept: dict[str, SharedPart] = {}

    def measure(node: p.Expression) -> str:
        node = resolve_let(node, lets)
        digest = digests.of(node)
        if digest in weights or digest not in found:
            return digest
        inner = [measure(each) for each in operands(node)]
        weight = _own_weight(node) + sum(weights[each] for each in inner)
        weights[digest] = min(weight, _MOST_WEIGHT)
        heights[digest] = 1 + max((heights[each] for each in inner), default=0)
        calls[digest] = max((calls[each] for each in inner), default=0)
        is_repeated = uses[digest] > 1 and weights[digest] >= CHEAP
        if is_repeated or heights[digest] > _DEEP:
            calls[digest] += 1
            kept[digest] = SharedPart(node, calls[digest])
            heights[digest] = 0
        return digest

    # Lets in their order first, so that the recursion never goes deeper than one let.
    for let in lets:
        measure(let.value)
    for node in found.values():
        measure(node)
    return kept


def _own_weight(node: p.Expression) -> int:
    costly = (
        p.Call,
        p.Fold,
        p.Matches,
        p.InList,
        p.InEntry,
        p.EntryCount,
        p.TableValue,
        p.HeaderFact,
        p.TextTest,
    )
    if isinstance(node, costly):
        return _COSTLY
    if isinstance(node, p.MetadataFact):
        return CHEAP
    return 1
