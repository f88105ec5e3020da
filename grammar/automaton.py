"""rule.lark as an LALR(1) automaton, and the stack of one parse.

Lark makes the table (parse_table.py); the parser runs it itself, because it recovers from errors in
ways that Lark doesn't offer (parser.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from tollkeeper.grammar.builder import Builder, Piece
from tollkeeper.grammar.parse_table import ParseTable, Production, Terminal, parse_table

_NAME = "NAME"
_END = "$END"


class Reduce(NamedTuple):
    """Reduces the last `size` values to one, at the end of a grammar rule.

    `goto` maps the state below these values to the next state. Without `build`, the rule has one
    value and keeps it.
    """

    size: int
    build: Callable[[list[Any]], Any] | None
    goto: Mapping[int, int]


Action: TypeAlias = int | Reduce
"""The next state after shifting a token, or the reduction to do first."""


class UnacceptableError(Exception):
    """A token that the grammar doesn't accept here."""


class Scanners(dict[int, "re.Pattern[str]"]):
    """By state, the pattern that matches the next token, with the white space and comments before
    it; its group is named for the token's kind.

    A keyword is matched as a name. Patterns are compiled on first use.
    """

    def __init__(self, automaton: Automaton) -> None:
        super().__init__()
        self.automaton = automaton

    def __missing__(self, state: int) -> re.Pattern[str]:
        words = self.automaton.words.values()
        kinds = self.automaton.actions[state].keys()
        accepted = kinds - words | ({_NAME} if kinds & words else set())
        groups = (f"(?P<{each.name}>{each.pattern})" for each in self._rank(accepted))
        one = "|".join(groups) or "(?!)"
        made = self[state] = re.compile(f"{self.automaton.between.pattern}(?:{one})")
        return made

    def _rank(self, kinds: set[str]) -> Iterable[Terminal]:
        """The terminals of these names, those that take precedence first."""
        found = [each for each in self.automaton.terminals if each.name in kinds]
        return sorted(found, key=lambda each: (-each.priority, -each.width, each.name))


@dataclass(slots=True)
class Automaton:
    """The loaded grammar. `between` matches what separates tokens; `words` maps keywords to their
    kinds.
    """

    start: int
    end: int
    actions: Sequence[Mapping[str, Action]]
    terminals: Sequence[Terminal]
    between: re.Pattern[str]
    words: Mapping[str, str]


def load(builder: Builder) -> Automaton:
    """Load the automaton of rule.lark, with `builder` as the maker of its nodes."""
    table = parse_table()
    return Automaton(
        start=table.start,
        end=table.end,
        actions=_actions(table, builder),
        terminals=table.terminals,
        between=re.compile(table.between),
        words=table.words,
    )


def _actions(table: ParseTable, builder: Builder) -> list[dict[str, Action]]:
    """The action for each token in each state; the gotos of rules go into their reductions."""
    gotos: dict[str, dict[int, int]] = {}
    for state, row in enumerate(table.states):
        for symbol, target in row.items():
            if not symbol.isupper():
                gotos.setdefault(symbol, {})[state] = target
    reduces = [
        Reduce(each.size, _build(each, builder), gotos.get(each.origin, {}))
        for each in table.productions
    ]
    return [
        {
            symbol: reduces[-1 - target] if target < 0 else target
            for symbol, target in row.items()
            if symbol.isupper()
        }
        for row in table.states
    ]


def _build(production: Production, builder: Builder) -> Callable[[list[Any]], Any] | None:
    """Return the function that makes a rule's value from its parts; None where the rule has one
    part and keeps its value.
    """
    if production.name is None:
        return None
    make: Callable[[list[Any]], Any] = getattr(builder, production.name)
    spread = production.spread
    if not spread:
        return make

    def build(parts: list[Any]) -> Any:
        flat: list[Any] = []
        for place, part in enumerate(parts):
            if place not in spread:
                flat.append(part)
            elif flat:
                flat += part
            else:
                flat = part  # appended in place: a sequence is the first part of a longer one
        return make(flat)

    return build


@dataclass(slots=True)
class Stack:
    """The parser's stack: the states, and a value for each state but the first."""

    automaton: Automaton
    states: list[int] = field(init=False)
    values: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = [self.automaton.start]

    def feed(self, token: Piece) -> None:
        """Shift a token. Raises UnacceptableError if it isn't accepted, and what `build` raises."""
        actions, states, kind = self.automaton.actions, self.states, token.kind
        while True:
            action = actions[states[-1]].get(kind)
            if type(action) is int:
                states.append(action)
                self.values.append(token)
                return
            if action is None:
                raise UnacceptableError
            _, build, goto = action  # type: ignore[misc]  # it is no state
            if build is None:  # the usual case: a name reduces to a term, to a product, …
                states[-1] = goto[states[-2]]
            else:
                self._reduce(action)  # type: ignore[arg-type]

    def finished(self) -> Any:
        """Return the file's value; raises UnacceptableError if the file isn't complete."""
        while self.states[-1] != self.automaton.end:
            action = self.automaton.actions[self.states[-1]].get(_END)
            if not isinstance(action, Reduce):
                raise UnacceptableError
            self._reduce(action)
        return self.values[-1]

    def accepted(self) -> Iterator[str]:
        """The kinds of tokens that are accepted next."""
        return (kind for kind in self.automaton.actions[self.states[-1]] if self._accepts(kind))

    def _accepts(self, kind: str) -> bool:
        states = self.states.copy()
        while True:
            action = self.automaton.actions[states[-1]].get(kind)
            if not isinstance(action, Reduce):
                return action is not None
            if action.size:
                del states[-action.size :]
            states.append(action.goto[states[-1]])

    def truncate(self, height: int) -> None:
        """Drop everything above that many states."""
        del self.states[height:]
        del self.values[height - 1 :]

    def _reduce(self, rule: Reduce) -> None:
        size, build, goto = rule
        states, values = self.states, self.values
        if build is None:
            states[-1] = goto[states[-2]]
            return
        parts = values[len(values) - size :]
        if size:
            del states[-size:], values[-size:]
        values.append(build(parts))
        states.append(goto[states[-1]])
