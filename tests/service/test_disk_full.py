"""A folder that takes no more: 503 in the one error body, nothing acknowledged is lost, it recovers."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from tollkeeper.bench.crash import differing, payment, rule
from tollkeeper.engine.journal import requests
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.schema import connect
from tollkeeper.engine.open import open_engine
from tollkeeper.engine.publish.accounts import CreateAccount, CreateKey
from tollkeeper.engine.read_folder import Picture, read_folder
from tollkeeper.tests.api.http.service import errors
from tollkeeper.tests.service.process import PATIENCE_S, TOLL, serving, toll

CLIENTS = 8
USERS = 5
MOST = 2000
TURNS = 10


@dataclass
class Shop:
    """What takes writes from the folder and gives them back."""

    folder: Path
    stop_writes: Callable[[], None]
    allow_writes: Callable[[], None]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Shop]:
    """On a file system of its own with 6 MB, which a file then fills."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    ballast = disk / "ballast"

    def fill() -> None:
        with suppress(OSError), ballast.open("wb", 0) as file:
            while True:
                file.write(bytes(4096))

    yield Shop(disk / "data", fill, ballast.unlink)
    # Lazily: the process of the index may end a moment later than its service.
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.fixture
def read_only() -> Iterator[Shop]:
    """A folder whose files then may not be changed, not even by the owner or through open files.

    It is on a disk: a file system in memory takes what is written through open files.
    """
    with TemporaryDirectory(dir="/var/tmp") as disk:
        folder = Path(disk) / "data"
        folder.mkdir()
        yield from immutable(folder)


def immutable(folder: Path) -> Iterator[Shop]:
    def change(how: str) -> int:
        # SQLite maps its `-shm` into memory: a write to it that the file system fails is a SIGBUS.
        files = [each for each in folder.iterdir() if not each.name.endswith("-shm")]
        return subprocess.run(["chattr", how, folder, *files], capture_output=True).returncode

    if change("+i") or change("-i"):
        pytest.skip("files can't be made immutable here")
    yield Shop(folder, lambda: _check(change("+i")), lambda: _check(change("-i")))
    change("-i")


@pytest.fixture(params=["full_disk", "read_only"])
def shop(request: pytest.FixtureRequest) -> Shop:
    found: Shop = request.getfixturevalue(request.param)
    return found


def _check(returned: int) -> None:
    assert returned == 0


@dataclass
class Till:
    """A client that remembers which of its payments were acknowledged, and how the others went."""

    client: httpx.Client
    name: str
    kept: list[str] = field(default_factory=list)
    refused: list[httpx.Response] = field(default_factory=list)

    def pay(self) -> bool:
        """Whether the payment was acknowledged; the next one has the id of one that wasn't."""
        number = len(self.kept)
        id_ = f"{self.name}-{number}"
        answer = self.client.post("/v1/payments", json=payment(id_, f"u{number % USERS}"))
        if answer.status_code == 201:
            self.kept.append(id_)
            return True
        self.refused.append(answer)
        return False

    def pay_until_refused(self) -> None:
        for _ in range(MOST):
            if not self.pay():
                return
        raise AssertionError("the folder took everything")


