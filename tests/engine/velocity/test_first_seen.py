"""Seen times in memory and in a file are those of a plain list, whatever is written in between."""

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
from tollkeeper.engine.journal.past import Newest
from tollkeeper.engine.velocity import first_seen, first_seen_file, first_seen_store
from tollkeeper.engine.velocity.first_seen import MemorySeenTimes, SeenTimes, StoredSeenTimes
from tollkeeper.engine.velocity.first_seen_store import SeenTimesStore, open_seen_times
from tollkeeper.tests.examples import examples

pytestmark = pytest.mark.anyio

GROUPS = ("a", ("a", 1), "('a', 1)", 2**127, 1.5, 0.0, -0.0, ("a", 0.0), ("a", -0.0), "-0.0")
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
    """The times as a list."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, int]] = []

    def change(self, what: str, group: object, time: int) -> None:
        if what == "add":
            self.seen.append((group, time))
        elif (group, time) in self.seen:
            self.seen.remove((group, time))

    def agrees(self, seen_times: SeenTimes) -> None:
        for group in GROUPS:
            own = sorted(time for seen, time in self.seen if seen == group)
            assert seen_times.first(group) == min(own, default=None)
            for at in TIMES:
                assert seen_times.latest(group, at) == max(
                    (t for t in own if t <= at), default=None
                )
                later = sum(t > at for t in own)
                assert seen_times.count_after(group, at, 3) == min(3, later)


def change(seen_times: SeenTimes, what: str, group: Any, time: int) -> None:
    (seen_times.add if what == "add" else seen_times.remove)(group, time)


@given(happened=st.lists(st.one_of(adds, st.tuples(st.just("remove"), groups, times))))
def test_seen_times_in_memory_are_those_of_a_plain_list(
    happened: list[tuple[str, Any, int]],
) -> None:
    seen_times, plain = MemorySeenTimes(), Plain()
    for each in happened:
        change(seen_times, *each)
        plain.change(*each)
    plain.agrees(seen_times)


async def fill(
    store: SeenTimesStore, seen_times: SeenTimes, plain: Plain, filled: list[Any]
) -> None:
    for what, group, time in filled:
        if what == "add" or (what == "remove" and (group, time) in plain.seen):
            # Nobody asks a journal's records to take out what was never there.
            change(seen_times, what, group, time)
            plain.change(what, group, time)
        elif what == "forget":
            await store.spool_filled(*SERIES[:1], SERIES[1:])
        elif what != "remove":
            await store.write_filled(*SERIES[:1], SERIES[1:], 0)
    # As at a filling's end: what was spooled is written before the series are sealed.
    await store.write_filled(*SERIES[:1], SERIES[1:], 0)


@settings(max_examples=examples(40), deadline=None)
@given(filled=steps, happened=steps, meanwhile=steps, waits=st.booleans())
def test_stored_seen_times_are_those_of_a_plain_list(
    filled: list[Any], happened: list[Any], meanwhile: list[Any], waits: bool
) -> None:
    """`meanwhile` is what happens between a write's taking and its end; `waits` says whether the file's
    groups are all known before they are read."""

    async def run(folder: Path) -> None:
        async with open_seen_times(folder, last=0, newest=empty) as store:
            seen_times, plain, sequence = store.open(*SERIES), Plain(), 0
            await fill(store, seen_times, plain, filled)
            store.end_filling(1, SERIES[1:], sequence)
            plain.agrees(seen_times)
            left = iter(meanwhile)

            def happens(what: str, group: Any, time: Any) -> None:
                nonlocal sequence
                sequence += 1
                seen_times.reach(sequence)
                if what in ("add", "remove"):
                    change(seen_times, what, group, time)
                    plain.change(what, group, time)

            async def written() -> None:
                for _ in range(2):
                    happens(*next(left, ("", None, None)))
                plain.agrees(seen_times)

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
                        store._recent._new.clear()
                        store._recent._old.clear()
                    case _:
                        happens(what, group, time)
                plain.agrees(seen_times)
            await store.write(nothing)
        async with open_seen_times(folder, last=sequence, newest=empty) as store:
            assert store.sequence(*SERIES) == sequence
            if waits:
                store._file.filling.join()
            seen_times = store.open(*SERIES)
            store.end_filling(1, SERIES[1:], sequence)
            plain.agrees(seen_times)

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(first_seen_store, "FILLED", 2)
        asyncio.run(run(Path(folder)))


@settings(max_examples=examples(40), deadline=None)
@given(filled=steps, followed=steps, fails=st.booleans())
def test_what_was_followed_is_what_an_owner_would_have_counted(
    filled: list[Any], followed: list[Any], fails: bool
) -> None:
    """`fails` says whether the file can't be written any more when the series is to be read."""

    async def run(folder: Path) -> None:
        async with open_seen_times(folder, last=0, newest=empty) as store:
            store.follow()
            seen_times, plain, sequence = store.open(*SERIES), Plain(), 1

            def happens(what: str, group: Any, time: Any) -> None:
                if what == "add" or (what == "remove" and (group, time) in plain.seen):
                    change(seen_times, what, group, time)
                    plain.change(what, group, time)

            for what, group, time in filled:
                happens(what, group, time)
            store.end_filling(1, SERIES[1:], sequence)
            for what, group, time in followed:
                sequence += 1
                seen_times.reach(sequence)
                match what:
                    case "write":
                        await store.write(nothing)
                        assert store._file.series()[0].sequence == sequence
                    case "refuse":
                        with pytest.raises(Unavailable):
                            await store.write(refused)
                    case _:
                        happens(what, group, time)
            await store.own(refused if fails else nothing)
            plain.agrees(seen_times)
            await store.write(nothing)
            plain.agrees(seen_times)
        async with open_seen_times(folder, last=sequence, newest=empty) as store:
            assert store.sequence(*SERIES) == sequence
            plain.agrees(await live(store, sequence=sequence))

    async def refused() -> None:
        raise Unavailable("the disk is full")

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


