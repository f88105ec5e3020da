"""What stands in a snapshot's file is what was given to it."""

from __future__ import annotations

from array import array
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tollkeeper.engine.journal.past import Newest
from tollkeeper.engine.velocity.contract import Columns, SeriesPart
from tollkeeper.engine.velocity.snapshot import (
    SnapshotError,
    SnapshotOrigin,
    look_through,
    overwrite_accounts,
    write,
)
from tollkeeper.tests.examples import examples

ORIGIN = SnapshotOrigin("journal", 7, "1.0", Newest(7, 1))
simple = (
    st.booleans()
    | st.integers(-(10**38), 10**38)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=5)
)
held = st.lists(st.tuples(st.integers(-(2**62), 2**62), st.none() | simple), min_size=1, max_size=4)
keys = st.sampled_from([simple, *(st.tuples(*[simple] * parts) for parts in (2, 3))])
elements = keys.flatmap(lambda key: st.lists(st.tuples(key, held), max_size=5))


@settings(max_examples=30, deadline=None)
@given(series=st.lists(elements, min_size=1, max_size=3))
def test_a_snapshot_gives_what_was_written(series: list[list[tuple[object, list[object]]]]) -> None:
    columns = [
        (
            [key for key, _ in each],
            [len(held) for _, held in each],
            array("q", [time for _, held in each for time, _ in held]).tobytes(),
            [value for _, held in each for _, value in held],
        )
        for each in series
    ]
    parts = [SeriesPart(1, "series", 100, 5, each) for each in columns]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        write(path, ORIGIN, parts)
        found = look_through(path, lambda origin: origin == ORIGIN)
        assert (found.sequence, found.newest(1, "series")) == (7, 5)
        assert repr(list(found.columns(1, "series"))) == repr(columns)
        assert found.covers(1, "series", 100)
        assert not found.covers(1, "series", 101)
        assert not found.covers(2, "series", 1)
        assert [each.name for each in Path(folder).iterdir()] == ["snapshot"]


def test_equal_texts_of_an_account_are_in_the_file_once_and_one_object_when_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "snapshot"
    series: dict[str, Columns] = {
        "users": (["ann", "bob"], [1, 1], bytes(16), ["card-1", "card-1"]),
        "cards": ([("card-1", "EUR")], [2], bytes(16), ["bob", "ann"]),
    }
    write(path, ORIGIN, [SeriesPart(1, each, 100, 5, series[each]) for each in series])
    for text in (b"ann", b"bob", b"card-1", b"EUR"):
        assert path.read_bytes().count(text) == 1
    found = look_through(path, lambda origin: origin == ORIGIN)
    (users,), (cards,) = (list(found.columns(1, each)) for each in series)
    assert [users, cards] == list(series.values())
    assert users[0][0] is cards[3][1]
    assert users[3][0] is users[3][1] is cards[0][0][0]  # type: ignore[index]


@settings(max_examples=examples(50), deadline=None)
@given(at=st.integers(0, 400), bits=st.integers(1, 255), cut=st.booleans())
def test_a_change_of_any_byte_is_always_found(at: int, bits: int, cut: bool) -> None:
    parts = [SeriesPart(1, "s", 100, 5, (["a", "b"], [1, 1], bytes(16), [1, 2]))] * 3
    with TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        write(path, ORIGIN, parts)
        body = bytearray(path.read_bytes())
        at %= len(body)
        if cut:
            del body[at:]
        else:
            body[at] ^= bits
        path.write_bytes(body)
        with pytest.raises(SnapshotError):
            look_through(path, lambda origin: origin == ORIGIN)


def test_an_account_that_is_forgotten_leaves_no_byte_and_the_others_are_whole(
    tmp_path: Path,
) -> None:
    def part(account: int, key: str) -> SeriesPart:
        return SeriesPart(account, "s", 100, 5, ([key], [1], bytes(8), [key]))

    path, accounts = tmp_path / "snapshot", (1, 200, 1, 70_000)
    write(path, ORIGIN, [part(account, f"person-{account}") for account in accounts])
    for gone in ((1, 3), (70_000,)):
        overwrite_accounts(path, gone)
    assert b"person-1" not in path.read_bytes()
    assert b"person-70000" not in path.read_bytes()
    found = look_through(path, lambda origin: origin == ORIGIN)
    assert [found.covers(account, "s", 100) for account in (1, 200, 70_000)] == [False, True, False]
    assert list(found.columns(200, "s")) == [(["person-200"], [1], bytes(8), ["person-200"])]


def test_a_file_that_is_cut_off_forgets_nobody(tmp_path: Path) -> None:
    path = tmp_path / "snapshot"
    write(path, ORIGIN, [SeriesPart(1, "s", 100, 5, (["a"], [1], bytes(8), [1]))])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SnapshotError):
        overwrite_accounts(path, (1,))
