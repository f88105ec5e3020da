"""A service whose journal is in PostgreSQL: what a user does with one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tollkeeper.engine.journal.postgres.moving import MovingTarget
from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.service.process import PATIENCE_S, new_key, serving, toll

RULE = """rule gate
  list blocked: string
  condition known when user.id in @blocked then deny
  condition often when count(payments by user.id over 1h) > 2 then challenge
"""
DECIDED = {"analyze": {"bot_behaviour": True, "rule": {"name": "gate"}}}


def good(folder: Path, *arguments: str) -> str:
    done = toll(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def client_of(url: str, key: str) -> httpx.Client:
    return httpx.Client(
        base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=PATIENCE_S
    )


def pay(client: httpx.Client, id_: str, user: str = "ana") -> Any:
    sent = payment(id=id_, user={"id": user, "email": "ana@shop.example"}, **DECIDED)
    answer = client.post("/v1/payments", json=sent)
    assert answer.status_code == 201, answer.text
    return answer.json()["payment"]


def conditions(*payments: Any) -> list[str | None]:
    met = [each["analyses"]["rule"].get("condition") for each in payments]
    return [each and each["id"] for each in met]


def publish(folder: Path, files: Path) -> None:
    (files / "gate.rule").write_text(RULE)
    good(folder, "publish", str(files / "gate.rule"), "--account", "shop")


def test_the_commands_and_the_service_work_on_one_journal(tmp_path: Path, on_database: str) -> None:
    folder, shop = tmp_path / "data", ("--account", "shop")
    # With no service there, a command does it itself; with one, the service does.
    key = new_key(folder, "payments", "rules", "admin")
    with serving(folder) as service, client_of(service.url, key) as client:
        publish(folder, tmp_path)
        (tmp_path / "blocked.csv").write_text("value\nbob\n")
        good(folder, "lists", "import", "blocked", str(tmp_path / "blocked.csv"), *shop)
        assert conditions(*(pay(client, f"p{number}") for number in range(4))) == [
            *(None, None, "often", "often")
        ]
        assert conditions(pay(client, "p4", "bob")) == ["known"]
        assert "taken" in client.post("/v1/payments", json=payment(id="p1")).text
        assert (
            client.patch("/v1/payments/p1", json={"payment": {"status": "failed"}}).json()[
                "payment"
            ]["status"]
            == "failed"
        )
        explained = json.loads(good(folder, "explain", "p2", *shop, "--json"))
        assert "challenge" in json.dumps(explained)
        report = json.loads(good(folder, "backtest", str(tmp_path / "gate.rule"), *shop, "--json"))
        assert "5" in json.dumps(report)
        assert "p4" in good(folder, "payments", *shop)
        good(folder, "erase", "--user", "bob", *shop)
        assert "bob" not in json.dumps(client.get("/v1/payments/p4").json())
        revoked = good(folder, "keys", "create", *shop).strip()
        with client_of(service.url, revoked) as former:
            good(folder, "keys", "revoke", revoked[:13], *shop)
            assert former.get("/v1/payments/p1").status_code == 401
        good(folder, "verify")
    verified = json.loads(good(folder, "verify", "--windows", "--json"))
    assert (verified["entries"]["payment"], verified["faults"]) == (5, [])
    assert not (folder / "tollkeeper.db").exists()


@pytest.mark.parametrize("command", [("backup", "copy"), ("restore", "copy")])
def test_what_works_on_files_alone_says_what_to_do_instead(
    tmp_path: Path, on_database: str, command: tuple[str, str]
) -> None:
    (tmp_path / command[1]).mkdir()
    done = toll(tmp_path / "data", command[0], str(tmp_path / command[1]))
    assert done.returncode == 1
    assert "the database's own tools" in " ".join(done.stderr.split())


def test_a_folder_with_another_key_is_refused_in_words_that_say_what_to_do(
    tmp_path: Path, on_database: str
) -> None:
    new_key(tmp_path / "first", "payments")
    done = toll(tmp_path / "second", "accounts", "create", "other")
    assert done.returncode == 1
    assert "copy it from the folder of a node that has served it" in " ".join(done.stderr.split())


def test_a_folder_is_moved_into_a_database_where_every_decision_is_explained_alike(
    tmp_path: Path, on_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, node = tmp_path / "old", tmp_path / "node"
    monkeypatch.delenv("TOLL_DATABASE")
    key = new_key(old, "payments", "rules", "admin")
    with serving(old) as service, client_of(service.url, key) as client:
        publish(old, tmp_path)
        (tmp_path / "blocked.csv").write_text("value\nbob\n")
        good(old, "lists", "import", "blocked", str(tmp_path / "blocked.csv"), "--account", "shop")
        for number in range(4):
            pay(client, f"p{number}")
        pay(client, "p4", "bob")
        client.patch("/v1/payments/p1", json={"payment": {"status": "failed"}})
        before = client.get("/v1/payments/p3").json()
    monkeypatch.setenv("TOLL_DATABASE", on_database)
    with monkeypatch.context() as patched:
        patched.setattr(MovingTarget, "finish", lambda *_: sys.exit(3))
        assert toll(node, "import", "--from", str(old)).returncode == 3
    refused = toll(node, "accounts", "list")
    assert (refused.returncode, "only partly moved" in " ".join(refused.stderr.split())) == (
        1,
        True,
    )
    moved = toll(node, "import", "--from", str(old))
    assert moved.returncode == 0, moved.stderr
    assert "5 payments explained alike" in " ".join(moved.stderr.split())
    again = toll(node, "import", "--from", str(old))
    assert "holds a journal already" in " ".join(again.stderr.split())
    with serving(node) as service, client_of(service.url, key) as client:
        assert client.get("/v1/payments/p3").json() == before
        assert "taken" in client.post("/v1/payments", json=payment(id="p3")).text
        assert conditions(pay(client, "p5"), pay(client, "p6", "bob")) == ["often", "known"]
    verified = json.loads(good(node, "verify", "--json"))
    assert (verified["entries"]["payment"], verified["faults"]) == (7, [])


def test_a_difference_between_folder_and_database_is_found(
    tmp_path: Path, on_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as in_folder:
        in_folder.delenv("TOLL_DATABASE")
        new_key(tmp_path / "old", "payments")
    add_entries = MovingTarget.add_entries

    def add_damaged(target: MovingTarget, rows: Any) -> None:
        add_entries(target, [(*row[:6], b"another", *row[7:]) for row in rows])

    monkeypatch.setattr(MovingTarget, "add_entries", add_damaged)
    moved = toll(tmp_path / "node", "import", "--from", str(tmp_path / "old"))
    assert moved.returncode == 1
    assert "is not the same in the database" in " ".join(moved.stderr.split())
