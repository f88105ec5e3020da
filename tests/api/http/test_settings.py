"""Every limit of the service has a name, a default and a setting."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from tollkeeper.api.http.settings import Settings
from tollkeeper.cli import main

NAMES = [name for name in Settings.__struct_fields__ if name != "folder"]


def test_every_setting_is_an_option_a_variable_and_a_line_of_the_help() -> None:
    told = CliRunner().invoke(main, ["serve", "--help"], terminal_width=200).output
    serve = main.get_command(click.Context(main), "serve")
    assert serve is not None
    options = {option.name: option for option in serve.params}
    assert options.keys() == {"data", "config", "check", *NAMES}
    for name in NAMES:
        assert options[name].envvar == f"TOLL_{name.upper()}"
        assert f"--{name.replace('_', '-')}" in told
        assert f"TOLL_{name.upper()}" in told


@pytest.mark.parametrize("name", ["head-bytes", "body-bytes", "body-seconds"])
def test_a_bound_that_nothing_fits_is_wrong_usage(name: str) -> None:
    assert CliRunner().invoke(main, ["serve", f"--{name}", "0"]).exit_code == 2
