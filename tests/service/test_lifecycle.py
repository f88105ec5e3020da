"""The life cycle as commands, on a folder that a service holds and on one that nobody does.

Commands run in this process; what is killed, and what races, has a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.cli import main
from tollkeeper.engine.journal import lock as folder_lock
from tollkeeper.engine.journal.lock import COMMAND_PURPOSE, SERVICE_PURPOSE, lock
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.publish import queue
from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.service.process import PATIENCE_S, Process, Running, begin, serving

RULE = """rule gate
  list blocked: string
  condition known when user.id in @blocked then deny
  condition large when amount > 1000 then challenge
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}
LINES = 20_000


@dataclass(frozen=True)
class Shop:
    """An account of a data folder, with a key of every scope, and a folder for its files."""

    folder: Path
    account: str
    key: str
    files: Path

    def run(self, *arguments: str) -> Result:
        """A command for the account, to its end."""
        return toll(self.folder, *arguments, "--account", self.account)

    def good(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def asked(self, *arguments: str) -> Any:
        return json.loads(self.good(*arguments, "--json"))

    def begin(self, *arguments: str) -> Process:
        """A command for the account, in a process of its own."""
        whole = (*arguments, "--account", self.account, "--data", str(self.folder))
        return begin(self.files / "begun.log", *whole)

    def publish(self, text: str = RULE, *options: str) -> None:
        file = self.files / "gate.rule"
        file.write_text(text)
        self.good("publish", str(file), *options)

    def listed(self) -> list[str]:
        lines = self.good("lists", "export", "blocked").split()
        return [line.split(",")[0] for line in lines[1:]]

    def client(self, url: str) -> httpx.Client:
        return httpx.Client(
            base_url=url, headers={"authorization": f"Bearer {self.key}"}, timeout=PATIENCE_S
        )


def toll(folder: Path, *arguments: str) -> Result:
    done = CliRunner().invoke(main, [*arguments, "--data", str(folder)])
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done


def open_shop(folder: Path, account: str, files: Path) -> Shop:
    assert toll(folder, "accounts", "create", account).exit_code == 0
    scopes = [part for scope in ("payments", "rules", "admin") for part in ("--scope", scope)]
    key = toll(folder, "keys", "create", "--account", account, *scopes).stdout.strip()
    return Shop(folder, account, key, files)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A shop whose folder nobody holds."""
    return open_shop(tmp_path / "data", "shop", tmp_path)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Running]]:
    """One service, in a process of its own, for all tests that leave it alive."""
    folder = tmp_path_factory.mktemp("served") / "data"
    with serving(folder) as service:
        yield folder, service


@pytest.fixture
def served(
    running: tuple[Path, Running], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Shop, httpx.Client]]:
    """A shop of its own in the folder that the service holds, and a client."""
    folder, service = running
    shop = open_shop(folder, f"shop-{abs(hash(request.node.name))}", tmp_path)
    with shop.client(service.url) as client:
        yield shop, client


def write_csv(path: Path, prefix: str, lines: int = LINES) -> Path:
    path.write_text("value\n" + "".join(f"{prefix}-{number}\n" for number in range(lines)))
    return path


def count(folder: Path, query: str) -> int:
    with closing(sqlite3.connect(folder / "tollkeeper.db", timeout=PATIENCE_S)) as connection:
        return int(connection.execute(query).fetchone()[0])


def kill_once(folder: Path, process: Process, query: str) -> None:
    """SIGKILL as soon as the query counts something in the folder's database."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(sqlite3.connect(folder / "tollkeeper.db", timeout=PATIENCE_S)) as connection:
        while not connection.execute(query).fetchone()[0] and time.monotonic() < deadline:
            assert process.poll() is None, "it was over before it could be killed"
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE_S)


STAGED = (
    "SELECT count(*) FROM list_contents WHERE from_place IS NULL AND id IN"
    " (SELECT content FROM list_entries)"
)


def test_an_import_replaces_all_and_says_each_bad_line(shop: Shop) -> None:
    shop.good("lists", "make", "blocked", "--type", "number")
    shop.good("lists", "add", "blocked", "1", "2")
    file = shop.files / "numbers.csv"
    file.write_text("value,note\n" + "7,ok\n" * 1500 + "3,ok\nmany,\n4,ok,too\n5,\n")
    refused = shop.run("lists", "import", "blocked", str(file))
    assert refused.exit_code == 1
    assert "line 1503: `value`: `many` is not a number" in refused.stderr
    assert "line 1504: the line has 3 cells, the header 2" in refused.stderr
    assert shop.listed() == ["1", "2"]
    assert count(shop.folder, STAGED) == 0
    file.write_text("value,note\n3,ok\n5,\n")
    shop.good("lists", "import", "blocked", str(file))
    assert shop.good("lists", "export", "blocked").split()[1:] == ["3,,ok", "5,,"]


def test_a_killed_import_leaves_the_list_as_it_was(shop: Shop) -> None:
    cut_off_and_done_again(shop)


