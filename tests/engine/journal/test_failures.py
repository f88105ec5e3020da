"""A disk that is full, read-only or failing loses nothing acknowledged, and service resumes by
itself.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from contextlib import suppress

import pytest

from tollkeeper.engine.journal.contract import JournalError, Unavailable
from tollkeeper.engine.journal.entries import Idempotency, Kind
from tollkeeper.engine.journal.schema import PAGE_BYTES
from tollkeeper.engine.journal.sqlite import open_journal
from tollkeeper.engine.journal.writer import BATCH

pytestmark = pytest.mark.anyio


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with 2 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield disk
    subprocess.run(["umount", disk], check=True)


def fill(path):
    """Makes a file as large as the disk allows."""
    with suppress(OSError), path.open("wb", 0) as file:
        while True:
            file.write(bytes(4096))


async def outcomes(appends):
    return await asyncio.gather(*appends, return_exceptions=True)


async def test_an_id_whose_entry_is_lost_while_somebody_asks_is_not_used(journal, place, make):
    await journal.append(make(1))
    await place.break_writer(journal)
    held = threading.Event()
    step = asyncio.ensure_future(journal.run(lambda _: held.wait()))
    append = journal.append(make(2, id="x", body=bytes(2 * PAGE_BYTES)))
    asked = asyncio.ensure_future(journal.exists(1, Kind.PAYMENT, "x"))
    await asyncio.sleep(0)
    held.set()
    with pytest.raises(Unavailable):
        await append
    await step
    assert not await asked


async def test_what_is_queued_behind_a_failed_batch_fails_with_it_and_the_next_is_written(
    journal, place, make
):
    await journal.append(make(1))
    await place.break_writer(journal)
    held = threading.Event()
    step = asyncio.ensure_future(journal.run(lambda _: held.wait()))
    await asyncio.sleep(0)
    appends = [journal.append(make(2 + n, body=bytes(2 * PAGE_BYTES))) for n in range(BATCH + 50)]
    held.set()
    failed = await outcomes(appends)
    await step
    assert {type(outcome) for outcome in failed} == {Unavailable}
    assert str(failed[0]).startswith("the journal can't be written: ")
    assert str(failed[-1]) == "the journal can't be written: an entry before it was not written"
    assert not await journal.exists(1, Kind.PAYMENT, "p2")
    await journal.append(make(10_000))
    assert [entry.sequence for batch in journal.replay() for entry in batch] == [1, 10_000]


async def test_what_is_appended_before_a_failure_is_undone_fails_too(journal, place, make):
    """The seam: the batch has failed in the thread, and the loop doesn't know it yet."""
    await place.break_writer(journal)
    first = journal.append(make(1, body=bytes(2 * PAGE_BYTES)))
    await asyncio.sleep(0)
    deadline = time.monotonic() + 30
    while journal._writer._oldest_valid == 0:
        assert time.monotonic() < deadline, "the batch was written"
        time.sleep(0.001)
    decided_from_the_first = [journal.append(make(2)), journal.append(make(3))]
    with pytest.raises(Unavailable):
        await first
    for outcome in await outcomes(decided_from_the_first):
        assert isinstance(outcome, Unavailable)
    await asyncio.sleep(0)
    await journal.append(make(4))
    assert journal.count() == 1


async def test_who_is_told_of_a_failure_first_cannot_append_before_the_others_have_undone_theirs(
    journal, place, make
):
    await place.break_writer(journal)
    failing = journal.append(make(1, body=bytes(2 * PAGE_BYTES)))
    too_early = []

    def append_at_once(_failed):
        try:
            journal.append(make(2))
        except Unavailable as error:
            too_early.append(error)

    failing.add_done_callback(append_at_once)
    with pytest.raises(Unavailable):
        await failing
    assert len(too_early) == 1
    await asyncio.sleep(0)
    await journal.append(make(3))
    assert journal.count() == 1


async def test_nothing_is_appended_while_what_is_queued_behind_a_failed_batch_is_in_force(
    journal, place, make
):
    await place.break_writer(journal)
    held = threading.Event()
    first = journal.append(make(1, body=bytes(2 * PAGE_BYTES)))
    # The thread is held up behind the first, before it comes to the second.
    step = asyncio.ensure_future(journal.run(lambda _: held.wait(30)))
    await asyncio.sleep(0)
    second = journal.append(make(2))
    with pytest.raises(Unavailable):
        await first
    assert second.done()
    held.set()
    await step
    with pytest.raises(Unavailable, match="an entry before it was not written"):
        await second
    await journal.append(make(3))
    assert journal.count() == 1


async def test_a_key_whose_append_failed_was_not_used(journal, place, make):
    await place.break_writer(journal)
    with pytest.raises(Unavailable):
        await journal.append(
            make(1, body=bytes(2 * PAGE_BYTES)), Idempotency("key", b"digest", b"response")
        )
    assert await journal.find_idempotency(1, "key", make(1).arrived) is None


async def test_a_full_disk_refuses_until_there_is_space_and_keeps_what_was_acknowledged(
    small_disk, make
):
    written, refused = [], []

    async def pay(journal, sequences):
        results = await outcomes(
            [journal.append(make(sequence, body=os.urandom(3000))) for sequence in sequences]
        )
        for sequence, result in zip(sequences, results, strict=True):
            (written if result is None else refused).append(sequence)
            assert result is None or isinstance(result, Unavailable)

    async with open_journal(small_disk, "serve") as journal:
        await pay(journal, range(1, 51))
        ballast = small_disk / "ballast"
        fill(ballast)
        for start in range(1000, 2000, 100):
            await pay(journal, range(start, start + 20))
        assert refused
        assert await journal.exists(1, Kind.PAYMENT, "p1")
        ballast.unlink()
        before = len(refused)
        await pay(journal, range(3000, 3050))
        assert len(refused) == before
    async with open_journal(small_disk, "serve") as journal:
        assert [entry.sequence for batch in journal.replay() for entry in batch] == written


async def test_a_folder_that_turns_read_only_refuses_until_it_is_writable(sqlite_journal, make):
    await sqlite_journal.append(make(1))
    await sqlite_journal.run(lambda connection: connection.execute("PRAGMA query_only = ON"))
    with pytest.raises(Unavailable, match="attempt to write a readonly database"):
        await sqlite_journal.append(make(2))
    assert await sqlite_journal.exists(1, Kind.PAYMENT, "p1")
    await asyncio.sleep(0)
    await sqlite_journal.append(make(3))
    assert sqlite_journal.count() == 2


async def test_a_read_only_folder_is_refused_in_one_line(small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(JournalError, match="Read-only file system"):
        async with open_journal(small_disk, "serve"):
            pass
