"""The table that is kept beside rule.lark is the one that Lark makes of it."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

from tollkeeper.grammar.parse_table import GRAMMAR, make_table, parse_table


def test_the_kept_table_is_that_of_the_grammar_whatever_order_lark_has_in_this_run() -> None:
    assert parse_table() == make_table(
        files("tollkeeper.grammar").joinpath(GRAMMAR).read_text("utf-8")
    )


def test_a_file_is_read_without_making_a_table() -> None:
    code = (
        "import sys; from tollkeeper.grammar.parser import parse; parse('rule r')\n"
        "assert 'lark' not in sys.modules, 'the table is not that of rule.lark: run `make docs`'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
