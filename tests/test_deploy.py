"""What is in deploy/ sets what the service has, and its own tools find nothing in it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tollkeeper.api.terminal.commands.serve import serve

DEPLOY = Path(__file__).parents[1] / "deploy"
_NAMED = re.compile(r"\bTOLL_[A-Z_]*[A-Z]\b(?!_)")


def test_every_variable_in_deploy_is_an_option_of_the_service() -> None:
    files = [each for each in DEPLOY.rglob("*") if each.is_file()]
    named = {name for file in files for name in _NAMED.findall(file.read_text())}
    known = {str(option.envvar) for option in serve.params}
    assert {"TOLL_DATABASE", "TOLL_NODE_ADDRESS"} <= named
    assert named <= known


@pytest.mark.parametrize(
    "command",
    [
        ("hadolint", "Dockerfile"),
        ("promtool", "check", "config", "prometheus/prometheus.yml"),
        ("promtool", "check", "rules", "prometheus/alerts.yml"),
        ("haproxy", "-c", "-f", "compose/haproxy.cfg"),
        ("shellcheck", "compose/postgres/copy_primary.sh", "compose/postgres/let_standby_in.sh"),
        ("docker-compose", "-f", "compose/compose.yaml", "config", "-q"),
        ("docker-compose", "-f", "compose/nodes.yaml", "config", "-q"),
        ("helm", "lint", "helm/tollkeeper"),
    ],
    ids=" ".join,
)
def test_each_file_passes_its_own_tool(command: tuple[str, ...]) -> None:
    require(command[0])
    done = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_systemd_finds_nothing_in_the_unit(tmp_path: Path) -> None:
    require("systemd-analyze")
    # It looks for the command, which is installed elsewhere.
    written = (DEPLOY / "systemd/tollkeeper.service").read_text()
    unit = tmp_path / "tollkeeper.service"
    unit.write_text(written.replace("/opt/tollkeeper/bin/toll", str(shutil.which("true"))))
    command = ("systemd-analyze", "verify", str(unit))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_allows_the_system_calls_that_processes_beside_the_service_make() -> None:
    require("systemd-analyze")
    allowed: set[str] = set()
    for line in (DEPLOY / "systemd/tollkeeper.service").read_text().splitlines():
        name, _, given = line.partition("=")
        if name == "SystemCallFilter":
            calls = set().union(*(calls_of(each) for each in given.removeprefix("~").split()))
            allowed = allowed - calls if given.startswith("~") else allowed | calls
    assert {"setpriority", "prlimit64", "clone", "pidfd_open", "pidfd_send_signal"} <= allowed
    assert not {"setuid", "mount", "reboot"} & allowed


def calls_of(name: str) -> set[str]:
    """The system calls of a group, or of its own name."""
    if not name.startswith("@"):
        return {name}
    command = ("systemd-analyze", "syscall-filter", name)
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = (line.strip() for line in shown.splitlines()[1:])
    return set().union(*(calls_of(each) for each in listed if each and not each.startswith("#")))


def require(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"`{tool}` is not installed here")