def test_a_killed_import_leaves_the_list_of_a_running_service_as_it_was(
    served: tuple[Shop, httpx.Client],
) -> None:
    shop, client = served
    shop.publish()
    shop.good("lists", "add", "blocked", "u-1", "u-2")
    assert met(client, "u-1") == "known"
    cut_off_and_done_again(shop)
    assert met(client, "u-1") is None
    assert met(client, f"n-{LINES - 1}") == "known"


def cut_off_and_done_again(shop: Shop) -> None:
    """What the killed import staged is gone once the next one has been."""
    shop.publish()
    shop.good("lists", "add", "blocked", "u-1", "u-2")
    file, pipe = write_csv(shop.files / "new.csv", "n"), shop.files / "pipe"
    os.mkfifo(pipe)
    importing = shop.begin("lists", "import", "blocked", str(pipe))
    # It waits for more: so it is never over before it is killed.
    with pipe.open("wb", buffering=0) as feed:
        feed.write(file.read_bytes())
        kill_once(shop.folder, importing, STAGED)
    assert shop.listed() == ["u-1", "u-2"]
    assert count(shop.folder, STAGED) == 1
    shop.good("lists", "import", "blocked", str(file))
    assert count(shop.folder, STAGED) == 0
    assert len(shop.listed()) == LINES


def met(client: httpx.Client, user: str) -> str | None:
    body = payment(analyze=ASKED, user={"id": user})
    rule = client.post("/v1/payments", json=body).json()["payment"]["analyses"]["rule"]
    return None if rule is None or rule["condition"] is None else rule["condition"]["id"]


@pytest.mark.parametrize(
    "moment",
    [
        "SELECT count(*) FROM requests",
        "SELECT count(*) FROM journal WHERE kind = 4 AND instr(body, '\"number\":2')",
    ],
    ids=["asked", "stored"],
)
def test_a_service_killed_while_it_publishes_serves_the_old_version_or_the_new(
    shop: Shop, moment: str
) -> None:
    shop.publish()
    second = shop.files / "second.rule"
    second.write_text(
        RULE.replace("amount > 1000", "count(payments by merchant.id over 90d) > 1000")
    )
    with serving(shop.folder) as service, shop.client(service.url) as client:
        for _ in range(50):
            client.post("/v1/payments", json=payment())
        publishing = shop.begin("publish", str(second))
        kill_once(shop.folder, service.process, moment)
        publishing.wait(PATIENCE_S)
    active, chosen = asyncio.run(chosen_after_restart(shop))
    assert active in (1, 2)
    assert chosen == active
    shop.good("publish", str(second))
    assert [row["state"] for row in shop.asked("versions", "gate")] == ["active", ""]


async def chosen_after_restart(shop: Shop) -> tuple[int, int]:
    """The active version, and the one that decided a payment."""
    async with restarted(shop) as client:
        rule = (await client.get("/v1/rules/gate")).json()["rule"]
        answer = await client.post("/v1/payments", json=payment(analyze=ASKED))
        return rule["active"], answer.json()["payment"]["analyses"]["rule"]["version"]


@asynccontextmanager
async def restarted(shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    """The service again, on what was left in the folder."""
    async with open_engine(shop.folder, SERVICE_PURPOSE) as engine:
        await rebuild(engine, lambda _share: None)
        headers = {"authorization": f"Bearer {shop.key}"}
        transport = httpx.ASGITransport(public_app(service_of(engine)))  # type: ignore[arg-type]
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", headers=headers
        ) as client:
            yield client


def test_each_command_works_beside_a_running_service(served: tuple[Shop, httpx.Client]) -> None:
    tell_the_story(served[0])


def test_each_command_works_on_a_folder_that_nobody_holds(shop: Shop) -> None:
    tell_the_story(shop)


def tell_the_story(shop: Shop) -> None:
    """Each command says what an author would look for."""
    shop.publish()
    shop.publish(RULE.replace("1000", "500"), "--draft")
    assert [row["state"] for row in shop.asked("versions", "gate")] == ["", "active"]
    shop.good("activate", "gate", "2")
    shop.good("rollout", "set", "gate", "1", "--percent", "10")
    shop.good("shadow", "set", "gate", "1")
    states = [row["state"] for row in shop.asked("versions", "gate")]
    assert states == ["active", "rollout 10%, shadow"]
    assert shop.asked("shadow", "report", "gate")["evaluated"] == 0
    shop.good("shadow", "clear", "gate")
    shop.good("rollout", "clear", "gate")
    changed = "changed condition `large` threshold: 1000 → 500"
    assert changed in shop.good("diff", "gate", "1", "2")
    shop.good("lists", "add", "blocked", "u-9", "--note", "by hand")
    (entry,) = shop.asked("lists", "show", "blocked")["entries"]
    assert (entry["value"], entry["note"]) == ("u-9", "by hand")
    assert shop.run("lists", "remove", "blocked", "gone").exit_code == 1
    shop.good("lists", "remove", "blocked", "u-9")
    asked = ("thresholds.deny=0.9", "default_rule=gate")
    settings = toll(shop.folder, "accounts", "set", shop.account, *asked)
    assert settings.exit_code == 0, settings.stderr
    shown = json.loads(toll(shop.folder, "accounts", "show", shop.account).stdout)
    assert (shown["thresholds"]["deny"], shown["default_rule"]) == (0.9, "gate")
    shop.good("deactivate", "gate")
    log = shop.good("audit")
    assert "…" not in log
    assert "thresholds" in log
    actions = [item["action"] for item in shop.asked("audit", "--limit", "4")["audit"]]
    assert actions == ["deactivated", "settings_changed", "entries_changed", "entries_changed"]
    assert shop.asked("keys", "list")[0]["scopes"] == "payments rules admin"
    accounts = json.loads(toll(shop.folder, "accounts", "list", "--json").stdout)
    assert shop.account in [row["name"] for row in accounts]
    assert shop.asked("decisions")["decisions"] == []
    shop.good("lists", "add", "blocked", "nobody")
    told = shop.run("erase", "--user", "nobody").stderr
    assert "erased from 0 payments, 0 events and 0 alerts" in told
    assert "1 entry removed from the list blocked" in told


