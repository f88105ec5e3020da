"""Which names are visible to an expression, and the state of checking a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.parser import MAX_ERRORS
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.syntax_errors import too_many_errors
from tollkeeper.grammar.vocabulary import Vocabulary
from tollkeeper.grammar.walk import children


class TooManyError(Exception):
    """A file has so many errors that checking stops."""


Need: TypeAlias = Literal[
    "score", "an aggregate", "a list", "a table", "a rate", "the account's time zone"
]


@dataclass(frozen=True, slots=True)
class KnownNames:
    """What a file can refer to outside itself.

    Definitions and event types with errors map to None. `lists` and `tables` are the account's.
    `own_for_shipped` names the account's definitions that replace shipped ones.
    """

    definitions: Mapping[str, p.Definitions | None] = field(default_factory=dict)
    events: Mapping[str, p.EventType | None] = field(default_factory=dict)
    lists: Mapping[str, p.ListUse] = field(default_factory=dict)
    tables: Mapping[str, p.TableUse] = field(default_factory=dict)
    own_for_shipped: frozenset[str] = frozenset()


LOOKED_UP: frozenset[Need] = frozenset({"a list", "a table", "a rate"})
"""Past payments have these as they stood on arrival."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression stands.

    `collection` and `part` say which part of which aggregate it is in; both are None outside one.
    `history` is true inside an aggregate over history. `score` says whether the score may be read.
    """

    score: bool = True
    collection: Literal["payments", "transactions", "events"] | None = None
    part: Literal["value", "where", "by"] | None = None
    history: bool = False

    @property
    def sees_element(self) -> bool:
        return self.collection == "transactions" and self.part in ("value", "where")

    @property
    def of_event(self) -> bool:
        """Whether names refer to a past event, which has no look-ups from its arrival."""
        return self.history and self.collection == "events"

    @property
    def sees_decision(self) -> bool:
        return self.history and self.part in ("value", "where")


@dataclass(slots=True)
class Work:
    """One file being checked: the checker's only state.

    `names` maps the lets in sight to their index in `lets`, or to None if they have errors.
    `used_definitions` names the definitions that the file uses; `definition_lets` holds their lets,
    each imported when it is first read. `declared` are the names of all of the file's own lets. `names_read` are the names that were read, those of lists
    and tables with their `@`.
    `header_end` is where the file's name and title end.
    `fields` are an event type's own fields; None where bare names refer to the payment. `patterns`
    are the regular expressions so far, `patterns_size` the number of their instructions. `broken`
    is set when a definitions file has errors or is unknown, so that its names are not reported as
    well.
    """

    source: str
    vocabulary: Vocabulary
    known: KnownNames
    fields: Mapping[str, p.EventField] | None
    lost: frozenset[str] = frozenset()
    header_end: int = 0
    event: str | None = None
    declared: frozenset[str] = frozenset()
    broken: bool = False
    found: list[Diagnostic] = field(default_factory=list)
    lets: list[p.Let] = field(default_factory=list)
    numbers: Numbers = field(init=False)
    needs: list[frozenset[Need]] = field(default_factory=list)
    names: dict[str, int | None] = field(default_factory=dict)
    used_definitions: set[str] = field(default_factory=set)
    lists: dict[str, p.ListUse | None] = field(default_factory=dict)
    tables: dict[str, p.TableUse | None] = field(default_factory=dict)
    definition_lets: dict[str, tuple[p.Definitions, int]] = field(default_factory=dict)
    names_read: set[str] = field(default_factory=set)
    imported: dict[tuple[str, int], int] = field(default_factory=dict)
    patterns: set[tuple[str, bool]] = field(default_factory=set)
    patterns_size: int = 0
    next_id: int = 0

    def __post_init__(self) -> None:
        self.numbers = Numbers(self.lets)

    def report(self, diagnostic: Diagnostic) -> None:
        """Add an error; raises TooManyError past the bound."""
        if len(self.found) >= MAX_ERRORS:
            self.found.append(too_many_errors(diagnostic.span, MAX_ERRORS))
            raise TooManyError
        self.found.append(diagnostic)

    def is_excused(self, name: str) -> bool:
        """Whether an unknown name isn't reported, because it may be declared where there are errors
        already.
        """
        return self.broken or name in self.lost

    def text(self, span: Span) -> str:
        """Return the source text of a span."""
        return self.source[span.start : span.end]

    def add_let(self, let: p.Let) -> int:
        """Append a let and return its index."""
        self.lets.append(let)
        self.needs.append(needs(self, let.value))
        return len(self.lets) - 1


def needs(work: Work, node: p.Expression) -> frozenset[Need]:
    """Return what a value needs besides the payment itself."""
    found: set[Need] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        match part:
            case p.LetValue():
                found |= work.needs[part.index]
            case p.Score():
                found.add("score")
            case p.Fold() | p.History():
                found.add("an aggregate")
            case p.InList():
                found.add("a list")
            case p.TableValue():
                found.add("a table")
            case p.Call(function="amount_in"):
                found.add("a rate")
            case p.Call(function="hour" | "weekday", arguments=(_,)):
                found.add("the account's time zone")
            case _:
                pass
        waiting.extend(children(part))
    return frozenset(found)
