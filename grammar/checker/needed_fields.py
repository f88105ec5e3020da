"""Find the fields that an expression needs in order to have a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tollkeeper.grammar import program as p
from tollkeeper.grammar.walk import children

SentFact: TypeAlias = p.Fact | p.HeaderFact


def path_of(fact: SentFact) -> tuple[str, ...]:
    """Return the field's path; for a header, that of the headers as a whole."""
    return fact.path if isinstance(fact, p.Fact) else (fact.side, "headers")


@dataclass(slots=True)
class NeededFields:
    """The fields without which an expression is missing; those of each let are found once."""

    lets: Sequence[p.Let]
    _of_lets: list[tuple[SentFact, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # In order: a let uses only those above it, so this doesn't recurse deeply.
        for let in self.lets:
            fields = {path_of(each): each for each in self.of(let.value)}
            self._of_lets.append(tuple(fields.values()))

    def of(self, node: p.Expression) -> Iterator[SentFact]:
        """Yield each needed field; one that a let needs has the span of the let's name."""
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
