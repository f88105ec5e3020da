"""A disk that is full while first-seen times are spooled: the filling ends with the reason, leaves
nothing behind, and is made once there is room."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tollkeeper.engine.journal.contract import JournalError, Unavailable
from tollkeeper.engine.velocity import first_seen_store
from tollkeeper.engine.velocity.first_seen_file import AGES_FILE
from tollkeeper.tests.engine.happenings import bare, pay
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop
from tollkeeper.tests.engine.test_open import held

pytestmark = pytest.mark.anyio
RULE = """rule checkout
  condition young
    when age(payments by user.id, id) > 99d
      or age(payments by id) > 99d
      or age(payments by id, amount) > 99d
    then deny
"""
OTHER = "rule checkout\n  condition many when count(payments by user.id over 1h) > 99 then deny\n"
PAYMENTS = 2500
ROOM = 160_000
"""Enough for a file of its own and some payments, not for what is spooled: 28 bytes for each of the
rule's times."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 24 MB."""
    made = tmp_path / "disk"
    made.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", made]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield made
    subprocess.run(["umount", "--lazy", made], check=True)


@pytest.fixture(autouse=True)
def spooled_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_seen_store, "FILLED", 50)


def room(disk: Path) -> int:
    return shutil.disk_usage(disk).free


def spools(disk: Path) -> list[str]:
    """The open files on the disk that have no name."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(each.readlink()))
    return [each for each in found if each.startswith(f"{disk}/") and each.endswith("(deleted)")]


def leave_room(disk: Path) -> Path:
    """Fills the disk but for `ROOM` bytes."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", 0) as file:
        while room(disk) > ROOM:
            file.write(bytes(4096))
    return ballast


async def many_payments(shop: Shop) -> None:
    await pay(shop, "p-0", bare())
    journal = shop.engine.journal
    first = await journal.entry(journal.last_sequence())
    assert first is not None
    others = []
    for number in range(1, PAYMENTS):
        shop.now += 1
        sequence, id_ = await shop.engine.windows.take_sequence(), f"p-{number}"
        body = first.body.replace(b'"p-0"', f'"{id_}"'.encode())
        entry = first._replace(
            sequence=sequence, id=id_, arrived=shop.now, time=shop.now, body=body
        )
        others.append(journal.append(entry))
        if len(others) == 500 or number == PAYMENTS - 1:
            await asyncio.gather(*others)
            others.clear()


async def test_a_start_says_that_the_disk_is_full_and_succeeds_once_there_is_room(
    disk: Path,
) -> None:
    folder = disk / "data"
    async with open_shop(folder) as shop:
        await shop.publish(RULE)
        await many_payments(shop)
        now = shop.now
    for each in folder.glob(f"{AGES_FILE}*"):
        each.unlink()
    ballast = leave_room(disk)
    left = []
    for _ in range(3):
        with pytest.raises(JournalError, match="No space left on device"):
            async with open_shop(folder, now):
                pass
        assert not spools(disk)
        left.append(room(disk))
    assert left[1] == left[2]
    ballast.unlink()
    async with open_shop(folder, now) as shop:
        found = await held(shop)
    for each in folder.glob(f"{AGES_FILE}*"):
        each.unlink()
    async with open_shop(folder, now) as shop:
        assert await held(shop) == found


async def test_a_publication_that_finds_no_room_leaves_the_service_as_it_was(disk: Path) -> None:
    folder = disk / "data"
    async with open_shop(folder) as shop:
        await shop.publish(OTHER)
        await many_payments(shop)
        now = shop.now
    async with open_shop(folder, now) as shop:
        ballast = leave_room(disk)
        for number in range(3):
            with pytest.raises(Unavailable, match="No space left on device"):
                await shop.publish(RULE)
            assert not spools(disk)
            await pay(shop, f"meanwhile-{number}", bare())
        ballast.unlink()
        await shop.publish(RULE)
        found, now = await held(shop), shop.now
    for each in folder.glob(f"{AGES_FILE}*"):
        each.unlink()
    async with open_shop(folder, now) as shop:
        assert await held(shop) == found
