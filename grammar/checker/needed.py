"""What is there whenever an expression has a value; of a condition, whenever it is met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tollkeeper.grammar import program as p
from tollkeeper.grammar.walk import children

Sent: TypeAlias = p.Fact | p.HeaderFact


def path_of(fact: Sent) -> tuple[str, ...]:
    """The field's name; of a header, that of the headers as a whole."""
    return fact.path if isinstance(fact, p.Fact) else (fact.side, "headers")


@dataclass(slots=True)
class NeededFields:
    """The fields without which an expression is missing; those of lets are found once."""

    lets: Sequence[p.Let]
    _of_lets: list[tuple[Sent, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # In the order written: a let uses only those above, so that no chain of them is deep.
        for let in self.lets:
            fields = {path_of(each): each for each in self.of(let.value)}
            self._of_lets.append(tuple(fields.values()))

    def of(self, node: p.Expression) -> Iterator[Sent]:
        """Each field; one that a let needs, where the let is named."""
        waiting = [node]
        while waiting:
            part = waiting.pop()
            match part:
                case p.Fact() | p.HeaderFact():
                    yield part
                case p.LetValue():
                    for each in self._of_lets[part.index]:
                        yield replace(each, span=part.span)
                case p.Presence(state="present", operand=operand):
                    waiting.append(operand)
                case p.Presence() | p.Or() | p.Fold() | p.Call(function="coalesce") | p.Curve():
                    pass
                case p.Not(operand=p.And() | p.Or() | p.Not() | p.Presence() | p.LetValue()):
                    pass
                case p.History():
                    waiting.extend(part.keys)
                case _:
                    waiting.extend(children(part))
