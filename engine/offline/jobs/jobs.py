"""Run jobs in processes beside the service: a bounded number at once in each lane, and an account's
jobs one after another.

The caller of a brief job waits for it. Publishing has a lane of its own, so that it does not wait
for checks and figures. A long job is a run: it is started, polled for its progress, and ended. An
account has one run of each kind at a time.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeAlias, TypeVar, cast

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.offline.jobs.process import LENGTH_BYTES, JobCall, JobWord
from tollkeeper.engine.offline.jobs.runs import JobRun, RunKind
from tollkeeper.engine.progress import JobProgress, Progress
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound, Refused

T = TypeVar("T")
P = ParamSpec("P")

HearWord: TypeAlias = Callable[[JobWord], None]
Lane: TypeAlias = Literal["brief", "publishing", "long"]

LANES: Final[Mapping[Lane, int]] = {"brief": 2, "publishing": 1, "long": 1}
"""How many jobs run at once in each lane."""
MEGABYTES = 4096
"""The address space of a job's process in MiB."""
LONG_SECONDS = 3600.0
"""The processor time (s) of a run."""
WORKER_SECONDS = 30.0
"""The processor time (s) of work for publishing."""
KEPT = 20
"""How many runs of each kind, the newest, are kept for an account until the service ends."""
PATIENCE = 6
"""A job may take this many times its processor time on the clock, as the machine is shared."""
MOST_WAITING = 16
"""The most jobs of one account that may wait in a lane."""


class JobExceededError(Exception):
    """A job was ended because it exceeded its processor time or memory; the message says which."""


class JobUnavailable(JournalError):  # noqa: N818 - named for what happened
    """The job could not be finished, for a reason outside of it."""


