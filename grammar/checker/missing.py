"""Values that can be missing under `not`: then neither the `not` nor what it negates is met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.checker.walk import children
from tollkeeper.grammar.vocabulary import Vocabulary

_MAYBE_NOTHING = ("number", "email_local", "email_domain", "amount_in")


@dataclass(slots=True)
class Missing:
    """Finds what can be missing; `lets` are answered once, in the order written.

    So is each part: what is known to be there depends on nothing but where the part stands.
    """

    vocabulary: Vocabulary
    lets: Sequence[p.Let]
    numbers: Numbers
    of_lets: list[p.Expression | None] = field(default_factory=list)
    _of_parts: dict[int, p.Expression | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for let in self.lets:
            self.of_lets.append(self.first(let.value, frozenset()))

    def negations(
        self, node: p.Expression, there: frozenset[int] = frozenset()
    ) -> Iterator[tuple[p.Not, p.Expression]]:
        """Each `not` with the first value in it that can be missing; `there` are known not to be."""
        match node:
            case p.Not():
                found = self.first(node.operand, there)
                if found is not None:
                    yield node, found
                    return
            case p.And():
                there |= self._asked(node.operands, "present")
            case p.Or():
                there |= self._asked(node.operands, "missing")
            case _:
                pass
        for child in children(node):
            yield from self.negations(child, there)

    def first(self, node: p.Expression, there: frozenset[int]) -> p.Expression | None:
        """The first value that makes the expression missing by being so, if one can."""
        if there and self.numbers.of(node) in there:
            return None
        if id(node) not in self._of_parts:
            self._of_parts[id(node)] = self._first(node, there)
        return self._of_parts[id(node)]

    def _first(self, node: p.Expression, there: frozenset[int]) -> p.Expression | None:
        match node:
            case p.Constant() | p.Score() | p.Presence():
                return None
            case p.Fact():
                known = self.vocabulary.payment.get(".".join(node.path))
                return None if known is not None and known.required else node
            case p.ElementFact():
                known = self.vocabulary.transaction.get(".".join(node.path))
                return None if known is not None and known.required else node
            case p.LetValue():
                return None if self.of_lets[node.index] is None else node
            case p.Or():
                return self._any_of(node.operands, there | self._asked(node.operands, "missing"))
            case p.And():
                return self._any_of(node.operands, there | self._asked(node.operands, "present"))
            case p.Arithmetic(operator="/") if not isinstance(node.right, p.Constant):
                return self._any_of((node.left, node.right), there) or node
            case p.Call(function="coalesce"):
                missing = [self.first(argument, there) for argument in node.arguments]
                return None if None in missing else node
            case p.Call() if node.function in _MAYBE_NOTHING:
                return self._any_of(node.arguments, there) or node
            case p.Fold():
                return _of_aggregate(node, node.where, node.function)
            case p.History():
                found = self._any_of(node.keys, there)
                return found or _of_aggregate(node, node.series.where, node.function)
            case p.HeaderFact() | p.MetadataFact() | p.DecisionFact() | p.EventFact():
                return node
            case p.TableValue():
                return node
            case _:
                return self._any_of(tuple(children(node)), there)

    def _any_of(self, nodes: Sequence[p.Expression], there: frozenset[int]) -> p.Expression | None:
        return next((found for node in nodes if (found := self.first(node, there))), None)

    def _asked(self, operands: Sequence[p.Expression], state: str) -> frozenset[int]:
        """The values that one of the operands asks the presence of."""
        return frozenset(
            self.numbers.of(operand.operand)
            for operand in operands
            if isinstance(operand, p.Presence) and operand.state == state
        )


def _of_aggregate(
    node: p.Expression, where: p.Expression | None, function: str
) -> p.Expression | None:
    """Counts and sums are always there; of no records, the others are missing."""
    if function in ("count", "distinct", "sum", "first"):
        return None
    return node if where is not None or function not in ("any", "all") else None
