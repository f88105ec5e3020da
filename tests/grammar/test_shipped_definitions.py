"""`use velocity`: shipped names, free until they are read, and yours where you have the name."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tollkeeper.cli import main
from tollkeeper.engine.programs.shipped_definitions import shipped_definitions
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Definitions, Rule

RULE = b"""rule shop
  use velocity
  condition c when cards_24h_per_device >= 4 and new_card_for_user then challenge
"""


def test_every_shipped_name_can_be_used_and_costs_nothing_until_it_is_read():
    reading = read_file(RULE, KnownNames())
    assert reading.diagnostics == ()
    assert isinstance(reading.program, Rule)
    assert len(reading.program.histories) == 2
    assert list(reading.shipped) == ["velocity"]
    for let in shipped_definitions()["velocity"].program.lets:
        text = f"rule r use velocity condition c when {let.name} is present then deny"
        found = read_file(text.encode(), KnownNames()).diagnostics
        assert not [each for each in found if each.severity == "error"], let.name


def test_own_definitions_of_the_name_win_and_the_use_says_so():
    own = read_file(b"definitions velocity\n let cards_24h_per_device = 9\n", KnownNames()).program
    assert isinstance(own, Definitions)
    text = b"rule shop\n use velocity\n condition c when cards_24h_per_device >= 4 then deny\n"
    reading = read_file(text, KnownNames(definitions={"velocity": own}))
    assert "own-for-shipped" in {each.code for each in reading.diagnostics}
    assert reading.shipped == {}


def test_a_file_alone_is_checked_with_what_lies_beside_it(tmp_path: Path):
    (tmp_path / "cards.rule").write_text("definitions cards\n  let small = score < 0.1\n")
    file = tmp_path / "shop.rule"
    file.write_text("rule shop\n  use cards\n  condition c when small then allow\n")
    ended = CliRunner().invoke(main, ["check", str(file)])
    assert (ended.exit_code, "1 file, 0 errors" in ended.output) == (0, True)
