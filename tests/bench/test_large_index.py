"""An index that a bench fills in bulk is the one that its own writer makes of the same journal."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tollkeeper.bench.large_index import (
    Repetition,
    draw,
    fill_index,
    fill_journal,
    repeat_index,
    repeat_journal,
)
from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal import schema
from tollkeeper.engine.search import index_file
from tollkeeper.engine.search.blocks import unpack
from tollkeeper.engine.search.follow import Follower

SPAN = (1, 1_500, 10 * DAY, 11 * DAY)
TWICE_MORE = Repetition(blocks=1, times=3, later=DAY)


def test_filled_in_bulk_it_is_what_its_writer_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    schema.prepare(tmp_path)
    fill_journal(tmp_path, draw(*SPAN, Random(3)))
    repeat_journal(tmp_path, TWICE_MORE)
    fill_index(tmp_path, draw(*SPAN, Random(3)))
    repeat_index(tmp_path, TWICE_MORE)
    filled = contents(tmp_path)
    with closing(Follower(tmp_path)) as follower:
        assert follower.step() == 0
    index_file.remove_index(tmp_path)
    with closing(Follower(tmp_path)) as follower:
        follower.catch_up()
    assert contents(tmp_path) == filled


def contents(folder: Path) -> dict[str, list[Any]]:
    """Every row of every table, with sets as their members: a small one may have been a large one.
    How long ago a block changed is told by the steps."""
    with closing(sqlite3.connect(folder / "search.db")) as index:
        tables = index.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = {table: index.execute(f"SELECT * FROM {table}").fetchall() for (table,) in tables}
    rows["postings"] = [(*of, unpack(members)) for *of, members in rows["postings"]]
    rows["changed"] = [(account, block) for account, block, _ in rows["changed"]]
    return {table: sorted(found) for table, found in rows.items()}