def test_a_folder_that_takes_no_more_refuses_until_it_does_and_loses_nothing(shop: Shop) -> None:
    headers = {"authorization": f"Bearer {asyncio.run(new_key(shop.folder))}"}
    with (
        serving(shop.folder) as service,
        httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE_S) as client,
    ):
        stored = client.post("/v1/rules/crash/versions?publish=true", content=rule(0))
        assert stored.status_code == 201, stored.text
        tills = [Till(client, f"till{number}") for number in range(CLIENTS)]
        assert all(till.pay() for till in tills for _ in range(TURNS))
        shop.stop_writes()
        others = [write_otherwise(client, tills, 0)]
        # What is written over in the database's log finds its place on a full disk, too.
        while any(answer.is_success for answer in others[-1]):
            others.append(write_otherwise(client, tills, len(others)))
        updated = sum(update.is_success for update, _ in others)
        kept = tills[0].kept[len(others) - 1]
        for refused in [*others[-1], *(answer for till in tills for answer in till.refused)]:
            assert refused.status_code == 503
            assert errors(refused) == [("body", "unavailable")]
            assert refused.headers["retry-after"] == "1"
        assert client.get(f"/v1/payments/{kept}").json()["payment"]["status"] == "initiated"
        assert client.get("/health/live").status_code == 200
        assert client.get("/v1/payments/never").status_code == 404

        told = client.get("/health/ready")
        assert told.status_code == 503
        assert "the journal can't be written" in told.json()["errors"][0]["message"]
        command = toll(shop.folder, "keys", "create", "--account", "shop")
        # It may find its place in the log, as above: then it is done, and else it says why not.
        refused_why = "can't be written" in command.stderr
        assert (command.returncode, refused_why) in ((0, False), (1, True))

        shop.allow_writes()
        while client.get("/health/ready").status_code != 200:
            time.sleep(0.05)
        assert [till.pay() for till in tills] == [True] * CLIENTS
        assert client.patch(
            f"/v1/payments/{kept}", json={"payment": {"status": "failed"}}
        ).is_success

    with (
        serving(shop.folder) as service,
        httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE_S) as client,
    ):
        again = Till(client, "afterwards")
        assert again.pay()
        assert client.get(f"/v1/payments/{kept}").json()["payment"]["status"] == "failed"
    entries = read_folder(shop.folder, everything)
    acknowledged = Counter(id_ for till in [*tills, again] for id_ in till.kept)
    assert Counter(each.id for each in entries if each.kind == Kind.PAYMENT) == acknowledged
    assert sum(each.kind == Kind.UPDATE for each in entries) == updated + 1
    assert differing(entries) == 0


def test_a_command_whose_service_has_no_room_to_answer_ends_with_the_reason(
    full_disk: Shop,
) -> None:
    asyncio.run(new_key(full_disk.folder))
    with closing(connect(full_disk.folder)) as command:
        request = requests.leave_request(command, "{}", "ana", now=1)
        full_disk.stop_writes()
        with pytest.raises(sqlite3.OperationalError, match="full"):
            requests.await_answer(command, lambda: True, request, lambda _share: None)


def write_otherwise(
    client: httpx.Client, tills: list[Till], turn: int
) -> tuple[httpx.Response, httpx.Response]:
    """The answers to an update and a publication, once no till's payment is taken any more."""
    with ThreadPoolExecutor(CLIENTS) as clients:
        for each in [clients.submit(till.pay_until_refused) for till in tills]:
            each.result()
    kept = tills[0].kept[turn]
    return (
        client.patch(f"/v1/payments/{kept}", json={"payment": {"status": "failed"}}),
        client.post("/v1/rules/crash/versions?publish=true", content=rule(1 + turn)),
    )


async def new_key(folder: Path) -> str:
    async with open_engine(folder, "test") as engine:
        verbs = (CreateAccount("shop"), CreateKey("shop", ("payments", "rules")))
        _, made = [await verb.perform(engine, "test", lambda _share: None) for verb in verbs]
        assert made.key is not None
        return made.key


async def everything(picture: Picture) -> list[Entry]:
    return [entry for batch in picture.journal.replay() for entry in batch]


def test_a_read_only_folder_is_not_served_and_the_reason_is_told(read_only: Shop) -> None:
    asyncio.run(new_key(read_only.folder))
    read_only.stop_writes()
    told = subprocess.run(
        [TOLL, "serve", "--data", read_only.folder, "--port", "1"], capture_output=True, text=True
    )
    assert told.returncode == 1
    assert "cannot" in told.stderr
    assert str(read_only.folder) in told.stderr
    assert "Traceback" not in told.stderr
