"""What comes from outside is printed as it is: brackets are no markup, controls command nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.text import Text

from tollkeeper.api.terminal.decision_lines import decision_table
from tollkeeper.api.terminal.output import (
    print_json,
    print_lines,
    refuse,
    say,
    show_rows,
    show_whole,
)
from tollkeeper.cli import main

HOSTILE = "a[red]b[/red]c[/]d[link=x]"


def test_no_line_takes_brackets_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    show_rows(("name",), [(HOSTILE,)], as_json_=False)
    show_whole(decision_table([item(id=HOSTILE)]))
    with pytest.raises(SystemExit):
        refuse(HOSTILE)
    told = capsys.readouterr()
    assert told.err.count(HOSTILE) == 2
    assert told.out.count(HOSTILE) == 2


def test_no_line_lets_data_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    commands = "\x1b]0;title\x07\x9b2J\x1b[8mhidden\x7f\r"
    say(commands)
    show_rows(("name",), [(commands,)], as_json_=False)
    show_rows(("name",), [(commands,)], as_json_=True)
    show_whole(decision_table([item(id=commands)]))
    print_lines([Text(f"payment {commands}")])
    told = capsys.readouterr()
    assert all(each.isprintable() or each == "\n" for each in told.out + told.err)
    assert told.out.count("hidden") == 4
    print_json(commands)
    assert json.loads(capsys.readouterr().out) == commands


def test_an_optional_argument_is_shown_in_its_brackets() -> None:
    assert "ip_network(ip, bits, [bits6])" in CliRunner().invoke(main, ["fields", "ip_net"]).stdout


def test_a_file_name_keeps_its_brackets(tmp_path: Path) -> None:
    file = tmp_path / "a[red]b.rule"
    file.write_text("rule a\n  condition b when amont > 1 then deny\n")
    assert file.name in CliRunner().invoke(main, ["check", str(file)]).stdout


def test_decisions_have_a_header_and_amounts(capsys: pytest.CaptureFixture[str]) -> None:
    show_whole(decision_table([item(), item(id="p-2", amount=None)]))
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["arrived", "action", "score", "amount", "payment", "rule", "condition"]
    assert first.split() == [
        "2026-01-01T12:00:00Z",
        "deny",
        "0.91",
        "12.50",
        "EUR",
        "p-1",
        "gate",
        "large",
    ]
    assert "EUR" in second


def item(**changed: object) -> dict[str, object]:
    """An item of `GET /decisions`."""
    analyses = {
        "bot_behaviour": {"action": "deny", "score": 0.91},
        "rule": {"name": "gate", "version": 1, "condition": {"id": "large", "name": None}},
    }
    whole = {"at": "2026-01-01T12:00:00Z", "id": "p-1", "currency": "EUR", "amount": 12.5}
    return json.loads(json.dumps({**whole, "analyses": analyses, **changed}))
