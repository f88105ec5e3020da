"""Several nodes that share the accounts out: each account as one service would have it, on all nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import copy

import httpx
import pytest

from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal.postgres.shards import address_of_shard
from tollkeeper.engine.journal.source import Database, home_of
from tollkeeper.tests.engine.journal.test_fencing import expire
from tollkeeper.tests.service.process import PATIENCE_S, Running, serving, toll, until
from tollkeeper.tests.service.test_nodes import (
    RULE,
    block,
    clients_of,
    figure,
    stream,
    told,
    whole,
)

ACCOUNTS = ("shop", "store")


@contextmanager
def sharing(folder: Path, count: int) -> Iterator[list[Running]]:
    """Nodes of a database with a shard for each account."""
    with ExitStack() as stack, ThreadPoolExecutor(count) as starting:

        def start(number: int) -> Running:
            (folder / str(number)).mkdir(exist_ok=True)
            if number:
                copy(folder / "0" / KEY_FILE, folder / str(number))
            options = ("--shards", "2") if number == 0 else ()
            return stack.enter_context(serving(folder / str(number), options))

        first = start(0)
        yield [first, *starting.map(start, range(1, count))]


def open_account(folder: Path, name: str) -> str:
    """A key of a new account with a rule."""
    (folder / "gate.rule").write_text(RULE)
    scopes = ("payments", "rules", "admin", "personal:read")
    asked = [part for scope in scopes for part in ("--scope", scope)]
    commands = (
        ("accounts", "create", name),
        ("publish", str(folder / "gate.rule"), "--account", name),
        ("keys", "create", "--account", name, *asked),
    )
    done = [toll(folder, *command) for command in commands]
    assert [each.returncode for each in done] == [0, 0, 0], [each.stderr for each in done]
    return done[-1].stdout.strip()


def owners(folder: Path) -> dict[int, str]:
    """The process that owns each shard."""
    shown = json.loads(toll(folder, "nodes", "--json").stdout)
    return {each["shard"]: each["process"].split()[0] for each in shown if each["owner"]}


def test_accounts_of_several_shards_go_on_at_any_node_as_one_service_would_have_them(
    tmp_path: Path, on_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = address_of_shard(on_database, 2)
    with sharing(tmp_path, 3) as running:
        # The first node gives one of the two away as soon as another can have it.
        until(lambda: len(set(owners(tmp_path / "0").values())), 2)
        keys = {name: open_account(tmp_path / "0", name) for name in ACCOUNTS}
        assert [key.startswith("toll_2.") for key in keys.values()] == [False, True]
        met = {}
        for name, key in keys.items():
            with clients_of(key, running) as shop:
                met[name] = stream(shop, (0, 1, 2), range(8))
                assert shop.clients[0].get("/v1/session").json()["session"]["account"] == name
                sign_in_and_out(shop.clients, key)
        block(tmp_path / "1", "bob", "store")
        require_apart(keys, running)
        until(lambda: [whole(each) for each in (on_database, second)], [3, 3])
        lost = owners(tmp_path / "0")[2]
        (ended,) = [each for each in running if str(each.process.pid) == lost]
        left = [number for number, each in enumerate(running) if each is not ended]
        ended.kill()
        expire(second)
        for name, key in keys.items():
            with clients_of(key, running) as shop:
                met[name] += stream(shop, left, range(8, 16))
        until(lambda: [figure(running[node], "toll_entries_behind") for node in left], [0, 0])
        until(lambda: sum(figure(running[node], "toll_owner") for node in left), 2)
    database = Database(on_database, tmp_path / "1")
    kept = {name: told(home_of(database, name)) for name in ACCOUNTS}
    assert json.loads(toll(tmp_path / "1", "verify", "--json").stdout)["faults"] == []
    listed = json.loads(toll(tmp_path / "1", "accounts", "list", "--json").stdout)
    assert {each["name"] for each in listed} == set(ACCOUNTS)
    monkeypatch.delenv("TOLL_DATABASE")
    for name in ACCOUNTS:
        alone = tmp_path / "embedded" / name
        key = open_account_alone(alone, name)
        with serving(alone) as service, clients_of(key, [service]) as shop:
            assert stream(shop, (0,), range(16)) == met[name]
        assert told(alone) == kept[name]


def open_account_alone(folder: Path, name: str) -> str:
    folder.mkdir(parents=True)
    return open_account(folder, name)


def sign_in_and_out(clients: list[httpx.Client], key: str) -> None:
    """Each at another node."""
    begun = clients[0].post("/v1/sessions", json={"session": {"key": key}})
    assert begun.status_code == 201, begun.text
    token = {"authorization": f"Bearer {begun.json()['session']['token']}"}
    assert clients[1].get("/v1/session", headers=token).status_code == 200
    assert clients[2].delete("/v1/session", headers=token).status_code == 200
    assert clients[0].get("/v1/session", headers=token).status_code == 401


def require_apart(keys: dict[str, str], running: list[Running]) -> None:
    """A list of one account is not the other's, and a key that is none is refused everywhere."""
    for node in running:
        for name, key in keys.items():
            headers = {"authorization": f"Bearer {key}"}
            answer = httpx.get(
                f"{node.url}/v1/lists/blocked/entries",
                headers=headers,
                timeout=PATIENCE_S,
                verify=False,
            )
            assert [each["value"] for each in answer.json()["entries"]] == (
                ["bob"] if name == "store" else []
            )
        for key in ("toll_2.none", "toll_9.none", "toll_none", keys["store"].replace("2.", "")):
            headers = {"authorization": f"Bearer {key}"}
            url = f"{node.url}/v1/session"
            answer = httpx.get(url, headers=headers, timeout=PATIENCE_S, verify=False)
            assert answer.status_code == 401
