"""The table that is kept beside rule.lark is the one that Lark makes of it."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

from tollkeeper.grammar.parse_table import GRAMMAR, ParseTable, make_table, parse_table


def test_the_kept_table_is_that_of_the_grammar() -> None:
    kept = parse_table()
    made = make_table(files("tollkeeper.grammar").joinpath(GRAMMAR).read_text("utf-8"))
    assert kept.made_from == made.made_from
    assert (kept.terminals, kept.between, kept.words) == (made.terminals, made.between, made.words)
    # Lark numbers states and rules as it comes: they are the same when they lead to the same.
    same, waiting = {kept.start: made.start}, [kept.start]
    while waiting:
        state = waiting.pop()
        row, other = kept.states[state], made.states[same[state]]
        assert row.keys() == other.keys()
        for symbol, target in row.items():
            if target < 0:
                assert production(kept, target) == production(made, other[symbol])
            elif target not in same:
                same[target] = other[symbol]
                waiting.append(target)
            else:
                assert same[target] == other[symbol]
    assert same[kept.end] == made.end
    assert len(set(same.values())) == len(kept.states) == len(made.states)


def production(table: ParseTable, target: int) -> object:
    return table.productions[-1 - target]


def test_a_file_is_read_without_making_a_table() -> None:
    code = (
        "import sys; from tollkeeper.grammar.parser import parse; parse('rule r')\n"
        "assert 'lark' not in sys.modules, 'the table is not that of rule.lark: run `make docs`'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
