"""`toll webhooks`, on a folder that no service holds."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner, Result

from tollkeeper.api.terminal.commands import webhooks
from tollkeeper.cli import main
from tollkeeper.engine.folder_key import open_folder_key
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Notice
from tollkeeper.engine.monitors.outbox_file import ALERTS_FILE
from tollkeeper.engine.registry.changes import NoticeKind

URL = "https://shop.example/notices"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    done = CliRunner().invoke(main, ["accounts", "create", "shop", "--data", str(folder)])
    assert done.exit_code == 0, done.stderr
    return folder


def run(folder: Path, *arguments: str) -> Result:
    whole = ["webhooks", *arguments, "--account", "shop", "--data", str(folder)]
    return CliRunner().invoke(main, whole)


def listed(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(run(folder, "list", "--json").stdout)
    return rows


def test_the_kinds_are_those_of_the_interface() -> None:
    assert get_args(NoticeKind) == webhooks._KINDS


def test_a_webhook_is_set_paused_resumed_rotated_and_removed(folder: Path) -> None:
    wanted = ["--kind", "payment.decided", "--action", "deny", "--rule", "gate"]
    first = run(folder, "set", URL, *wanted).stdout.strip()
    assert first.startswith("whsec_")
    (shown,) = listed(folder)
    assert (shown["kinds"], shown["only"]) == ("payment.decided", "action deny; rule gate")
    assert run(folder, "pause", URL).exit_code == 0
    assert listed(folder)[0]["state"] == "paused"
    assert run(folder, "resume", URL).exit_code == 0
    assert listed(folder)[0] == shown
    second = run(folder, "rotate", URL, "--overlap-seconds", "60").stdout.strip()
    assert second.startswith("whsec_")
    assert second != first
    assert run(folder, "set", URL, "--kind", "label.created").stdout == ""
    assert listed(folder)[0]["kinds"] == "label.created"
    stored = b"".join(each.read_bytes() for each in folder.iterdir() if each.is_file())
    assert first.encode() not in stored
    assert second.encode() not in stored
    assert run(folder, "remove", URL).exit_code == 0
    assert listed(folder) == []


def test_an_address_that_is_not_set_is_not_found(folder: Path) -> None:
    for command in ("pause", "resume", "remove", "rotate", "test"):
        done = run(folder, command, URL)
        assert done.exit_code == 1, command
        assert "there is no webhook with this" in done.stderr
    assert run(folder, "set", "http://10.0.0.1/").exit_code == 1


def test_deliveries_are_listed_and_sent_again(folder: Path) -> None:
    run(folder, "set", URL)
    key = open_folder_key(folder)
    with closing(sqlite3.connect(folder / ALERTS_FILE, isolation_level=None)) as connection:
        outbox.add_notices(
            connection, [Notice(1, URL, "payment.updated", 9, subject="p-1")], key, 0
        )
        (delivery,) = outbox.deliveries(connection, 1, None, 9)
    (row,) = json.loads(run(folder, "deliveries", URL, "--json").stdout)
    assert (row["id"], row["subject"], row["state"]) == (delivery.id, "p-1", "pending")
    assert run(folder, "redeliver", URL, delivery.id).exit_code == 0
    assert run(folder, "redeliver", URL, "other").exit_code == 1


def test_a_sample_that_is_not_taken_is_told(folder: Path) -> None:
    run(folder, "set", "https://nowhere.invalid/")
    refused = run(folder, "test", "https://nowhere.invalid/", "--kind", "payment.decided")
    assert refused.exit_code == 1
    assert "not taken: the name of the host is not known" in refused.stderr
