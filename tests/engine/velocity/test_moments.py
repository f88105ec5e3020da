"""Moments in memory and in a file are those of a plain list, whatever is written in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.velocity import first_seen_series as stored_moments
from tollkeeper.engine.velocity.first_seen import MemoryMoments, Moments
from tollkeeper.engine.velocity.first_seen_store import MomentsStore, open_moments

pytestmark = pytest.mark.anyio

GROUPS = ("a", ("a", 1), "('a', 1)", 2**127, 1.5)
TIMES = range(-2, 5)
SERIES = (1, "digest")

groups, times = st.sampled_from(GROUPS), st.sampled_from(TIMES)
adds = st.tuples(st.just("add"), groups, times)
steps = st.lists(
    st.one_of(
        adds,
        adds,
        st.tuples(st.just("remove"), groups, times),
        st.tuples(st.sampled_from(["write", "refuse", "forget"]), st.none(), st.none()),
    ),
    max_size=40,
)


class Plain:
    """The moments as a list."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, int]] = []

    def change(self, what: str, group: object, time: int) -> None:
        if what == "add":
            self.seen.append((group, time))
        elif (group, time) in self.seen:
            self.seen.remove((group, time))

    def agrees(self, moments: Moments) -> None:
        for group in GROUPS:
            own = sorted(time for seen, time in self.seen if seen == group)
            assert moments.first(group) == min(own, default=None)
            for at in TIMES:
                assert moments.latest(group, at) == max((t for t in own if t <= at), default=None)


def change(moments: Moments, what: str, group: Any, time: int) -> None:
    (moments.add if what == "add" else moments.remove)(group, time)


@given(happened=st.lists(st.one_of(adds, st.tuples(st.just("remove"), groups, times))))
def test_moments_in_memory_are_those_of_a_plain_list(happened: list[tuple[str, Any, int]]) -> None:
    moments, plain = MemoryMoments(), Plain()
    for each in happened:
        change(moments, *each)
        plain.change(*each)
    plain.agrees(moments)


@settings(max_examples=40, deadline=None)
@given(filled=steps, happened=steps, meanwhile=steps)
def test_stored_moments_are_those_of_a_plain_list(
    filled: list[Any], happened: list[Any], meanwhile: list[Any]
) -> None:
    """`meanwhile` is what happens between a write's taking and its end."""

    async def run(folder: Path) -> None:
        async with open_moments(folder, last=0) as store:
            moments, plain, place = store.open(*SERIES), Plain(), 0
            for what, group, time in filled:
                if what in ("add", "remove"):
                    # Nobody asks a journal's records to take out what was never there.
                    if what == "add" or (group, time) in plain.seen:
                        change(moments, what, group, time)
                        plain.change(what, group, time)
                else:
                    await store.write_filled(*SERIES[:1], SERIES[1:], 0)
            store.go_live(1, SERIES[1:], place)
            plain.agrees(moments)
            left = iter(meanwhile)

            def happens(what: str, group: Any, time: Any) -> None:
                nonlocal place
                place += 1
                moments.reach(place)
                if what in ("add", "remove"):
                    change(moments, what, group, time)
                    plain.change(what, group, time)

            async def written() -> None:
                for _ in range(2):
                    happens(*next(left, ("", None, None)))
                plain.agrees(moments)

            async def refused() -> None:
                await written()
                raise Unavailable("the disk is full")

            for what, group, time in happened:
                match what:
                    case "write":
                        await store.write(written)
                    case "refuse":
                        happens("add", "a", 0)
                        with pytest.raises(Unavailable):
                            await store.write(refused)
                    case "forget":
                        store._lately._new.clear()
                        store._lately._old.clear()
                    case _:
                        happens(what, group, time)
                plain.agrees(moments)
            await store.write(nothing)
        async with open_moments(folder, last=place) as store:
            assert store.place(*SERIES) == place
            moments = store.open(*SERIES)
            store.go_live(1, SERIES[1:], place)
            plain.agrees(moments)

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


async def nothing() -> None:
    pass


async def live(store: MomentsStore, digest: str = "digest", place: int = 1) -> Moments:
    moments = store.open(1, digest)
    store.go_live(1, [digest], place)
    return moments


