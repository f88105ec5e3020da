"""The life cycle as commands, on a folder that a service holds and on one that nobody does."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tollkeeper.tests.api.service import payment
from tollkeeper.tests.service.process import PATIENCE_S, TOLL, new_key, serving, toll

RULE = """rule gate
  list blocked: string
  condition known when user.id in @blocked then deny
  condition large when amount > 1000 then challenge
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}
LINES = 20_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def key(folder: Path) -> str:
    return new_key(folder, "payments", "rules", "admin")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return toll(folder, *arguments, "--account", "shop")


def good(folder: Path, *arguments: str) -> str:
    done = run(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def publish(folder: Path, text: str = RULE, *options: str) -> None:
    file = folder.parent / "gate.rule"
    file.write_text(text)
    good(folder, "publish", str(file), *options)


def write_csv(path: Path, prefix: str, lines: int = LINES) -> Path:
    path.write_text("value\n" + "".join(f"{prefix}-{number}\n" for number in range(lines)))
    return path


def listed(folder: Path) -> list[str]:
    return good(folder, "lists", "export", "blocked").split()[1:]


def beginning(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [TOLL, *arguments, "--account", "shop", "--data", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_once(folder: Path, process: subprocess.Popen[bytes], query: str) -> None:
    """SIGKILL as soon as the query finds something in the folder's database."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(sqlite3.connect(folder / "tollkeeper.db", timeout=5)) as connection:
        while not connection.execute(query).fetchone() and time.monotonic() < deadline:
            assert process.poll() is None, "it was over before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE_S)


SOME_STAGED = (
    "SELECT 1 FROM list_contents WHERE from_place IS NULL AND id IN"
    " (SELECT content FROM list_entries)"
)


def test_an_import_replaces_all_and_says_each_bad_line(folder: Path, key: str) -> None:
    good(folder, "lists", "make", "blocked", "--type", "number")
    good(folder, "lists", "add", "blocked", "1", "2")
    file = folder.parent / "numbers.csv"
    file.write_text("value,note\n3,ok\nmany,\n4,ok,too\n5,\n")
    refused = run(folder, "lists", "import", "blocked", str(file))
    assert refused.returncode == 1
    assert "line 3: `value`: `many` is not a number" in refused.stderr
    assert "line 4: the line has 3 cells, the header 2" in refused.stderr
    assert [line.split(",")[0] for line in listed(folder)] == ["1", "2"]
    file.write_text("value,note\n3,ok\n5,\n")
    good(folder, "lists", "import", "blocked", str(file))
    assert listed(folder) == ["3,,ok", "5,,"]


@pytest.mark.parametrize("with_a_service", [False, True])
def test_a_killed_import_leaves_the_list_as_it_was(
    folder: Path, key: str, with_a_service: bool
) -> None:
    publish(folder)
    good(folder, "lists", "add", "blocked", "u-1", "u-2")
    file = write_csv(folder.parent / "new.csv", "n")

    def story() -> None:
        kill_once(folder, beginning(folder, "lists", "import", "blocked", str(file)), SOME_STAGED)
        assert [line.split(",")[0] for line in listed(folder)] == ["u-1", "u-2"]
        good(folder, "lists", "import", "blocked", str(file))
        assert len(listed(folder)) == LINES

    if not with_a_service:
        story()
        return
    with serving(folder) as service, client_of(service.url, key) as client:
        assert met(client, "u-1") == "known"
        story()
        assert met(client, "u-1") is None
        assert met(client, f"n-{LINES - 1}") == "known"


def client_of(url: str, key: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"})


def met(client: httpx.Client, user: str) -> str | None:
    body = payment(analyze=ASKED, user={"id": user})
    rule = client.post("/v1/payments", json=body).json()["payment"]["analyses"]["rule"]
    return None if rule is None or rule["condition"] is None else rule["condition"]["id"]


@pytest.mark.parametrize(
    "moment",
    [
        "SELECT 1 FROM requests WHERE action LIKE '%Store%'",
        "SELECT 1 FROM journal WHERE kind = 4 AND instr(body, '\"number\":2')",
    ],
)
def test_a_service_killed_while_it_publishes_serves_the_old_version_or_the_new(
    folder: Path, key: str, moment: str
) -> None:
    publish(folder)
    second = folder.parent / "second.rule"
    second.write_text(
        RULE.replace("amount > 1000", "count(payments by merchant.id over 90d) > 1000")
    )
    with serving(folder) as service, client_of(service.url, key) as client:
        for _ in range(50):
            client.post("/v1/payments", json=payment())
        publishing = beginning(folder, "publish", str(second))
        kill_once(folder, service.process, moment)
        publishing.wait(PATIENCE_S)
    with serving(folder) as service, client_of(service.url, key) as client:
        rule = client.get("/v1/rules/gate").json()["rule"]
        assert rule["active"] in (1, 2)
        body = payment(analyze=ASKED)
        chosen = client.post("/v1/payments", json=body).json()["payment"]["analyses"]["rule"]
        assert chosen["version"] == rule["active"]
        good(folder, "publish", str(second))
        assert client.get("/v1/rules/gate").json()["rule"]["active"] == 2


def test_each_command_works_beside_a_running_service(folder: Path, key: str) -> None:
    with serving(folder):
        tell_the_story(folder)


def tell_the_story(folder: Path) -> None:
    """Each command says what an author would look for."""
    publish(folder)
    publish(folder, RULE.replace("1000", "500"), "--draft")
    assert [row["state"] for row in asked(folder, "versions", "gate")] == ["", "active"]
    good(folder, "activate", "gate", "2")
    good(folder, "rollout", "set", "gate", "1", "--percent", "10")
    good(folder, "shadow", "set", "gate", "1")
    states = [row["state"] for row in asked(folder, "versions", "gate")]
    assert states == ["active", "rollout 10%"]
    assert asked(folder, "shadow", "report", "gate")["evaluated"] == 0
    good(folder, "shadow", "clear", "gate")
    good(folder, "rollout", "clear", "gate")
    assert "changed condition `large` threshold: 1000 → 500" in good(
        folder, "diff", "gate", "1", "2"
    )
    good(folder, "lists", "add", "blocked", "u-9", "--note", "by hand")
    (entry,) = asked(folder, "lists", "show", "blocked")["entries"]
    assert (entry["value"], entry["note"]) == ("u-9", "by hand")
    assert run(folder, "lists", "remove", "blocked", "gone").returncode == 1
    good(folder, "lists", "remove", "blocked", "u-9")
    settings = toll(folder, "accounts", "set", "shop", "thresholds.deny=0.9", "default_rule=gate")
    assert settings.returncode == 0, settings.stderr
    shown = json.loads(toll(folder, "accounts", "show", "shop").stdout)
    assert (shown["thresholds"]["deny"], shown["default_rule"]) == (0.9, "gate")
    good(folder, "deactivate", "gate")
    actions = [item["action"] for item in asked(folder, "audit", "--limit", "4")["audit"]]
    assert actions == ["deactivated", "settings_changed", "entries_changed", "entries_changed"]
    assert asked(folder, "keys", "list")[0]["scopes"].split()[-1] in ("admin", "payments")
    assert [row["name"] for row in listed_accounts(folder)] == ["shop"]
    assert asked(folder, "decisions")["decisions"] == []
    assert "erased from 0 payments" in run(folder, "erase", "--user", "nobody").stderr


def asked(folder: Path, *arguments: str) -> Any:
    return json.loads(good(folder, *arguments, "--json"))


def listed_accounts(folder: Path) -> Any:
    return json.loads(toll(folder, "accounts", "list", "--json").stdout)


REFUSED = [
    (("activate", "gate", "7"), "has no version 7, only 1 to 1"),
    (("diff", "gate", "1", "2"), "has no version 2, only 1 to 1"),
    (("shadow", "report", "gate"), "has no shadow"),
    (("lists", "show", "nobody"), "there is no list `nobody`"),
    (("explain", "nobody"), "no payment has this id"),
]


def test_what_is_not_there_is_said_in_one_line(folder: Path, key: str) -> None:
    publish(folder)
    for arguments, said in REFUSED:
        done = run(folder, *arguments)
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_a_decision_is_explained_for_a_terminal(folder: Path, key: str) -> None:
    publish(folder)
    with serving(folder) as service, client_of(service.url, key) as client:
        client.post("/v1/payments", json=payment(id="p/1", amount=1200, analyze=ASKED))
        beside = good(folder, "explain", "p/1")
    alone = good(folder, "explain", "p/1")
    assert alone == beside
    assert "challenge" in alone
    assert "condition `large` was met" in alone
    assert "amount > 1000 = true" in alone


def test_two_authors_at_once_get_two_versions_or_a_conflict(folder: Path, key: str) -> None:
    publish(folder)
    texts = [RULE.replace("1000", str(2000 + number)) for number in range(8)]
    files = [folder.parent / f"author-{number}.rule" for number in range(8)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)

    def codes(*options: str) -> list[int]:
        authors = [beginning(folder, "publish", str(file), *options) for file in files]
        return [author.wait(PATIENCE_S) for author in authors]

    def stored() -> Iterator[str]:
        for number in range(len(asked(folder, "versions", "gate")), 0, -1):
            yield client.get(f"/v1/rules/gate/versions/{number}").json()["rule"]["text"]

    with serving(folder) as service, client_of(service.url, key) as client:
        assert codes("--draft", "--expected", "1").count(0) == 1
        assert codes("--draft") == [0] * 8
        found = list(stored())
    assert set(found) == {RULE, *texts}
    assert len(found) in (9, 10)
