"""Warn of values that can be missing under `not`: then neither the `not` nor its operand is met."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.needed_fields import NeededFields
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.vocabulary import Vocabulary, is_always_there
from tollkeeper.grammar.walk import children

_MAYBE_NOTHING = ("number", "email_local", "email_domain", "amount_in")


@dataclass(slots=True)
class Missing:
    """Finds values that can be missing.

    Results are cached for each let and each part: which values are known to be present depends only
    on where a part stands.
    """

    vocabulary: Vocabulary
    lets: Sequence[p.Let]
    numbers: Numbers
    needed: NeededFields = field(init=False)
    of_lets: list[p.Expression | None] = field(default_factory=list)
    _of_parts: dict[int, p.Expression | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.needed = NeededFields(self.lets)
        for let in self.lets:
            self.of_lets.append(self.first(let.value, frozenset()))

    def negations(
        self, node: p.Expression, present: frozenset[Hashable] = frozenset()
    ) -> Iterator[tuple[p.Expression, p.Expression]]:
        """Yield each negation with its first value that can be missing; `present` are known to be
        present.

        A negation is `not …`, `… not in …`, or `!=` with a literal.
        """
        match node:
            case _ if is_negation(node):
                negated = node.operand if isinstance(node, p.Not) else node
                found = self.first(negated, present)
                if found is not None:
                    yield node, found
                    return
            case p.And():
                present |= self._presence_asked(node.operands, "present") | self._fields_needed(
                    node.operands
                )
            case p.Or():
                present |= self._presence_asked(node.operands, "missing")
            case _:
                pass
        for child in children(node):
            yield from self.negations(child, present)

    def first(self, node: p.Expression, present: frozenset[Hashable]) -> p.Expression | None:
        """Return the first value that can make the expression missing; None if none can."""
        if present and self.numbers.of(node) in present:
            return None
        if id(node) not in self._of_parts:
            self._of_parts[id(node)] = self._first(node, present)
        return self._of_parts[id(node)]

    def _first(self, node: p.Expression, present: frozenset[Hashable]) -> p.Expression | None:
        match node:
            case p.Constant() | p.Score() | p.Presence():
                return None
            case p.Fact():
                return None if self._is_there(node, present) else node
            case p.ElementFact():
                return None if is_always_there(self.vocabulary.transaction, node.path) else node
            case p.LetValue():
                return None if self.of_lets[node.index] is None else node
            case p.Or():
                return self._any_of(
                    node.operands, present | self._presence_asked(node.operands, "missing")
                )
            case p.And():
                return self._any_of(
                    node.operands, present | self._presence_asked(node.operands, "present")
                )
            case p.Arithmetic(operator="/") if not isinstance(node.right, p.Constant):
                return self._any_of((node.left, node.right), present) or node
            case p.Curve(absent=p.Constant()):
                return None
            case p.Call(function="coalesce"):
                missing = [self.first(argument, present) for argument in node.arguments]
                return None if None in missing else node
            case p.Call() if node.function in _MAYBE_NOTHING:
                return self._any_of(node.arguments, present) or node
            case p.Fold():
                return _of_aggregate(node, node.where, node.function)
            case p.History():
                found = self._any_of(node.keys, present)
                return found or _of_aggregate(node, node.series.where, node.function)
            case (
                p.HeaderFact() | p.MetadataFact() | p.DecisionFact() | p.LabelFact() | p.EventFact()
            ):
                return node
            case p.TableValue():
                return node
            case _:
                return self._any_of(tuple(children(node)), present)

    def _is_there(self, fact: p.Fact, present: frozenset[Hashable]) -> bool:
        """Whether a field is never missing: it is required, and its record is present or itself
        required.
        """
        fields, path = self.vocabulary.payment, fact.path
        while path and path not in present:
            known = fields.get(".".join(path))
            if known is None or not known.required:
                return False
            path = path[:-1]
        return True

    def _any_of(
        self, nodes: Sequence[p.Expression], present: frozenset[Hashable]
    ) -> p.Expression | None:
        return next((found for node in nodes if (found := self.first(node, present))), None)

    def _presence_asked(self, operands: Sequence[p.Expression], state: str) -> frozenset[Hashable]:
        """Return the values whose presence one of the operands tests."""
        return self._present(test.operand for test in self._presences(operands, state))

    def _fields_needed(self, operands: Sequence[p.Expression]) -> frozenset[Hashable]:
        """Return the fields that the operands need, negations aside."""
        positive = (each for each in operands if not is_negation(each))
        return self._present(fact for each in positive for fact in self.needed.of(each))

    def _present(self, values: Iterable[p.Expression]) -> frozenset[Hashable]:
        """Return what is present with these values: their numbers, the fields' paths, and the paths
        of the records around them.
        """
        found: set[Hashable] = set()
        for value in values:
            found.add(self.numbers.of(value))
            if isinstance(value, p.Fact):
                found |= {value.path[:length] for length in range(1, len(value.path) + 1)}
            elif isinstance(value, p.HeaderFact):
                found.add((value.side,))
        return frozenset(found)

    def _presences(self, operands: Sequence[p.Expression], state: str) -> Iterator[p.Presence]:
        """Yield the presence tests among the operands, including those in lets.

        For `and`, those within an inner `and` count too; for `or`, those within an inner `or`.
        """
        joining = p.And if state == "present" else p.Or
        waiting = list(operands)
        seen: set[int] = set()
        while waiting:
            part = waiting.pop()
            match part:
                case p.LetValue() if part.index not in seen:
                    seen.add(part.index)
                    waiting.append(self.lets[part.index].value)
                case p.Presence() if part.state == state:
                    yield part
                case _ if isinstance(part, joining):
                    waiting.extend(children(part))
                case _:
                    pass


def is_negation(node: p.Expression) -> bool:
    """Whether the node is `not …`, `… not in …`, or `!=` with a literal."""
    match node:
        case p.Not():
            return True
        case p.Compare(operator="!=", right=p.Constant()):
            return True
        case p.OneOf() | p.InNetworks() | p.InList() | p.InEntry():
            return node.negated
        case _:
            return False


def _of_aggregate(
    node: p.Expression, where: p.Expression | None, function: str
) -> p.Expression | None:
    """Return the aggregate if it can be missing: counts and sums never are, the others are when
    there are no records.
    """
    if function in ("count", "distinct", "sum", "first", "streak", "decay"):
        return None
    return node if where is not None or function not in ("any", "all") else None
