"""The process that keeps the index of a data folder: `python -m … FOLDER`.

It follows the journal and answers questions at a low priority, so that payments are not slowed. An
index that is far behind is left to another process. It ends when its standard input is closed, which
happens when the service ends.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import BinaryIO

import msgspec

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.search.ask import LENGTH, IndexAnswer, IndexQuestion
from tollkeeper.engine.search.backlog import index_backlog
from tollkeeper.engine.search.follow import TAKEN_AT_ONCE, Follower
from tollkeeper.engine.search.open_questions import OpenQuestions, giving_way
from tollkeeper.engine.search.reading import IndexFile
from tollkeeper.engine.search.worker_processes import run_collector_rarely, source_of_process

_AT_ONCE = 4
"""The number of questions answered at the same time."""
_PAUSE_S = 0.1
"""The least pause after each step."""
_EACH_S = 0.3
_MANY = 50
"""After a step that took in this many entries and caught up, the next begins `_EACH_S` after the
start of this one, so that an index page is written once for many entries.
"""
_WAIT_S = 0.2
"""How long each step waits in all for questions to be answered: with many questions, new payments must
still be found soon.
"""
_AFTER_FAILURE_S = 1.0
_NICENESS = 15
"""The priority that the threads that follow and answer give up; on Linux, each thread has its own. The
thread that waits for the process of a backlog keeps the service's: a priority can't be raised again."""

_decode = msgspec.msgpack.Decoder(IndexQuestion).decode
_encode = msgspec.msgpack.Encoder().encode


def main(source: JournalSource) -> None:
    """Serve until standard input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_collector_rarely()
    # Creates an empty index if there is none, so that questions can be answered at once.
    Follower(source).close()
    questions = OpenQuestions()
    threading.Thread(target=follow, args=(source, questions), daemon=True).start()
    writing = threading.Lock()
    held = threading.local()

    def answer(request: IndexQuestion) -> None:
        try:
            answered = _encode(answer_from(held, source, request))
        finally:
            questions.end()
        with writing, suppress(BrokenPipeError):
            sys.stdout.buffer.write(len(answered).to_bytes(LENGTH) + answered)
            sys.stdout.buffer.flush()

    with _niced_threads(_AT_ONCE) as threads:
        while (request := _read(sys.stdin.buffer)) is not None:
            questions.begin()
            threads.submit(answer, request)
    # Exiting while the following thread is within a transaction is safe: SQLite rolls it back.
    os._exit(0)


def follow(source: JournalSource, questions: OpenQuestions) -> None:
    """Follow the journal for ever. A failure is reported once, until its text changes: whatever it is,
    questions are answered meanwhile.
    """
    reported = ""

    def follow_until_behind() -> None:
        nonlocal reported
        with closing(Follower(source)) as follower:
            taken = follower.step()
            reported = ""
            if taken < TAKEN_AT_ONCE:
                _follow_until_behind(follower, questions)

    with _niced_threads(1) as niced:
        while True:
            try:
                niced.submit(follow_until_behind).result()
                index_backlog(source)
            except Exception as error:
                if reported != (reported := repr(error)):
                    is_foreseen = isinstance(error, sqlite3.Error | OSError | JournalError)
                    reason = str(error) if is_foreseen else traceback.format_exc()
                    sys.stderr.write(f"the index can't follow the journal: {reason}\n")
                time.sleep(_AFTER_FAILURE_S)


def _niced_threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, initializer=os.nice, initargs=(_NICENESS,))


def _follow_until_behind(follower: Follower, questions: OpenQuestions) -> None:
    """Take in new entries, until a step could not take in all of them, or the file is gone."""
    while True:
        began = time.monotonic()
        give_way = giving_way(questions, _WAIT_S)
        taken = follower.step(give_way=give_way)
        if taken >= TAKEN_AT_ONCE or not follower.is_there():
            return
        # One unit of work per step: new entries wait meanwhile.
        follower.keep_totals(give_way) or follower.extend_run(give_way)
        left = 0 if taken < _MANY else began + _EACH_S - time.monotonic()
        time.sleep(max(left, _PAUSE_S))


def answer_from(
    held: threading.local, source: JournalSource, request: IndexQuestion
) -> IndexAnswer:
    """Answer a question from the thread's own open index file, whose page cache is kept between
    questions.
    """
    opened: IndexFile | None = getattr(held, "opened", None)
    held.opened = None
    if opened is not None and not opened.is_there():
        opened.close()
        opened = None
    try:
        opened = opened or IndexFile(source)
    except (sqlite3.Error, OSError, JournalError) as error:
        sys.stderr.write(f"the index can't be opened: {error}\n")
        return IndexAnswer(request.number)
    answered = answer_to(opened, request)
    if answered.found is None and not answered.violations:
        opened.close()
    else:
        held.opened = opened
    return answered


def answer_to(opened: IndexFile, request: IndexQuestion) -> IndexAnswer:
    """Answer a question from an open index file."""
    try:
        with opened.of(request.account) as index:
            found = _encode(request.question.answer(index))
            return IndexAnswer(request.number, index.lag(time.time_ns() // 1000), found)
    except Invalid as refused:
        return IndexAnswer(request.number, violations=tuple(refused.violations))
    except Exception as error:
        # Any error: the request that waits must get an answer.
        sys.stderr.write(f"a question to the index failed: {error!r}\n")
        return IndexAnswer(request.number)


def _read(source: BinaryIO) -> IndexQuestion | None:
    length = source.read(LENGTH)
    return _decode(source.read(int.from_bytes(length))) if length else None


if __name__ == "__main__":
    main(source_of_process())