async def nothing() -> None:
    pass


async def empty() -> Newest:
    """The newest entry of a journal that is empty."""
    return Newest()


async def live(store: SeenTimesStore, digest: str = "digest", sequence: int = 1) -> SeenTimes:
    seen_times = store.open(1, digest)
    store.end_filling(1, [digest], sequence)
    return seen_times


async def test_what_was_not_written_is_filled_again(tmp_path: Path) -> None:
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        seen_times = await live(store)
        await store.write(nothing)
        seen_times.reach(2)
        seen_times.add("a", 5)
    async with open_seen_times(tmp_path, last=2, newest=empty) as store:
        assert store.sequence(*SERIES) == 1
        assert (await live(store)).first("a") is None


async def test_what_is_withdrawn_while_it_is_written_waits(tmp_path: Path) -> None:
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        seen_times = await live(store)
        seen_times.reach(2)
        seen_times.add("a", 5)

        async def withdrawn() -> None:
            seen_times.reach(2)
            seen_times.remove("a", 5)

        await store.write(withdrawn)
    async with open_seen_times(tmp_path, last=2, newest=empty) as store:
        assert store.sequence(*SERIES) == 0


async def test_a_series_of_another_journal_begins_anew(tmp_path: Path) -> None:
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        (await live(store, sequence=7)).add("a", 5)
        await store.write(nothing)
    async with open_seen_times(tmp_path, last=6, newest=empty) as store:
        assert store.sequence(*SERIES) == 0
        assert (await live(store)).first("a") is None


async def test_a_past_that_was_being_rewritten_is_filled_again(tmp_path: Path) -> None:
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        await live(store)
        await store.write(nothing)
        with pytest.raises(RuntimeError):
            async with store.rewriting(1, nothing):
                raise RuntimeError
        await store.write(nothing)
    async with open_seen_times(tmp_path, last=9, newest=empty) as store:
        assert store.sequence(*SERIES) == 0
        seen_times = await live(store)
        async with store.rewriting(1, nothing):
            seen_times.add("a", 5)
    async with open_seen_times(tmp_path, last=9, newest=empty) as store:
        assert store.sequence(*SERIES) == 1


def damage_header(path: Path) -> None:
    path.write_bytes(b"this is no database at all" * 100)


