"""The console on a listener of its own: the pages there, the interface here, and neither on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tollkeeper.api.http.settings import Settings, SettingsError
from tollkeeper.api.terminal.commands.console import console
from tollkeeper.tests.service.process import PATIENCE_S, new_key, reserved_port, serving


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as reserved:
        yield reserved


def test_pages_and_interface_have_a_port_each(tmp_path: Path, port: int) -> None:
    folder = tmp_path / "data"
    key = new_key(folder, "admin")
    with serving(folder, ["--console", f"127.0.0.1:{port}"]) as running:
        pages = f"http://127.0.0.1:{port}"
        with httpx.Client(timeout=PATIENCE_S) as client:
            signed_in = client.post(f"{pages}/console/sign-in", data={"key": key})
            assert signed_in.status_code == 303
            cookie = signed_in.headers["set-cookie"].partition(";")[0]
            page = client.get(f"{pages}/console/settings", headers={"cookie": cookie})
            assert page.status_code == 200
            headers = {"authorization": f"Bearer {key}"}
            for path in ("/v1/account", "/health/ready", "/", "/schema"):
                assert client.get(f"{pages}{path}", headers=headers).status_code == 404, path
            assert client.get(f"{running.url}/v1/account", headers=headers).status_code == 200
            assert client.get(f"{running.url}/console/sign-in").status_code == 404


@pytest.mark.parametrize("console", ["yes", "localhost", ":1", "localhost:70000", "localhost:http"])
def test_what_is_no_listener_is_refused(console: str) -> None:
    with pytest.raises(SettingsError, match="HOST:PORT"):
        Settings(console=console)


def test_an_address_of_ipv6_stands_in_brackets() -> None:
    assert Settings(console="[::1]:8001").console_listener() == ("::1", 8001)


@pytest.mark.parametrize("apart", [True, False])
def test_a_link_leads_to_where_the_console_listens(tmp_path: Path, port: int, apart: bool) -> None:
    folder = tmp_path / "data"
    new_key(folder, "admin")
    with serving(folder, ["--console", f"127.0.0.1:{port}"] if apart else []) as running:
        printed = CliRunner().invoke(console, ["--account", "shop", "--data", str(folder)])
        assert printed.exit_code == 0, printed.output
        link = printed.output.strip()
        assert link.startswith(f"http://127.0.0.1:{port}/" if apart else f"{running.url}/")
        assert httpx.get(link, timeout=PATIENCE_S).status_code < 400
