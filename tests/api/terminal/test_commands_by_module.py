"""Each module of `api/terminal/commands/` is one command of `toll`, and no other module is loaded."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tollkeeper.api.terminal import commands
from tollkeeper.cli import main

CONTEXT = click.Context(main)
NAMES = main.list_commands(CONTEXT)


def test_every_module_is_a_command() -> None:
    (folder,) = commands.__path__
    modules = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert set(NAMES) == modules


@pytest.mark.parametrize("name", NAMES)
def test_each_command_tells_what_it_does_under_a_heading(name: str) -> None:
    command = main.get_command(CONTEXT, name)
    assert command is not None
    assert command.help
    assert command.panel in {panel.name for panel in main.panels}


@pytest.mark.parametrize("name", ["nothing", "__init__", "os", "../demo"])
def test_what_is_no_module_is_no_command(name: str) -> None:
    assert main.get_command(CONTEXT, name) is None


@pytest.mark.parametrize("name", NAMES)
def test_each_option_tells_what_it_does(name: str) -> None:
    command = main.get_command(CONTEXT, name)
    several = command.commands.values() if isinstance(command, click.Group) else [command]
    for each in several:
        for option in each.params:
            assert isinstance(option, click.Argument) or option.help, f"{each.name} {option.name}"