class Jobs:
    """Processes are started when needed and kept for the next job.

    The process of a job that fails, is cancelled or exceeds a limit is killed.
    """

    def __init__(self, megabytes: int = MEGABYTES) -> None:
        self._megabytes = megabytes
        self._idle: list[_JobProcess] = []
        self._lanes = {lane: asyncio.Semaphore(most) for lane, most in LANES.items()}
        self._runs: defaultdict[tuple[int, RunKind], list[JobRun]] = defaultdict(list)
        self._turns: defaultdict[tuple[Lane, int], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: defaultdict[tuple[Lane, int], int] = defaultdict(int)

    async def brief(
        self,
        account: int,
        seconds: float,
        work: Callable[Concatenate[Progress, P], T],
        *given: P.args,
        **_none: P.kwargs,
    ) -> T:
        """Run `work` as a brief job; an account's jobs run one after another.

        Raises `JobExceededError`, `JobUnavailable`, and `Invalid` when the job raises it.
        """
        return cast("T", await self._take_turn("brief", account, JobCall(work, given, seconds)))

    async def run_in_worker(
        self, account: int, work: Callable[P, T], /, *given: P.args, **named: P.kwargs
    ) -> T:
        """`Engine.run_in_worker` for a service: run `work` in a process, in the lane of publishing.

        Raises `Invalid` for a text that needs too much time or memory.
        """
        call = JobCall(_without_progress, (partial(work, *given, **named),), WORKER_SECONDS)
        try:
            return cast("T", await self._take_turn("publishing", account, call))
        except JobExceededError as error:
            raise Invalid.at("body", "out_of_range", str(error)) from None

    async def _take_turn(self, lane: Lane, account: int, call: JobCall) -> Any:
        of = lane, account
        if self._waiting[of] >= MOST_WAITING:
            raise JobUnavailable("too many jobs of the account wait for their turn")
        self._waiting[of] += 1
        try:
            async with self._turns[of]:
                return await self._run(lane, _untold, call)
        finally:
            self._waiting[of] -= 1

    def start(
        self,
        account: int,
        run: JobRun,
        work: Callable[Concatenate[JobProgress, P], Any],
        *given: P.args,
        **_none: P.kwargs,
    ) -> JobRun:
        """Start `work` for the run. Raises `Conflict` while another run of its kind is going on."""
        runs = self._runs[account, run.kind]
        unfinished = next((each for each in runs if each.goes_on), None)
        if unfinished is not None:
            message = f"{run.kind} `{unfinished.id}` goes on; end it, or wait for it"
            raise Conflict("id", message)
        runs.append(run)
        del runs[:-KEPT]
        run.task = asyncio.create_task(self._follow(run, JobCall(work, given, LONG_SECONDS)))
        return run

    async def _follow(self, run: JobRun, call: JobCall) -> None:
        try:
            run.found = await self._run("long", run.hear, call)
            run.state, run.share = "done", 1.0
        except asyncio.CancelledError:
            run.state = "cancelled"
        except (Refused, JournalError, JobExceededError) as error:
            run.state, run.reason = "failed", str(error)

    def runs(self, account: int, kind: RunKind) -> tuple[JobRun, ...]:
        """The account's runs, newest first."""
        return tuple(reversed(self._runs[account, kind]))

    def run(self, account: int, kind: RunKind, id_: str) -> JobRun:
        """Raises `NotFound`."""
        for run in self._runs[account, kind]:
            if run.id == id_:
                return run
        raise NotFound("id", f"there is no {kind} `{id_}`")

    async def remove(self, account: int, kind: RunKind, id_: str) -> JobRun:
        """Delete a run, ending it if it is going on. Raises `NotFound`."""
        run = self.run(account, kind, id_)
        self._runs[account, kind].remove(run)
        await run.end()
        return run

    async def _run(self, lane: Lane, hear: HearWord, call: JobCall) -> Any:
        async with self._lanes[lane]:
            process = await self._process()
            try:
                async with asyncio.timeout(call.seconds * PATIENCE):
                    word = await process.ask(call, hear)
            except TimeoutError:
                await process.kill()
                most = call.seconds * PATIENCE
                raise JobUnavailable(f"the job took longer than {most:g} seconds") from None
            except (asyncio.IncompleteReadError, ConnectionError):
                await process.kill()
                raise JobUnavailable("the job's process ended") from None
            except BaseException:
                await process.kill()
                raise
            if word.what in ("slow", "memory"):
                # The process may keep the memory that it has.
                await process.kill()
                if word.what == "slow":
                    raise JobExceededError(f"it takes longer than {call.seconds:g} seconds")
                raise JobExceededError(f"it needs more than {self._megabytes} MiB of memory")
            self._idle.append(process)
        if word.what == "refused":
            raise Invalid(word.value)
        if word.what == "failed":
            raise JobUnavailable("the job failed")
        return word.value

    async def _process(self) -> _JobProcess:
        while self._idle:
            process = self._idle.pop()
            if process.lives:
                return process
        return await _JobProcess.start(self._megabytes)

    async def close(self) -> None:
        """End all runs and processes; no brief job may be running."""
        for runs in self._runs.values():
            for run in runs:
                await run.end()
        while self._idle:
            await self._idle.pop().kill()


class _JobProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._input, self._output = process, process.stdin, process.stdout

    @classmethod
    async def start(cls, megabytes: int) -> _JobProcess:
        pipe = asyncio.subprocess.PIPE
        module = "tollkeeper.engine.offline.jobs.process"
        command = (sys.executable, "-m", module, str(megabytes))
        try:
            return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))
        except OSError as error:  # the machine has no more memory, processes or files
            raise JobUnavailable(f"the job's process did not start: {error.strerror}") from None

    @property
    def lives(self) -> bool:
        return self._process.returncode is None

    async def ask(self, call: JobCall, hear: HearWord) -> JobWord:
        message = pickle.dumps(tuple(call))
        self._input.write(len(message).to_bytes(LENGTH_BYTES) + message)
        await self._input.drain()
        while True:
            length = int.from_bytes(await self._output.readexactly(LENGTH_BYTES))
            answered = await self._output.readexactly(length)
            word = JobWord(*pickle.loads(answered))  # noqa: S301 - from the service's own process
            if word.what not in ("progress", "shown"):
                return word
            hear(word)

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


def _without_progress(_progress: Progress, work: Callable[[], T]) -> T:
    return work()


def _untold(_word: JobWord) -> None:
    """Ignore a brief job's progress."""


@asynccontextmanager
async def open_jobs(megabytes: int = MEGABYTES) -> AsyncIterator[Jobs]:
    """Jobs whose processes end with the block."""
    jobs = Jobs(megabytes)
    try:
        yield jobs
    finally:
        await jobs.close()
