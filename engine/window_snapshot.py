"""The snapshot of the windows in the data folder: written at an orderly end and at intervals, read at a
start.

While traffic goes on, a copy of the process (fork) writes it, which sees the windows as they are at
one moment. The file is kept only if every append that was unsettled at that moment is written: the
windows uncount an entry that is lost, and the copy can't.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NoReturn

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.past import Newest, is_past, newest_entry
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.release import this_release
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.snapshot import (
    FILE,
    UNFINISHED,
    Snapshot,
    SnapshotError,
    SnapshotOrigin,
    look_through,
    overwrite_accounts,
    snapshot_sequence,
    write,
)

WORTHWHILE = 10_000
"""How many new entries make another snapshot worthwhile: fewer are read in about a second."""
ENTRY_BYTES = 2_000
"""The bytes of a snapshot that are written and read in the time in which one entry is read."""
REST = 9
"""After a snapshot, none is written for this many times as long as writing it took, so that many
erasures take at most a tenth of one processor."""
_FIRST_FILE = 3
"""The first file descriptor after the three standard streams."""


async def read_snapshot(engine: Engine) -> Snapshot | None:
    """The snapshot, if it fits the journal; one that does not is logged and removed."""
    path = engine.folder / FILE
    last = engine.journal.last_sequence()
    expected = _origin(engine, last, Newest())

    def is_ours(origin: SnapshotOrigin) -> bool:
        same = (origin.journal, origin.release) == (expected.journal, expected.release)
        return same and origin.sequence <= last

    try:
        snapshot = await asyncio.to_thread(look_through, path, is_ours)
        if not await engine.journal.query(partial(is_past, newest=snapshot.origin.newest)):
            raise SnapshotError("the journal was restored since")
        return snapshot
    except FileNotFoundError:
        return None
    except (OSError, SnapshotError) as error:
        get_logger().warning("snapshot_not_used", file=str(path), reason=str(error))
        discard_snapshot(engine)
        return None


async def write_snapshot(engine: Engine) -> None:
    """Write the windows to the file; nothing may be observed meanwhile.

    Does nothing while windows are not whole, or differ from the journal. Raises `JournalError`.
    """
    if not engine.ready.is_set() or engine.rewriting:
        return
    path, unfinished = engine.folder / FILE, engine.folder / UNFINISHED
    newest = await engine.journal.query(newest_entry)
    origin = _origin(engine, engine.journal.last_sequence(), newest)
    try:
        # In a thread: other shards in this process may go on deciding.
        await asyncio.to_thread(write, unfinished, origin, engine.windows.snapshot())
        unfinished.replace(path)
    except (OSError, TypeError) as error:
        get_logger().warning("snapshot_not_written", file=str(path), error=str(error))


async def forget_in_snapshot(engine: Engine, accounts: Collection[int]) -> None:
    """Remove from the file the accounts whose history is rewritten in the journal; the others stay, so
    that a start need not read their entries.

    Until the journal and the windows are rewritten, no other snapshot may be written.
    """
    _stop_writer(engine)
    async with engine.snapshot_changing:
        try:
            await asyncio.to_thread(_overwrite_accounts, engine.folder, accounts)
        except (OSError, SnapshotError) as error:
            get_logger().warning("snapshot_not_used", file=FILE, reason=str(error))
            discard_snapshot(engine)


def _overwrite_accounts(folder: Path, accounts: Collection[int]) -> None:
    path, unfinished = folder / FILE, folder / UNFINISHED
    unfinished.unlink(missing_ok=True)
    if path.exists():
        # If the process ends meanwhile, no half overwritten file may have the name of a whole one.
        path.replace(unfinished)
        overwrite_accounts(unfinished, accounts)
        unfinished.replace(path)


def discard_snapshot(engine: Engine) -> None:
    """Remove the file, and stop writing another: it can't be used."""
    _stop_writer(engine)
    for path in (engine.folder / FILE, engine.folder / UNFINISHED):
        path.unlink(missing_ok=True)


def _stop_writer(engine: Engine) -> None:
    if engine.snapshot_writer is not None:
        # Its process may have ended already: then only the unsettled appends are waited for.
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(engine.snapshot_writer, signal.SIGKILL)
        engine.snapshot_writer = None


