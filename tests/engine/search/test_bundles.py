"""Figures, counts and movers are the same, whether blocks tell them or what is kept of blocks and bundles."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.labels.label import Label, encode_label
from tollkeeper.engine.search import totals
from tollkeeper.engine.search.commonest import EVERY_BY
from tollkeeper.engine.search.figures import Dimension
from tollkeeper.engine.search.filters import read_filter, read_members
from tollkeeper.engine.search.find import CountPayments
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.index_file import INDEX_FILE
from tollkeeper.engine.search.movers import FindMovers
from tollkeeper.engine.search.parts import (
    BUNDLE_LEVELS,
    blocks_within,
    bundle_of,
    largest_parts,
    parts_with,
    smaller_parts,
)
from tollkeeper.engine.search.questions import FindFigures
from tollkeeper.engine.search.reading import open_index

DRAWN = [*draw(1, 150, 10 * DAY, 11 * DAY, Random(3))]
REPETITION = Repetition(blocks=1, times=89, later=DAY)
"""A bundle of each size, and blocks that are in none."""
BEGIN, END = 10 * DAY, 100 * DAY
SPANS = ((BEGIN, END), (20 * DAY + DAY // 3, 95 * DAY + DAY // 7), (70 * DAY, 82 * DAY))
TEXTS = ("", "action:deny", "labelled:chargeback:fraud", "user:u-7")


class Kept(NamedTuple):
    """A folder in which all is kept of blocks and bundles, and what the blocks told before."""

    folder: Path
    told: list[Any]


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    """Of parts of any size something is kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(totals, "_FEW", 0)
        patch.setattr(totals, "_LEFT_ALONE", 0)
        yield


@pytest.fixture(scope="module")
def kept(small_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Shared by tests that leave it as it is."""
    folder = tmp_path_factory.mktemp("kept")
    schema.prepare(folder)
    fill_journal(folder, DRAWN)
    repeat_journal(folder, REPETITION)
    fill_index(folder, DRAWN)
    repeat_index(folder, REPETITION)
    told = answers(folder)
    keep(folder)
    return Kept(folder, told)


def test_bundles_tell_what_blocks_tell(kept: Kept) -> None:
    assert {len(blocks_within(part)) for part in kept_parts(kept.folder)} == {1, 4, 16, 64}
    assert answers(kept.folder) == kept.told


def test_a_change_of_one_payment_is_told_at_once_and_again_when_all_is_kept(
    kept: Kept, tmp_path: Path
) -> None:
    folder = shutil.copytree(kept.folder, tmp_path / "changed")
    with closing(schema.connect(folder)) as journal:
        label(journal, DRAWN[5].id)
        remove(journal, DRAWN[9].id)
    with closing(Follower(folder)) as follower:
        follower.catch_up()
    # The first block, and the bundles that have it, are no longer kept.
    assert not {part for part in kept_parts(folder) if 0 in blocks_within(part)}
    changed = answers(folder)
    assert changed != kept.told
    keep(folder)
    assert set(parts_with(0)) <= kept_parts(folder)
    assert answers(folder) == changed
    with closing(sqlite3.connect(folder / INDEX_FILE)) as index, index:
        for table in ("totals", "commonest", "settled"):
            index.execute(f"DELETE FROM {table}")
    assert answers(folder) == changed


def keep(folder: Path) -> None:
    with closing(Follower(folder)) as follower:
        while follower.keep_totals():
            pass


def kept_parts(folder: Path) -> set[int]:
    with closing(sqlite3.connect(folder / INDEX_FILE)) as index:
        return {part for (part,) in index.execute("SELECT DISTINCT block FROM totals")}


def label(journal: Any, id_: str) -> None:
    said = encode_label(Label("chargeback", "fraud", END, "test"))
    journal.execute(
        "INSERT INTO journal (place, account, kind, id, arrived, time, body)"
        " SELECT (SELECT max(place) FROM journal) + 1, account, ?, id, ?, ?, ? FROM journal"
        " WHERE id = ? AND kind = ?",
        (Kind.LABEL, END, END, said, id_, Kind.PAYMENT),
    )


def remove(journal: Any, id_: str) -> None:
    journal.execute("DELETE FROM journal WHERE id = ?", (id_,))


def answers(folder: Path) -> list[Any]:
    with open_index(folder, ACCOUNT) as index:
        return [question.answer(index) for question in questions()] + [
            sorted(FindMovers(EVERY_BY, *span, 10_000).answer(index), key=repr) for span in SPANS
        ]


def questions() -> Iterator[Any]:
    for text in TEXTS:
        wanted = read_filter(read_members(text), END)
        yield CountPayments(wanted)
        for since, until in SPANS:
            yield FindFigures(wanted, since, until, "day", "UTC", None, True)
            for by in (None, *get_args(Dimension)):
                yield FindFigures(wanted, since, until, "month", "UTC", by, True)


@given(st.sets(st.integers(0, 300)), st.sets(st.integers(0, 300)))
def test_blocks_are_covered_once_each_by_the_largest_bundles_that_are_there(
    blocks: set[int], missing: set[int]
) -> None:
    def find(part: int) -> bool | None:
        return None if missing.intersection(blocks_within(part)) else True

    parts = [*largest_parts(sorted(blocks, reverse=True), find)]
    covered = [block for part, _ in parts for block in reversed(blocks_within(part))]
    assert covered == sorted(covered, reverse=True)
    assert len(set(covered)) == len(covered)
    assert blocks <= set(covered)
    for part, found in parts:
        assert blocks.intersection(blocks_within(part))
        if found is None:
            assert part in missing
        own = blocks_within(part)
        larger = [each for each in parts_with(own[0]) if len(blocks_within(each)) > len(own)]
        assert all(find(each) is None for each in larger)


@given(st.integers(0, 2**40), st.sampled_from(BUNDLE_LEVELS))
def test_a_bundle_has_the_blocks_of_its_four_parts(block: int, level: int) -> None:
    bundle = bundle_of(block, level)
    assert block in blocks_within(bundle)
    assert bundle in parts_with(block)
    parts = smaller_parts(bundle)
    assert len(parts) == 4
    assert [each for part in reversed(parts) for each in blocks_within(part)] == [
        *blocks_within(bundle)
    ]
