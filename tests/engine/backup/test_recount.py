"""What is kept of windows beside the journal is what a recount of the journal gives."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings

from tollkeeper.engine.backup.recount import recount
from tollkeeper.engine.velocity import snapshot
from tollkeeper.engine.velocity.contract import SeriesPart
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.engine.happenings import RULE, bare, happen, steps
from tollkeeper.tests.engine.offline.backtest.shop import open_shop

EXAMPLES = int(os.environ.get("RECOUNT_EXAMPLES", "12"))
PAYS = [(1, ("pay", bare(amount=amount))) for amount in (1, 2, 3)]


async def closed(folder: Path, happened: list[Any]) -> None:
    """A folder after an orderly end."""
    async with open_shop(folder) as shop:
        await shop.publish(RULE)
        await happen(shop, happened)


@settings(max_examples=EXAMPLES, deadline=None)
@given(steps)
def test_whatever_happened_a_recount_gives_what_the_files_hold(happened: list[Any]) -> None:
    with TemporaryDirectory() as place:
        asyncio.run(closed(Path(place), happened))
        found = recount(Path(place))
        assert found.faults == []
        assert found.series


def test_a_snapshot_with_one_element_more_or_less_is_named(
    tmp_path: Path, monkeypatch: Any
) -> None:
    kept = Windows.snapshot

    def without_last(windows: Windows) -> Any:
        for part in kept(windows):
            keys, counts, times, values = part.columns
            if counts == [3]:
                columns = (keys, [2], times[:-8], values[:-1])
                yield SeriesPart(*part[:4], columns)
            else:
                yield part

    monkeypatch.setattr(Windows, "snapshot", without_last)
    asyncio.run(closed(tmp_path, PAYS))
    monkeypatch.undo()
    told = [fault.text for fault in recount(tmp_path).faults]
    assert told
    assert all("has 2 elements of the series" in text for text in told)
    assert all("a recount of the journal 3" in text for text in told)


def test_first_seen_times_that_were_changed_are_named(tmp_path: Path) -> None:
    asyncio.run(closed(tmp_path, PAYS))
    with closing(sqlite3.connect(tmp_path / "ages.db", isolation_level=None)) as connection:
        connection.execute("UPDATE moments SET time = time + 1000")
    told = [fault.text for fault in recount(tmp_path).faults]
    assert told
    assert all(text.startswith("`ages.db` has ") and "others" in text for text in told)


def test_a_snapshot_that_can_t_be_used_is_named(tmp_path: Path) -> None:
    asyncio.run(closed(tmp_path, PAYS))
    path = tmp_path / snapshot.FILE
    path.write_bytes(path.read_bytes()[:-9])
    [fault] = recount(tmp_path).faults
    assert str(path) in fault.text


def test_a_folder_without_such_files_has_nothing_to_recount(tmp_path: Path) -> None:
    asyncio.run(closed(tmp_path, PAYS))
    for path in (tmp_path / snapshot.FILE, tmp_path / "ages.db"):
        path.unlink()
    assert (recount(tmp_path).series, recount(tmp_path).faults) == (0, [])