async def keep_snapshots(engine: Engine, every_s: float) -> None:
    """Write a snapshot every `every_s` seconds if there are many new entries, and soon after one had to
    be discarded; until cancelled.

    So a start after a crash has little to read from the journal. Where the end of a process can't be
    watched, only an orderly end writes one.
    """
    if not _can_watch_processes():
        return
    kept, pause_s = engine.journal.last_sequence(), 0.0
    while True:
        await asyncio.sleep(pause_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, every_s - pause_s)):
                await engine.snapshot_due.wait()
        sequence, begun = engine.journal.last_appended(), perf_counter()
        if engine.snapshot_due.is_set() or sequence - kept >= WORTHWHILE:
            engine.snapshot_due.clear()
            # After a failure, the next one is due however few entries are new.
            kept = sequence if await write_snapshot_beside(engine) else -WORTHWHILE
        pause_s = REST * (perf_counter() - begun)


async def write_recent(engine: Engine) -> None:
    """Write a snapshot, unless reading the entries since the last one takes less time."""
    path = engine.folder / FILE
    written = await asyncio.to_thread(snapshot_sequence, path)
    is_recent = False
    if written and not engine.snapshot_due.is_set():
        as_long = max(WORTHWHILE, path.stat().st_size // ENTRY_BYTES)
        is_recent = engine.journal.last_appended() - written < as_long
    if not is_recent and _can_watch_processes():
        await write_snapshot_beside(engine)


def _can_watch_processes() -> bool:
    """Whether a file descriptor can stand for a process: not all systems and sandboxes allow it."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


async def write_snapshot_beside(engine: Engine) -> bool:
    """Let a copy of this process write the windows as they are now; whether the file was kept."""
    try:
        newest = await engine.journal.query(newest_entry)
    except JournalError as error:
        get_logger().warning("snapshot_not_written", file=FILE, error=str(error))
        return False
    if not engine.ready.is_set() or engine.rewriting or engine.snapshot_writer is not None:
        return False
    origin = _origin(engine, engine.journal.last_appended(), newest)
    unsettled = engine.journal.unsettled()
    begun = perf_counter()
    process = os.fork()
    if process == 0:
        _write_and_exit(engine, origin)
    stopped_ms = (perf_counter() - begun) * 1000
    writer = engine.snapshot_writer = os.pidfd_open(process)
    try:
        ended = await _wait_for_end(process, writer)
        if unsettled:
            await asyncio.wait(unsettled)
        # `_stop_writer` takes it away when the file is discarded meanwhile.
        is_ours = engine.snapshot_writer == writer
        kept = ended == 0 and is_ours and all(each.exception() is None for each in unsettled)
        if kept:
            (engine.folder / UNFINISHED).replace(engine.folder / FILE)
            seconds = round(perf_counter() - begun, 1)
            get_logger().info("snapshot_written", seconds=seconds, stopped_ms=round(stopped_ms, 1))
        elif is_ours:
            get_logger().warning(
                "snapshot_not_written", file=FILE, error=f"its writer ended with {ended}"
            )
        return kept
    finally:
        if engine.snapshot_writer == writer:
            engine.snapshot_writer = None
        os.close(writer)


async def _wait_for_end(process: int, writer: int) -> int:
    """The exit status of the writing process, which is killed if this is cancelled."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(writer, ended.set)
    try:
        await ended.wait()
    except asyncio.CancelledError:
        signal.pidfd_send_signal(writer, signal.SIGKILL)
        raise
    finally:
        loop.remove_reader(writer)
        _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def _write_and_exit(engine: Engine, origin: SnapshotOrigin) -> NoReturn:
    """What the copy of the process does: it first drops the service's signals, files and connections."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        os.closerange(_FIRST_FILE, os.sysconf("SC_OPEN_MAX"))
        write(engine.folder / UNFINISHED, origin, engine.windows.snapshot())
        status = 0
    finally:
        os._exit(status)


def _origin(engine: Engine, sequence: int, newest: Newest) -> SnapshotOrigin:
    return SnapshotOrigin(engine.journal.identity(), sequence, this_release(), newest)
