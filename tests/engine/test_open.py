"""After a restart, or a kill, windows and ages hold what they held: whatever happened before."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tollkeeper.engine import filling
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal import reads
from tollkeeper.engine.privacy import erasure
from tollkeeper.engine.privacy.retention import purge_account
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.velocity import first_seen_store
from tollkeeper.engine.velocity.first_seen_file import AGES_FILE
from tollkeeper.engine.velocity.snapshot import FILE
from tollkeeper.engine.window_snapshot import write_snapshot
from tollkeeper.tests.engine.happenings import CARDS, DAY, RULE, USERS, bare, happen, pay, steps
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop


async def held(shop: Shop) -> list[tuple[Any, ...]]:
    """What every aggregate of the rule says of every group, now and a while ago."""
    [rule] = shop.engine.active[shop.account].rules.values()
    groups = [(each,) for each in (*USERS, *(f"40000000-{card}" for card in CARDS), "m")]
    return [
        await shop.engine.windows.read(
            shop.account, at, [(window, group) for window in rule.reading.plan.windows]
        )
        for group in groups
        for at in (shop.now, shop.now - 2 * HOUR)
    ]


def killed(folder: Path, to: Path) -> Path:
    """The folder as a process that is killed now leaves it."""
    to.mkdir()
    for path in folder.iterdir():
        if path.suffix in (".db", ".db-wal", ".snapshot"):
            shutil.copy(path, to / path.name)
    return to


async def keep_snapshot(shop: Shop) -> None:
    await shop.engine.journal.flush()
    await write_snapshot(shop.engine)


async def compare(folder: Path, happened: list[Any]) -> None:
    async with open_shop(folder / "live") as shop:
        await shop.do(ChangeSettings("shop", {"retention_days": 6}))
        await shop.publish(RULE)
        half = len(happened) // 2
        await happen(shop, [*happened[:half], (0, ("call", keep_snapshot)), *happened[half:]])
        now, live = shop.now, await held(shop)
        killed_now = killed(folder / "live", folder / "killed")
    for each in (folder / "live", killed_now):
        async with open_shop(each, now) as again:
            assert await held(again) == live


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(happened=steps, tight=st.booleans())
@example(
    [(0, ("pay", bare())), (0, ("write", None)), (0, ("update", (0, "declined", "2222")))], False
)
@example(
    [(0, ("pay", bare())), (0, ("write", None)), (1, ("pay", bare())), (0, ("erase", "u"))], True
)
@example(
    [
        (0, ("pay", bare())),
        (0, ("write", None)),
        (4 * DAY, ("pay", bare())),
        (4 * DAY, ("purge", None)),
    ],
    False,
)
def test_rebuilt_windows_are_the_live_ones(
    monkeypatch: pytest.MonkeyPatch, happened: list[Any], tight: bool
) -> None:
    with TemporaryDirectory() as folder, monkeypatch.context() as patched:
        if tight:
            patched.setattr(reads, "STRETCH", 2)
            patched.setattr(filling, "STEP", 1)
            patched.setattr(first_seen_store, "FILLED", 1)
        asyncio.run(compare(Path(folder), happened))


async def cut_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed_here(*_: Any) -> Any:
        raise SystemError

    async with open_shop(folder / "live") as shop:
        await shop.publish(RULE)
        await happen(shop, [(0, ("pay", bare())), (1, ("pay", bare())), (0, ("write", None))])
        before = await held(shop)
        monkeypatch.setattr(erasure, "uncount", killed_here)
        with pytest.raises(SystemError):
            await erasure.erase_user(shop.engine, shop.account, "test", "u")
        left = killed(folder / "live", folder / "killed")
        anew = killed(folder / "live", folder / "anew")
        now = shop.now
    (anew / "ages.db").unlink()
    found = []
    for each in (left, anew):
        async with open_shop(each, now) as again:
            found.append(await held(again))
    assert found[0] == found[1] != before


def test_what_an_erasure_left_undone_is_not_in_the_ages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(cut_off(tmp_path, monkeypatch))


@pytest.mark.parametrize("purges", [False, True])
@pytest.mark.parametrize("name", [AGES_FILE, FILE])
def test_a_file_of_a_past_that_a_restored_journal_lost_is_left_once_it_has_grown_as_far(
    tmp_path: Path, name: str, purges: bool
) -> None:
    live, restored = tmp_path / "live", tmp_path / "restored"

    async def go_on(folder: Path, now: int, ids: str, count: int, user: str) -> tuple[int, Any]:
        async with open_shop(folder, now) as shop:
            await shop.publish(RULE)
            for number in range(count):
                shop.now += 1
                await pay(shop, f"{ids}-{number}", bare(user=user))
            return shop.now, await held(shop)

    async def purge(folder: Path, now: int) -> tuple[int, Any]:
        async with open_shop(folder, now) as shop:
            await shop.do(ChangeSettings("shop", {"retention_days": 1}))
            assert await purge_account(shop.engine, shop.account) == 12
            return shop.now, await held(shop)

    now, _ = asyncio.run(go_on(live, Shop.now, "before", 3, "u"))
    shutil.copytree(live, restored, ignore=shutil.ignore_patterns(f"{AGES_FILE}*", FILE))
    asyncio.run(go_on(live, now, "lost", 3, "v"))
    now, expected = asyncio.run(go_on(restored, now + HOUR, "after", 9, "u"))
    if purges:
        now, expected = asyncio.run(purge(restored, now + DAY + HOUR))
    shutil.copy(live / name, restored / name)
    assert asyncio.run(go_on(restored, now, "", 0, "")) == (now, expected)
