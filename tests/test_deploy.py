"""What is in deploy/ sets what the service has."""

from __future__ import annotations

import re
from pathlib import Path

from tollkeeper.api.terminal.commands.serve import serve

DEPLOY = Path(__file__).parents[1] / "deploy"
_NAMED = re.compile(r"\bTOLL_[A-Z_]*[A-Z]\b(?!_)")


def test_every_variable_in_deploy_is_an_option_of_the_service() -> None:
    files = [each for each in DEPLOY.rglob("*") if each.is_file()]
    named = {name for file in files for name in _NAMED.findall(file.read_text())}
    known = {str(option.envvar) for option in serve.params}
    assert {"TOLL_DATABASE", "TOLL_NODE_ADDRESS"} <= named
    assert named <= known
