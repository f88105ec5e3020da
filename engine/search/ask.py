"""Ask the search index: in the process that keeps it beside a service, or, without a service, in
this process.

The index process reads length-prefixed MessagePack messages (`IndexQuestion`) from standard input
and writes `IndexAnswer` messages to standard output, in any order.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.questions import Question
from tollkeeper.engine.search.reading import open_index
from tollkeeper.engine.search.worker_processes import command_of, process_environment

T = TypeVar("T")

LENGTH = 4
"""The number of bytes, big-endian, of a message's length prefix."""
_PATIENCE_S = 30.0
_PAUSE_S = 1.0
_END_S = 5.0


class IndexUnavailable(JournalError):  # noqa: N818 - named for what happened
    """The index can't answer at the moment."""


class Search(Protocol):
    """Answers questions about an account's payments.

    `stopping` becomes true when the service shuts down; a caller that polls should then stop.
    """

    stopping: bool

    async def ask(self, account: int, question: Question, found: type[T]) -> tuple[T, int]:
        """Return the answer, of type `found`, and the index's lag behind the journal (µs).

        Raises `Invalid` for a question that can't be answered, `IndexUnavailable`.
        """


class IndexQuestion(Struct, frozen=True):
    number: int
    account: int
    question: Question


class IndexAnswer(Struct, frozen=True):
    """`found` is the encoded answer. A refused question has `violations` instead; a failed one has
    neither.
    """

    number: int
    lag: int = 0
    found: bytes | None = None
    violations: tuple[Violation, ...] = ()


class LocalSearch:
    """Updates the index and queries it, in a thread of this process."""

    def __init__(self, source: JournalSource) -> None:
        self.stopping = False
        self._source = source
        self._turn = asyncio.Lock()

    async def ask(self, account: int, question: Question, found: type[T]) -> tuple[T, int]:
        async with self._turn:
            answer = await asyncio.to_thread(self._ask, account, question)
        return msgspec.convert(msgspec.to_builtins(answer), found), 0

    def _ask(self, account: int, question: Question) -> Any:
        try:
            with closing(Follower(self._source)) as follower:
                follower.catch_up()
            with open_index(self._source, account) as index:
                return question.answer(index)
        except sqlite3.Error as error:
            raise IndexUnavailable(f"the index can't be used: {error}") from error


class SearchProcess:
    """Sends questions to the index process, which is restarted when it ends."""

    def __init__(self, source: JournalSource) -> None:
        self.stopping = False
        self._source = source
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[IndexAnswer]] = {}
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The index process's id; None while it isn't running."""
        return None if self._process is None else self._process.pid

    async def ask(self, account: int, question: Question, found: type[T]) -> tuple[T, int]:
        if self._process is None or self._process.stdin is None:
            raise IndexUnavailable("the index is being started")
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            message = msgspec.msgpack.encode(IndexQuestion(number, account, question))
            self._process.stdin.write(len(message).to_bytes(LENGTH) + message)
            async with asyncio.timeout(_PATIENCE_S):
                answered = await waiting
        except TimeoutError:
            raise IndexUnavailable("the index did not answer in time") from None
        finally:
            del self._waiting[number]
        if answered.violations:
            raise Invalid(answered.violations)
        if answered.found is None:
            raise IndexUnavailable("the index could not answer")
        return msgspec.msgpack.decode(answered.found, type=found), answered.lag

    async def run(self) -> None:
        """Keep the index process running, until cancelled."""
        while True:
            try:
                await self._run_once()
            except Exception:  # any failure: the next process may succeed
                get_logger().exception("index_process_failed")
            get_logger().warning("index_process_ended")
            await asyncio.sleep(_PAUSE_S)

    async def _run_once(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *command_of("process", self._source),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=process_environment(self._source),
        )
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(asyncio.IncompleteReadError):
                while True:
                    length = int.from_bytes(await process.stdout.readexactly(LENGTH))
                    self._settle(await process.stdout.readexactly(length))
        finally:
            self._process = None
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(IndexUnavailable("the index's process ended"))
            process.stdin.close()
            await _wait_for_end(process)

    def _settle(self, message: bytes) -> None:
        answered = _decode(message)
        waiting = self._waiting.get(answered.number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answered)


_decode = msgspec.msgpack.Decoder(IndexAnswer).decode


async def _wait_for_end(process: asyncio.subprocess.Process) -> None:
    """Wait for a process whose input was closed; kill it after `_END_S` seconds."""
    try:
        async with asyncio.timeout(_END_S):
            await asyncio.shield(process.wait())
    except TimeoutError:
        process.kill()
        await process.wait()


@asynccontextmanager
async def run_search_process(source: JournalSource) -> AsyncIterator[Search]:
    """Run an index process while the context lasts."""
    search = SearchProcess(source)
    running = asyncio.create_task(search.run())
    try:
        yield search
    finally:
        running.cancel()
        await asyncio.wait([running])
