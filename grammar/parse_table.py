"""The LALR(1) table of rule.lark. Lark makes it; it is stored beside the grammar, because making it
is slow.

Run as a program, this module stores the table of the current grammar: `make docs` does so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

GRAMMAR = "rule.lark"
_TABLE_FILE = "parse_table.json"


class Terminal(NamedTuple):
    """A kind of token and its pattern; a larger `priority`, then a larger `width`, takes
    precedence.
    """

    name: str
    pattern: str
    priority: int
    width: int


class Production(NamedTuple):
    """A grammar rule: `size` parts become an `origin`, made by the builder's method `name`.

    Without a name, the rule has one part and keeps its value. The parts at the indices `spread` are
    sequences whose elements become parts themselves.
    """

    origin: str
    size: int
    name: str | None
    spread: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ParseTable:
    """For each state, the next state by symbol, or `-1 - index` of the production to reduce by.

    `made_from` is the digest of the table's grammar; `between` matches what separates tokens;
    `words` are the quoted keywords, with their kinds.
    """

    made_from: str
    start: int
    end: int
    states: Sequence[Mapping[str, int]]
    productions: Sequence[Production]
    terminals: Sequence[Terminal]
    between: str
    words: Mapping[str, str]


def parse_table() -> ParseTable:
    """Return the stored table; if the grammar has changed since, make it again."""
    grammar, stored = _grammar(), _kept_table()
    return stored if stored.made_from == _digest(grammar) else make_table(grammar)


def make_table(grammar: str) -> ParseTable:
    """Make the table of a grammar with Lark: half a second for rule.lark."""
    from lark import Lark
    from lark.parsers.lalr_analysis import Shift

    lark = Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start="file",
        keep_all_tokens=True,
        maybe_placeholders=False,
    )
    table: Any = lark.parse_interactive("").parser_state.parse_conf
    # Lark's own order differs from run to run: it keeps sets of texts.
    rules = sorted(table.callbacks, key=_written)
    numbers = {rule: -1 - number for number, rule in enumerate(rules)}
    states = _in_order(table)
    places = {state: place for place, state in enumerate(states)}
    ignored = [each for each in lark.terminals if each.name in lark.ignore_tokens]
    words = [each for each in lark.terminals if each.pattern.type == "str"]
    return ParseTable(
        made_from=_digest(grammar),
        start=places[table.start_state],
        end=places[table.end_state],
        states=[
            {
                str(symbol): places[target] if action is Shift else numbers[target]
                for symbol, (action, target) in sorted(table.states[state].items())
            }
            for state in states
        ],
        productions=[_production(rule) for rule in rules],
        terminals=[
            Terminal(each.name, each.pattern.to_regexp(), each.priority, each.pattern.max_width)
            for each in lark.terminals
        ],
        between=f"(?>(?:{'|'.join(each.pattern.to_regexp() for each in ignored)})*)",
        words={
            str(each.pattern.value): each.name for each in words if each.pattern.value.isalpha()
        },
    )


def _in_order(table: Any) -> list[Any]:
    """The states as they are reached from the first, the symbols in the order of their names."""
    from lark.parsers.lalr_analysis import Shift

    states = [table.start_state]
    known = set(states)
    for state in states:
        for _, (action, target) in sorted(table.states[state].items()):
            if action is Shift and target not in known:
                known.add(target)
                states.append(target)
    return states


def _written(rule: Any) -> tuple[str, list[str], str]:
    return str(rule.origin.name), [str(part.name) for part in rule.expansion], str(rule.alias)


def _production(rule: Any) -> Production:
    """Read a rule of Lark; the names that Lark gives to `(…)*` and `(…)+` begin with `_`."""
    origin, parts = str(rule.origin.name), rule.expansion
    spread = tuple(
        place for place, part in enumerate(parts) if not part.is_term and part.name.startswith("_")
    )
    stands_alone = rule.options.expand1 and not rule.alias and len(parts) == 1
    named = "sequence" if origin.startswith("_") else str(rule.alias or origin)
    return Production(origin, len(parts), None if stands_alone else named, spread)


def _grammar() -> str:
    return files("tollkeeper.grammar").joinpath(GRAMMAR).read_text("utf-8")


def _digest(grammar: str) -> str:
    return sha256(f"lark {version('lark')}\n{grammar}".encode()).hexdigest()


def _kept_table() -> ParseTable:
    stored = json.loads(files(__package__).joinpath(_TABLE_FILE).read_text("utf-8"))
    stored["productions"] = [
        Production(origin, size, name, tuple(spread))
        for origin, size, name, spread in stored["productions"]
    ]
    stored["terminals"] = [Terminal(*each) for each in stored["terminals"]]
    return ParseTable(**stored)


def _keep(table: ParseTable) -> None:
    """Store the table with one line per element, so that changes can be reviewed."""
    fields = [f'"{name}": {_lines(value)}' for name, value in asdict(table).items()]
    Path(__file__).with_name(_TABLE_FILE).write_text("{\n" + ",\n".join(fields) + "\n}\n")


def _lines(value: Any) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(json.dumps(each, separators=(",", ":")) for each in value) + "\n]"


if __name__ == "__main__":
    _keep(make_table(_grammar()))