def damage_version(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [damage_header, damage_version, Path.unlink])
async def test_a_file_that_cannot_be_used_is_made_anew(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        (await live(store)).add("a", 5)
        await store.write(nothing)
    damage(tmp_path / "ages.db")
    async with open_seen_times(tmp_path, last=9, newest=empty) as store:
        assert store.sequence(*SERIES) == 0
        (await live(store)).add("a", 6)
        await store.write(nothing)
    assert (tmp_path / "ages.db").stat().st_mode & 0o077 == 0


async def test_what_no_program_needs_is_removed(tmp_path: Path) -> None:
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        for digest in ("kept", "dropped", "left"):
            (await live(store, digest)).add("a", 5)
        await store.write(nothing)
        store.open(1, "dropped").discard()
        await store.write(nothing)
        while await store.remove_some():
            pass
    async with open_seen_times(tmp_path, last=9, newest=empty) as store:
        assert [store.sequence(1, each) for each in ("kept", "dropped", "left")] == [1, 0, 1]
        store.give_up_others({(1, "kept")})
        await store.write(nothing)
        while await store.remove_some():
            pass
        assert store._file.series() == [(1, 1, "kept", 1)]
        assert store._file._run("SELECT DISTINCT series FROM moments").fetchall() == [(1,)]


async def test_the_file_is_not_read_for_whom_nobody_has_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        (await live(store)).add("ana", 5)
        await store.write(nothing)
    async with open_seen_times(tmp_path, last=1, newest=empty) as store:
        seen_times = await live(store)
        seen_times.add("bob", 6)
        await store.write(nothing)
        store._recent.forget((1, "bob"))
        store._file.filling.join()
        asked: list[object] = []
        run = store._file._run
        monkeypatch.setattr(store._file, "_run", lambda *query: asked.append(query) or run(*query))
        assert [seen_times.first(each) for each in ("cid", "ana", "bob")] == [None, 5, 6]
        assert len(asked) == 4, "the first and the last time of each that was seen"


async def test_what_is_written_while_the_filter_is_filled_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_seen_file, "_ADDED", 1)
    names = [f"card-{number}" for number in range(600)]
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        seen_times = await live(store)
        for name in names[:300]:
            seen_times.add(name, 5)
        await store.write(nothing)
    async with open_seen_times(tmp_path, last=1, newest=empty) as store:
        seen_times = await live(store)
        for name in names[300:]:
            seen_times.add(name, 5)
            await store.write(nothing)
            store._recent.forget((1, name))
            assert seen_times.first(name) == 5
        store._file.filling.join()
        for name in names:
            store._recent.forget((1, name))
        assert {seen_times.first(name) for name in names} == {5}


async def test_memory_holds_only_what_was_asked_for_recent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_seen, "CACHED", 50)
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        seen_times = await live(store)
        for number in range(500):
            seen_times.reach(number)
            seen_times.add(f"card-{number}", number)
            if number % 20 == 0:
                await store.write(nothing)
            lately = store._recent
            assert len(lately._new) + len(lately._old) <= 100
        await store.write(nothing)
        assert all(seen_times.first(f"card-{number}") == number for number in range(500))


async def test_a_late_read_of_a_busy_group_looks_at_few_of_the_times_that_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at, count = [], StoredSeenTimes._unwritten_count

    def counted(self: StoredSeenTimes, group: Any, time: int, otherwise: int) -> int:
        looked_at.append(time)
        return count(self, group, time, otherwise)

    monkeypatch.setattr(StoredSeenTimes, "_unwritten_count", counted)
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        seen_times = await live(store)
        for time in range(3000):
            seen_times.add("m", 2 * time)
            assert seen_times.latest("m", 2 * time - 3) == (2 * time - 4 if time > 1 else None)
            assert seen_times.count_after("m", time, 2) == min(2, 2 * time - time - time // 2)
    assert len(looked_at) < 3000 * 12


async def test_the_file_says_of_nobody_that_they_were_there(tmp_path: Path) -> None:
    async with open_seen_times(tmp_path, last=0, newest=empty) as store:
        (await live(store)).add("ana@mail.example", 5)
        await store.write(nothing)
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"ana" not in files
