"""rule.lark as an automaton: which token can come next, and what is made of those read so far.

Lark reads the grammar and makes the LALR(1) table. The table is walked here, since reading goes on
behind an error in ways of our own (parser.py), and a table of just what is needed is quick.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from lark import Lark
from lark.lexer import TerminalDef
from lark.parse_tree_builder import ExpandSingleChild
from lark.parsers.lalr_analysis import Shift

from tollkeeper.grammar.builder import Builder, Piece

_NAME = "NAME"
_END = "$END"


class Reduce(NamedTuple):
    """A rule of the grammar is at its end: its last `size` parts become one.

    `goto` gives the state that follows by the one before the parts. Without `build` the one part
    stands for the rule.
    """

    size: int
    build: Callable[[list[Any]], Any] | None
    goto: Mapping[int, int]


Action: TypeAlias = int | Reduce
"""The state that follows when a token is taken in, or what is to be done before."""


class UnacceptableError(Exception):
    """A token that can't stand where it does."""


class Scanners(dict[int, "re.Pattern[str]"]):
    """What matches the next token and what is before it, by state: the group is named as its kind.

    A keyword is matched as a name. Each pattern is made when its state is first met.
    """

    def __init__(self, automaton: Automaton) -> None:
        super().__init__()
        self.automaton = automaton

    def __missing__(self, state: int) -> re.Pattern[str]:
        words = self.automaton.words.values()
        kinds = self.automaton.actions[state].keys()
        accepted = kinds - words | ({_NAME} if kinds & words else set())
        groups = (f"(?P<{each.name}>{each.pattern.to_regexp()})" for each in self._rank(accepted))
        one = "|".join(groups) or "(?!)"
        made = self[state] = re.compile(f"{self.automaton.between.pattern}(?:{one})")
        return made

    def _rank(self, kinds: set[str]) -> Iterable[TerminalDef]:
        """The terminals of these names, before others those that win over them."""
        found = [each for each in self.automaton.terminals if each.name in kinds]
        return sorted(found, key=lambda each: (-each.priority, -each.pattern.max_width, each.name))


@dataclass(slots=True)
class Automaton:
    """The loaded grammar; what stands `between` tokens, and its `words` with their kinds."""

    start: int
    end: int
    actions: Mapping[int, Mapping[str, Action]]
    terminals: tuple[TerminalDef, ...]
    between: re.Pattern[str]
    words: Mapping[str, str]


def load(builder: Builder) -> Automaton:
    """The automaton of rule.lark, whose nodes `builder` makes."""
    lark = Lark(
        files(__package__).joinpath("rule.lark").read_text("utf-8"),
        parser="lalr",
        lexer="basic",
        start="file",
        keep_all_tokens=True,
        maybe_placeholders=False,
        transformer=builder,
    )
    terminals = tuple(lark.terminals)
    ignored = [each.pattern.to_regexp() for each in terminals if each.name in lark.ignore_tokens]
    strings = [
        (str(each.pattern.value), each.name) for each in terminals if each.pattern.type == "str"
    ]
    table = lark.parse_interactive("").parser_state.parse_conf
    return Automaton(
        start=table.start_state,
        end=table.end_state,
        actions=_actions(table.states, table.callbacks),
        terminals=terminals,
        between=re.compile(f"(?>(?:{'|'.join(ignored)})*)"),
        words={text: kind for text, kind in strings if text.isalpha()},
    )


def _actions(rows: Any, builders: Any) -> dict[int, dict[str, Action]]:
    """Lark's table without what only its own parser needs."""
    gotos: dict[str, dict[int, int]] = {}
    for state, row in rows.items():
        for symbol, (_, target) in row.items():
            if not symbol.isupper():
                gotos.setdefault(symbol, {})[state] = target
    reduces: dict[Any, Reduce] = {}
    for rule, build in builders.items():
        size = len(rule.expansion)
        stands_alone = size == 1 and isinstance(build, ExpandSingleChild)
        goto = gotos.get(rule.origin.name, {})
        reduces[rule] = Reduce(size, None if stands_alone else build, goto)
    return {
        state: {
            symbol: target if action is Shift else reduces[target]
            for symbol, (action, target) in row.items()
            if symbol.isupper()
        }
        for state, row in rows.items()
    }


@dataclass(slots=True)
class Stack:
    """What was read of one text: the states passed through, and the value of each but the first."""

    automaton: Automaton
    states: list[int] = field(init=False)
    values: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = [self.automaton.start]

    def feed(self, token: Piece) -> None:
        """Takes a token in; raises UnacceptableError where it can't stand, and what `build` does."""
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
            if build is None:  # most are: a name is a term is a product …
                states[-1] = goto[states[-2]]
            else:
                self._reduce(action)  # type: ignore[arg-type]

    def finished(self) -> Any:
        """The value of the whole; raises UnacceptableError when more was to come."""
        while self.states[-1] != self.automaton.end:
            action = self.automaton.actions[self.states[-1]].get(_END)
            if not isinstance(action, Reduce):
                raise UnacceptableError
            self._reduce(action)
        return self.values[-1]

    def accepted(self) -> Iterator[str]:
        """The kinds of tokens that can stand here."""
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

    def cut(self, height: int) -> None:
        """Forgets what was read above that many states."""
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
