"""Commands on a data folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tollkeeper.cli import main


@pytest.mark.parametrize(
    "command",
    [
        ["keys", "create", "--account", "shop"],
        ["accounts", "set", "shop", "default_rule=null"],
        ["erase", "--user", "u-1", "--account", "shop"],
    ],
)
def test_a_folder_without_data_is_not_begun_by_a_command_that_needs_an_account(
    command: list[str], tmp_path: Path
) -> None:
    asked = CliRunner().invoke(main, [*command, "--data", f"{tmp_path}/data"])
    assert asked.exit_code == 1
    assert "there is no service's data in" in asked.stderr
    assert not (tmp_path / "data").exists()