async def test_what_was_not_written_is_filled_again(tmp_path: Path) -> None:
    async with open_moments(tmp_path, last=0) as store:
        moments = await live(store)
        await store.write(nothing)
        moments.reach(2)
        moments.add("a", 5)
    async with open_moments(tmp_path, last=2) as store:
        assert store.place(*SERIES) == 1
        assert (await live(store)).first("a") is None


async def test_what_is_withdrawn_while_it_is_written_waits(tmp_path: Path) -> None:
    async with open_moments(tmp_path, last=0) as store:
        moments = await live(store)
        moments.reach(2)
        moments.add("a", 5)

        async def withdrawn() -> None:
            moments.reach(2)
            moments.remove("a", 5)

        await store.write(withdrawn)
    async with open_moments(tmp_path, last=2) as store:
        assert store.place(*SERIES) == 0


async def test_a_series_of_another_journal_begins_anew(tmp_path: Path) -> None:
    async with open_moments(tmp_path, last=0) as store:
        (await live(store, place=7)).add("a", 5)
        await store.write(nothing)
    async with open_moments(tmp_path, last=6) as store:
        assert store.place(*SERIES) == 0
        assert (await live(store)).first("a") is None


async def test_a_past_that_was_being_rewritten_is_filled_again(tmp_path: Path) -> None:
    async with open_moments(tmp_path, last=0) as store:
        await live(store)
        await store.write(nothing)
        with pytest.raises(RuntimeError):
            async with store.rewriting(1, nothing):
                raise RuntimeError
        await store.write(nothing)
    async with open_moments(tmp_path, last=9) as store:
        assert store.place(*SERIES) == 0
        moments = await live(store)
        async with store.rewriting(1, nothing):
            moments.add("a", 5)
    async with open_moments(tmp_path, last=9) as store:
        assert store.place(*SERIES) == 1


def damage_header(path: Path) -> None:
    path.write_bytes(b"this is no database at all" * 100)


def damage_version(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [damage_header, damage_version, Path.unlink])
async def test_a_file_that_cannot_be_used_is_made_anew(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    async with open_moments(tmp_path, last=0) as store:
        (await live(store)).add("a", 5)
        await store.write(nothing)
    damage(tmp_path / "ages.db")
    async with open_moments(tmp_path, last=9) as store:
        assert store.place(*SERIES) == 0
        (await live(store)).add("a", 6)
        await store.write(nothing)
    assert (tmp_path / "ages.db").stat().st_mode & 0o077 == 0


async def test_what_no_program_needs_is_removed(tmp_path: Path) -> None:
    async with open_moments(tmp_path, last=0) as store:
        for digest in ("kept", "dropped", "left"):
            (await live(store, digest)).add("a", 5)
        await store.write(nothing)
        store.open(1, "dropped").discard()
        await store.write(nothing)
        while await store.remove_some():
            pass
    async with open_moments(tmp_path, last=9) as store:
        assert [store.place(1, each) for each in ("kept", "dropped", "left")] == [1, 0, 1]
        store.give_up_others({(1, "kept")})
        await store.write(nothing)
        while await store.remove_some():
            pass
        assert store._file.series() == [(1, 1, "kept", 1)]
        assert store._file._run("SELECT DISTINCT series FROM moments").fetchall() == [(1,)]


async def test_memory_holds_only_what_was_asked_for_lately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_moments, "CACHED", 50)
    async with open_moments(tmp_path, last=0) as store:
        moments = await live(store)
        for number in range(500):
            moments.reach(number)
            moments.add(f"card-{number}", number)
            if number % 20 == 0:
                await store.write(nothing)
            lately = store._lately
            assert len(lately._new) + len(lately._old) <= 100
        await store.write(nothing)
        assert all(moments.first(f"card-{number}") == number for number in range(500))


async def test_the_file_says_of_nobody_that_they_were_there(tmp_path: Path) -> None:
    async with open_moments(tmp_path, last=0) as store:
        (await live(store)).add("ana@mail.example", 5)
        await store.write(nothing)
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"ana" not in files
