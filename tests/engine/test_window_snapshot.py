"""A start reads the windows from their snapshot, and leaves one that does not fit the journal."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import pidfd_send_signal
from typing import Any

import pytest
from structlog.testing import capture_logs

from tollkeeper.engine import window_snapshot
from tollkeeper.engine.privacy.erasure import erase_user
from tollkeeper.engine.privacy.forgetting import rewriting
from tollkeeper.engine.privacy.retention import purge_account
from tollkeeper.engine.velocity.snapshot import FILE, snapshot_sequence
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.engine.window_snapshot import (
    keep_snapshots,
    write_recent,
    write_snapshot,
    write_snapshot_beside,
)
from tollkeeper.tests.engine.happenings import DAY, RULE, bare, happen, pay
from tollkeeper.tests.engine.offline.backtest.shop import open_shop
from tollkeeper.tests.engine.test_open import held

Held = list[tuple[Any, ...]]


async def closed(folder: Path, pays: int = 3) -> tuple[int, Held]:
    """A folder after an orderly end: when that was, and what the windows held."""
    async with open_shop(folder) as shop:
        await shop.publish(RULE)
        await happen(shop, [(1, ("pay", bare()))] * pays)
        return shop.now, await held(shop)


async def opened(folder: Path, now: int) -> tuple[Held, list[str]]:
    """What the windows hold after a start, and what it logged."""
    with capture_logs() as logs:
        async with open_shop(folder, now) as shop:
            found = await held(shop)
    return found, [log["reason"] for log in logs if log["event"] == "snapshot_not_used"]


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The series that a snapshot gave."""
    found: list[str] = []
    original = Windows.restore

    async def restore(self: Windows, fill: Any, series: str, *rest: Any) -> None:
        found.append(series)
        await original(self, fill, series, *rest)

    monkeypatch.setattr(Windows, "restore", restore)
    return found


def test_a_start_after_an_orderly_end_reads_no_payment_for_windows(
    tmp_path: Path, restored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, before = asyncio.run(closed(tmp_path))
    taken: list[int] = []
    original = Windows.fill

    async def fill(self: Windows, fill: Any, records: list[Any]) -> None:
        taken.append(len(records))
        await original(self, fill, records)

    monkeypatch.setattr(Windows, "fill", fill)
    assert asyncio.run(opened(tmp_path, now)) == (before, [])
    assert restored
    assert not sum(taken)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def without_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-22])


