"""Who made a change: each command that makes one takes its author."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tollkeeper.cli import main

CONTEXT = click.Context(main)
CHANGING = {"perform", "perform_in"}


def leaves(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(CONTEXT):
            found = command.get_command(CONTEXT, name)
            assert found is not None
            yield from leaves(found, *path, name)
    else:
        yield " ".join(path), command


def test_each_command_that_changes_something_takes_an_author_and_no_other_does() -> None:
    for name, command in leaves(main):
        code = getattr(command.callback, "__wrapped__", command.callback).__code__
        takes = any("--author" in option.opts for option in command.params)
        assert takes == bool(CHANGING & {*code.co_names}), name


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(["--author", "ana"], {"TOLL_AUTHOR": "rui"}), ([], {"TOLL_AUTHOR": "ana"})],
)
def test_the_audit_names_the_author(
    arguments: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    run, data = CliRunner(env=environment), ["--data", str(tmp_path / "data")]
    done = run.invoke(main, ["accounts", "create", "shop", *arguments, *data])
    assert done.exit_code == 0, done.stderr
    narrowed = ["--since", "1d", "--by", "ana", "--action", "account_created"]
    shown = run.invoke(main, ["audit", "--account", "shop", *narrowed, *data]).stdout
    assert [line for line in shown.splitlines() if "account_created" in line and "ana" in line]