REFUSED = [
    (("activate", "gate", "7"), "has no version 7, only 1 to 1"),
    (("diff", "gate", "1", "2"), "has no version 2, only 1 to 1"),
    (("shadow", "report", "gate"), "has no shadow"),
    (("lists", "show", "nobody"), "there is no list `nobody`"),
    (("explain", "nobody"), "no payment has this id"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED, ids=lambda given: given[0])
def test_what_is_not_there_is_said_in_one_line(
    shop: Shop, arguments: tuple[str, ...], said: str
) -> None:
    shop.publish()
    done = shop.run(*arguments)
    assert done.exit_code == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_in_use_says_by_whom(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "QUEUE_PATIENCE_S", 0.0)
    monkeypatch.setattr(folder_lock, "COMMAND_PATIENCE_S", 0.0)
    with lock(shop.folder, COMMAND_PURPOSE):
        refused = shop.run("deactivate", "gate")
        no_service = toll(shop.folder, "serve", "--port", "1")
    assert (refused.exit_code, no_service.exit_code) == (1, 1)
    assert f"`{shop.folder}` is in use by another command, process " in refused.stderr
    assert "in use by another command" in no_service.stderr


def test_a_decision_is_explained_for_a_terminal(served: tuple[Shop, httpx.Client]) -> None:
    shop, client = served
    shop.publish()
    client.post("/v1/payments", json=payment(id="p/1", amount=1200, analyze=ASKED))
    told = shop.good("explain", "p/1")
    assert told.startswith("challenge by large, score ")
    assert "amount > 1000 is true, as amount is 1200.00" in told


def test_an_erased_person_is_in_no_file_of_a_running_service(
    served: tuple[Shop, httpx.Client],
) -> None:
    shop, client = served
    shop.publish()
    person = {"id": "u-erase-me", "email": "erase-me@mail.example"}
    client.post("/v1/payments", json=payment(id="p-1", analyze=ASKED, user=person))
    shop.good("lists", "add", "blocked", *person.values())
    assert b"erase-me" in every_byte(shop.folder)
    told = shop.run("erase", "--user", "u-erase-me").stderr
    assert "erased from 1 payment, 0 events and 0 alerts" in told
    assert "2 entries removed from the list blocked" in told
    assert b"erase-me" not in every_byte(shop.folder)


def every_byte(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_authors_at_once_get_a_version_each_or_a_conflict(
    served: tuple[Shop, httpx.Client],
) -> None:
    shop, client = served
    shop.publish()
    texts = [RULE.replace("1000", str(2000 + number)) for number in range(8)]

    def store(text: str, query: str = "") -> tuple[int, int | None]:
        answer = client.post(f"/v1/rules/gate/versions{query}", content=text)
        return answer.status_code, answer.json().get("rule", {}).get("version")

    with ThreadPoolExecutor(8) as authors:
        expecting = list(authors.map(lambda text: store(text, "?expected=1"), texts))
        statuses = sorted(status for status, _ in expecting)
        assert statuses == [201] + [409] * 7
        stored = list(authors.map(store, texts))
    numbers = [version for _, version in stored]
    assert {status for status, _ in stored} == {201}
    assert len(set(numbers)) == 8
    for number, text in zip(numbers, texts, strict=True):
        shown = client.get(f"/v1/rules/gate/versions/{number}").json()["rule"]
        assert shown["text"] == text


def test_commands_at_once_get_a_version_each_or_a_conflict(
    served: tuple[Shop, httpx.Client],
) -> None:
    shop, _ = served
    shop.publish()
    files = [shop.files / f"author-{number}.rule" for number in range(2)]
    for number, file in enumerate(files):
        file.write_text(RULE.replace("1000", str(2000 + number)))
    authors = [shop.begin("publish", str(file), "--draft", "--expected", "1") for file in files]
    assert sorted(author.wait(PATIENCE_S) for author in authors) == [0, 1]
    authors = [shop.begin("publish", str(file), "--draft") for file in files]
    assert [author.wait(PATIENCE_S) for author in authors] == [0, 0]
    assert len(shop.asked("versions", "gate")) in (3, 4)