def with_more(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def one_bit(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


def another_format(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"windows 3", b"windows 0"))


@pytest.mark.parametrize("damage", [half, without_end, with_more, one_bit, another_format])
def test_a_damaged_snapshot_is_said_to_be_and_left(
    tmp_path: Path, restored: list[str], damage: Callable[[Path], None]
) -> None:
    now, before = asyncio.run(closed(tmp_path))
    damage(tmp_path / FILE)
    found, reasons = asyncio.run(opened(tmp_path, now))
    assert found == before
    assert len(reasons) == 1
    assert not restored


def test_a_snapshot_of_another_journal_is_left(tmp_path: Path, restored: list[str]) -> None:
    now, before = asyncio.run(closed(tmp_path / "one"))
    asyncio.run(closed(tmp_path / "other", pays=9))
    shutil.copy(tmp_path / "other" / FILE, tmp_path / "one" / FILE)
    found, reasons = asyncio.run(opened(tmp_path / "one", now))
    assert found == before
    assert reasons == ["it belongs to another journal or release"]
    assert not restored


def test_a_snapshot_of_a_longer_journal_is_left(tmp_path: Path, restored: list[str]) -> None:
    now, _ = asyncio.run(closed(tmp_path / "live"))
    shutil.copytree(tmp_path / "live", tmp_path / "old")

    async def go_on() -> None:
        async with open_shop(tmp_path / "live", now) as shop:
            await happen(shop, [*[(1, ("write", None))] * 9, (1, ("pay", bare()))])

    asyncio.run(go_on())
    shutil.copy(tmp_path / "live" / FILE, tmp_path / "old" / FILE)
    restored.clear()
    _, reasons = asyncio.run(opened(tmp_path / "old", now))
    assert len(reasons) == 1
    assert not restored


def test_an_erasure_leaves_nothing_of_its_account_in_the_snapshot(tmp_path: Path) -> None:
    async def erase() -> None:
        async with open_shop(tmp_path) as shop:
            await shop.publish(RULE)
            await happen(shop, [(1, ("pay", bare(user="ana@mail.example")))])
            await shop.engine.journal.flush()
            await write_snapshot(shop.engine)
            assert b"ana" in (tmp_path / FILE).read_bytes()
            await erase_user(shop.engine, shop.account, "test", "ana@mail.example")
            assert b"ana" not in (tmp_path / FILE).read_bytes()
        assert b"ana" not in (tmp_path / FILE).read_bytes()

    asyncio.run(erase())


def test_a_kill_right_after_an_erasure_costs_the_other_accounts_nothing(
    tmp_path: Path, restored: list[str]
) -> None:
    live, killed = tmp_path / "live", tmp_path / "killed"

    async def erase() -> tuple[int, Held]:
        async with open_shop(live) as shop:
            await shop.publish(RULE)
            await happen(shop, [(1, ("pay", bare()))] * 3)
            await shop.engine.journal.flush()
            await write_snapshot(shop.engine)
            other = shop.account + 1
            async with rewriting(shop.engine, other):
                assert (live / FILE).exists()
                shutil.copytree(live, killed)
            return shop.now, await held(shop)

    now, before = asyncio.run(erase())
    assert asyncio.run(opened(killed, now)) == (before, [])
    assert restored


def test_a_purge_that_finds_nothing_old_leaves_the_snapshot_alone(tmp_path: Path) -> None:
    async def purge() -> None:
        async with open_shop(tmp_path) as shop:
            await shop.publish(RULE)
            await happen(shop, [(1, ("pay", bare()))])
            await shop.engine.journal.flush()
            await write_snapshot(shop.engine)
            before = (tmp_path / FILE).read_bytes()
            assert await purge_account(shop.engine, shop.account) == 0
            assert (tmp_path / FILE).read_bytes() == before
            assert not shop.engine.snapshot_due.is_set()
            shop.now += 1_000 * DAY
            assert await purge_account(shop.engine, shop.account) == 1
            assert (tmp_path / FILE).read_bytes() != before
            assert shop.engine.snapshot_due.is_set()

    asyncio.run(purge())


def test_it_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    asyncio.run(closed(tmp_path))
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_a_shorter_series_than_is_needed_is_filled_from_the_journal(
    tmp_path: Path, restored: list[str]
) -> None:
    now, _ = asyncio.run(closed(tmp_path))

    async def lengthened() -> Held:
        async with open_shop(tmp_path, now) as shop:
            restored.clear()
            await shop.publish(RULE.replace("over 1h", "over 3h"))
            return await held(shop)

    asyncio.run(lengthened())
    assert not restored


def test_a_start_after_a_crash_goes_on_from_the_last_snapshot(
    tmp_path: Path, restored: list[str]
) -> None:
    live, crashed = tmp_path / "live", tmp_path / "crashed"

    async def crash() -> tuple[int, Held]:
        async with open_shop(live) as shop:
            await shop.publish(RULE)
            await happen(shop, [(1, ("pay", bare()))] * 3)
            writing = asyncio.create_task(write_snapshot_beside(shop.engine))
            for number in range(3):
                await pay(shop, f"later-{number}", bare())
            assert await writing
            await shop.engine.journal.flush()
            shutil.copytree(live, crashed)
            return shop.now, await held(shop)

    now, before = asyncio.run(crash())
    assert asyncio.run(opened(crashed, now)) == (before, [])
    assert restored


def test_a_node_that_joins_is_given_the_last_snapshot_unless_another_is_there_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def joined() -> list[int]:
        given = []
        async with open_shop(tmp_path) as shop:

            async def join() -> None:
                await write_recent(shop.engine)
                given.append(snapshot_sequence(tmp_path / FILE))

            await shop.publish(RULE)
            await pay(shop, "first", bare())
            await join()
            monkeypatch.setattr(window_snapshot, "WORTHWHILE", 1)
            monkeypatch.setattr(window_snapshot, "ENTRY_BYTES", 1)
            await pay(shop, "second", bare())
            await join()
            shop.engine.snapshot_due.set()
            await join()
            monkeypatch.setattr(window_snapshot, "ENTRY_BYTES", 1 << 30)
            shop.engine.snapshot_due.clear()
            await pay(shop, "third", bare())
            await join()
        return given

    first, kept, because_due, because_long = asyncio.run(joined())
    assert (kept, because_due, because_long) == (first, first + 1, first + 2)


def test_a_snapshot_that_counts_an_entry_which_was_lost_is_not_kept(tmp_path: Path) -> None:
    async def lose() -> None:
        async with open_shop(tmp_path) as shop:
            await shop.publish(RULE)
            lost = asyncio.get_running_loop().create_future()
            lost.set_exception(OSError("the disk is full"))
            shop.engine.journal.unsettled = lambda: [lost]
            assert not await write_snapshot_beside(shop.engine)
            assert not (tmp_path / FILE).exists()

    asyncio.run(lose())


def test_an_erasure_stops_a_snapshot_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def erase() -> None:
        async with open_shop(tmp_path) as shop:
            await shop.publish(RULE)
            await happen(shop, [(1, ("pay", bare(user="ana@mail.example")))])
            with monkeypatch.context() as patched:
                # Only the copy of this process writes, and never comes to its end.
                patched.setattr(window_snapshot, "write", lambda *_: time.sleep(600))
                writing = asyncio.create_task(write_snapshot_beside(shop.engine))
                while shop.engine.snapshot_writer is None:
                    assert not writing.done()
                    await asyncio.sleep(0.001)
            await erase_user(shop.engine, shop.account, "test", "ana@mail.example")
            assert not await writing
            assert not (tmp_path / FILE).exists()

    asyncio.run(erase())


def test_an_erasure_stops_a_snapshot_that_is_written_and_waits_for_its_entries(
    tmp_path: Path,
) -> None:
    async def erase() -> None:
        async with open_shop(tmp_path) as shop:
            await shop.publish(RULE)
            await happen(shop, [(1, ("pay", bare(user="ana@mail.example")))])
            unsettled = asyncio.get_running_loop().create_future()
            shop.engine.journal.unsettled = lambda: [unsettled]
            writing = asyncio.create_task(write_snapshot_beside(shop.engine))
            await asyncio.sleep(0)
            assert shop.engine.snapshot_writer is not None
            # The erasure has entries of its own.
            del shop.engine.journal.unsettled
            with suppress(ProcessLookupError):
                while True:
                    pidfd_send_signal(shop.engine.snapshot_writer, 0)
                    await asyncio.sleep(0.01)
            await erase_user(shop.engine, shop.account, "test", "ana@mail.example")
            unsettled.set_result(None)
            assert not await writing
            assert not (tmp_path / FILE).exists()

    asyncio.run(erase())


def test_soon_after_an_erasure_there_is_a_snapshot_without_the_person(tmp_path: Path) -> None:
    async def erase() -> None:
        async with open_shop(tmp_path) as shop:
            await shop.publish(RULE)
            await happen(shop, [(1, ("pay", bare(user=user))) for user in ("ana", "eva")])
            keeping = asyncio.create_task(keep_snapshots(shop.engine, every_s=3600))
            await erase_user(shop.engine, shop.account, "test", "ana")
            async with asyncio.timeout(30):
                while not (tmp_path / FILE).exists():
                    await asyncio.sleep(0.01)
            keeping.cancel()
            stored = (tmp_path / FILE).read_bytes()
            assert b"eva" in stored
            assert b"ana" not in stored

    asyncio.run(erase())


@pytest.mark.parametrize("turns", range(5))
def test_keeping_ends_when_it_is_cancelled_as_a_snapshot_becomes_due(
    tmp_path: Path, turns: int
) -> None:
    async def end() -> None:
        async with open_shop(tmp_path) as shop:
            keeping = asyncio.create_task(keep_snapshots(shop.engine, every_s=3600))
            await asyncio.sleep(0.01)
            shop.engine.snapshot_due.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            keeping.cancel()
            await asyncio.wait([keeping], timeout=30)
            assert keeping.cancelled()

    asyncio.run(end())


def test_a_start_without_a_snapshot_takes_in_each_payment_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, before = asyncio.run(closed(tmp_path))
    (tmp_path / FILE).unlink()
    taken: list[tuple[str, ...]] = []
    original = Windows.fill

    async def fill(self: Windows, fill: Any, records: list[Any]) -> None:
        taken.extend([fill.series] * len(records))
        await original(self, fill, records)

    monkeypatch.setattr(Windows, "fill", fill)
    assert asyncio.run(opened(tmp_path, now)) == (before, [])
    assert Counter(taken) == dict.fromkeys(taken, 3)
