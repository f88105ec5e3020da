"""Clients that generators write from the document fit their types and talk to a real service."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

import httpx
import pytest

from tollkeeper.api.http.examples import EVENT_TYPE
from tollkeeper.docs.generate import DOCUMENT
from tollkeeper.tests.service.process import new_key, serving

CLIENTS = Path(__file__).with_name("clients")
DONE = ["allow", "failed", "sign_in"]
PATIENCE_S = 100.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Where a service answers that has an event type, and a key that it takes."""
    folder = tmp_path_factory.mktemp("clients") / "data"
    key = new_key(folder, "payments", "rules")
    with serving(folder) as running:
        answer = httpx.post(
            f"{running.url}/v1/event-types/sign_in/versions?publish=true",
            headers={"authorization": f"Bearer {key}"},
            content=EVENT_TYPE,
            timeout=PATIENCE_S,
        )
        assert answer.status_code == 201
        yield running.url, key


def run(folder: Path, *command: str) -> str:
    """What the command prints, its errors too when it fails.

    It prints to files, as who waits for the end of a pipe waits for every process that it started.
    """
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    with TemporaryFile("w+") as printed, TemporaryFile("w+") as wrong:
        done = subprocess.run(
            command, cwd=folder, stdout=printed, stderr=wrong, timeout=PATIENCE_S, env=environment
        )
        printed.seek(0)
        wrong.seek(0)
        assert done.returncode == 0, printed.read() + wrong.read()
        return printed.read()


def test_a_python_client_is_generated_and_used(
    tmp_path: Path, service: tuple[str, str], pytestconfig: pytest.Config
) -> None:
    generator = str(Path(sys.executable).with_name("openapi-python-client"))
    settings = str(CLIENTS / "generator.yaml")
    said = run(
        tmp_path, generator, "generate", "--path", str(DOCUMENT), "--output-path", "generated",
        "--config", settings, "--fail-on-warning",
    )  # fmt: skip
    assert "WARNING" not in said
    generated = tmp_path / "generated"
    shutil.copy(CLIENTS / "use.py", generated)
    # Of the standard library and of httpx, what an earlier run has found out.
    known = str(pytestconfig.cache.mkdir("types_of_client"))
    run(generated, sys.executable, "-m", "mypy", "--cache-dir", known, "use.py")
    assert json.loads(run(generated, sys.executable, "use.py", *service)) == DONE


def installed(kept: Path) -> Path:
    """The packages for TypeScript, in a folder where an earlier run may have installed them."""
    wanted, packages = CLIENTS / "package.json", kept / "node_modules"
    is_whole = (packages / ".package-lock.json").exists()
    if not is_whole or (kept / wanted.name).read_bytes() != wanted.read_bytes():
        shutil.copy(wanted, kept)
        shutil.rmtree(packages, ignore_errors=True)
        quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--prefer-offline")
        try:
            run(kept, "npm", "install", *quiet)
        except (AssertionError, subprocess.TimeoutExpired):
            pytest.skip("the packages for TypeScript can't be installed")
    return packages


@pytest.mark.skipif(shutil.which("npm") is None, reason="Node.js is not installed")
def test_a_typescript_client_is_generated_and_used(
    tmp_path: Path, service: tuple[str, str], pytestconfig: pytest.Config
) -> None:
    shutil.copytree(CLIENTS, tmp_path, dirs_exist_ok=True)
    packages = installed(pytestconfig.cache.mkdir("packages_of_client"))
    (tmp_path / packages.name).symlink_to(packages)
    tools = packages / ".bin"
    run(tmp_path, str(tools / "openapi-typescript"), str(DOCUMENT), "-o", "api.d.ts")
    run(tmp_path, str(tools / "tsc"), "--project", ".")
    assert json.loads(run(tmp_path, "node", "out/use.js", *service)) == DONE
