"""What an operator does with a service: settings, listeners, signals, a flood of half-sent requests."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tollkeeper.api.http import serve as serving_folder
from tollkeeper.api.http.settings import BOUNDS, Settings, SettingsError
from tollkeeper.cli import main
from tollkeeper.tests.service.process import HOST, PATIENCE_S, reserved_port, serving, toll
from tollkeeper.tests.service.wire import connected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def run(folder: Path) -> Callable[..., tuple[int, str]]:
    """A command in this process: its exit code, and all it said."""

    def run(*arguments: str) -> tuple[int, str]:
        ran = CliRunner().invoke(main, [*arguments, "--data", str(folder)])
        return ran.exit_code, " ".join(ran.output.split())

    return run


def lines(folder: Path) -> list[dict[str, object]]:
    text = (folder.parent / "serve.log").read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as reserved:
        yield reserved


def test_a_service_with_a_listener_for_its_operator(
    folder: Path, tmp_path: Path, port: int
) -> None:
    (tmp_path / "toll.toml").write_text(
        f"admin-port = {port}\nconnections = 20\nidle_seconds = 25\n"
    )
    admin = f"http://{HOST}:{port}"
    with serving(folder, ["--config", str(tmp_path / "toll.toml")]) as service, ExitStack() as held:
        assert httpx.get(f"{service.url}/metrics", timeout=PATIENCE_S).status_code == 404
        told = httpx.get(f"{admin}/metrics", timeout=PATIENCE_S).text
        assert "toll_build_info{" in told
        assert 'toll_requests_total{reason="not_found",route="none",status="404"} 1.0' in told
        for base in (service.url, admin):
            assert httpx.get(f"{base}/health/ready", timeout=PATIENCE_S).json() == {
                "status": "ready"
            }
        assert httpx.get(f"{admin}/v1/account", timeout=PATIENCE_S).status_code == 404

        # More half-sent requests than there may be connections.
        for _ in range(60):
            half = held.enter_context(connected(service))
            half.sendall(b"POST /v1/payments HTTP/1.1\r\nhost: x\r\n")
        assert httpx.get(f"{service.url}/health/live", timeout=PATIENCE_S).status_code == 200
        assert httpx.get(f"{service.url}/v1/account", timeout=PATIENCE_S).status_code == 401
        assert httpx.get(f"{admin}/health/ready", timeout=PATIENCE_S).status_code == 200

        service.process.send_signal(signal.SIGHUP)
        assert service.process.wait(PATIENCE_S) == 0
    events = [line["event"] for line in lines(folder)]
    assert events.index("bound") < events.index("ready")
    assert "connection_given_up" in events
    refused = [line for line in lines(folder) if line.get("status") == 401]
    assert refused[0]["reason"] == "invalid_credentials"
    assert refused[0]["peer"] == "127.0.0.1"


def test_a_damaged_journal_ends_the_service_with_a_line_that_names_the_entry(folder: Path) -> None:
    toll(folder, "accounts", "create", "shop")
    with closing(sqlite3.connect(folder / "tollkeeper.db")) as connection, connection:
        connection.execute("UPDATE journal SET body = x'00ff' WHERE place = 1")
    ran = toll(folder, "serve", "--port", "0")
    assert ran.returncode == 1
    assert "entry 1 (change, account 1) of `tollkeeper.db` can't be read" in ran.stderr


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_out_of_its_bounds_is_refused_by_name(name: str) -> None:
    least, most = BOUNDS[name]
    for value in (least - 1, most + 1):
        with pytest.raises(SettingsError, match=f"{name.replace('_', '-')}: {value} is not"):
            Settings(**{name: value})
    Settings(**{name: least})


def test_a_port_that_is_none_is_refused_before_anything_is_opened(
    folder: Path, run: Callable[..., tuple[int, str]]
) -> None:
    code, told = run("serve", "--port", "99999", "--waiting", "0")
    assert code == 2
    assert "port: 99999 is not between 0 and 65535" in told
    assert "waiting: 0 is not between 1 and" in told
    assert not folder.exists()


def test_a_port_in_use_is_named_and_the_check_says_so_before(
    folder: Path, run: Callable[..., tuple[int, str]], port: int
) -> None:
    with socket.create_server((HOST, port)):
        ran = toll(folder, "serve", "--port", str(port))
        assert (ran.returncode, f"cannot listen on {HOST}" in ran.stderr) == (1, True)
        code, told = run("serve", "--check", "--port", str(port))
        assert (code, "the service would not start" in told) == (1, True)
    code, told = run("serve", "--check", "--port", str(port))
    assert code == 0
    assert f"port {port} option" in told
    assert "idle_seconds 30 default" in told
    assert not folder.exists()


def test_telemetry_that_is_not_installed_is_told_before_anything_is_opened(
    folder: Path, run: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_folder, "find_spec", lambda _name: None)
    for more in ((), ("--check",)):
        code, told = run("serve", "--telemetry", "http://127.0.0.1:4318", "--port", "0", *more)
        assert (code, "pip install 'tollkeeper[telemetry]'" in told) == (1, True)
    assert not folder.exists()
    code, told = run("serve", "--telemetry", "collector:4318")
    assert (code, "is no address of http or https" in told) == (2, True)


def test_a_setting_that_is_none_is_refused_in_a_file(
    tmp_path: Path, run: Callable[..., tuple[int, str]]
) -> None:
    path = tmp_path / "toll.toml"
    path.write_text("prot = 8000\n")
    code, told = run("serve", "--config", str(path))
    assert code == 2
    assert "has a setting `prot`" in told
    path.write_text("port = \n")
    code, told = run("serve", "--config", str(path))
    assert (code, "can't be read" in told) == (2, True)


def test_a_folder_that_should_hold_data_and_is_empty_is_not_begun(folder: Path) -> None:
    ran = toll(folder, "serve", "--require-data", "true", "--port", "0")
    assert ran.returncode == 1
    assert "is the disk mounted that holds it?" in ran.stderr
    assert not folder.exists()
