"""What payments share is the same, whether blocks, their totals or runs of them tell it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random
from unittest import mock

import pytest

from tollkeeper.bench.large_index import (
    ACCOUNT,
    Repetition,
    draw,
    fill_index,
    fill_journal,
    repeat_index,
    repeat_journal,
)
from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal import schema
from tollkeeper.engine.search import runs, totals
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.reading import open_index
from tollkeeper.engine.search.related import FindRelated, RelatedPayments

DRAWN = [*draw(1, 120, 10 * DAY, 11 * DAY, Random(3))]
REPETITION = Repetition(blocks=1, times=89, later=DAY)
"""A run of each size, and five blocks that are in none."""
SINCE = (None, 12 * DAY + 1, 27 * DAY + DAY // 3, 81 * DAY, 92 * DAY, 96 * DAY)
MERCHANTS = ((), ("m-3", "m-7"), ("m-none",))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("related")
    schema.prepare(folder)
    fill_journal(folder, DRAWN)
    repeat_journal(folder, REPETITION)
    return folder


@pytest.mark.parametrize("most_listed", [256, 0])
def test_runs_and_totals_tell_what_blocks_tell(
    folder: Path, most_listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of entities that are too common for a list, as all are where a list has no member."""
    fill_index(folder, DRAWN)
    repeat_index(folder, REPETITION)
    before = answers(folder)
    monkeypatch.setattr(totals, "MOST_LISTED_BYTES", 2 * most_listed)
    monkeypatch.setattr(runs, "is_list", lambda stored: len(stored) <= 2 * most_listed)
    with closing(Follower(folder)) as follower:
        while follower.extend_run():
            pass
        with mock.patch.object(totals, "_FEW", 0), mock.patch.object(totals, "_LEFT_ALONE", 0):
            while follower.keep_totals():
                pass
    assert answers(folder) == before


def answers(folder: Path) -> list[list[RelatedPayments] | None]:
    with open_index(folder, ACCOUNT) as index:
        return [
            FindRelated(payment.id, since, merchants).answer(index)
            for payment in DRAWN[::40]
            for since in SINCE
            for merchants in MERCHANTS
        ]
