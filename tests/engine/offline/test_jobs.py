"""Jobs run in processes of their own, within limits of time and memory."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator

import pytest

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.offline.jobs import jobs as module
from tollkeeper.engine.offline.jobs.jobs import (
    MOST_WAITING,
    JobExceededError,
    Jobs,
    JobUnavailable,
    open_jobs,
)
from tollkeeper.engine.offline.jobs.runs import new_run
from tollkeeper.engine.progress import JobProgress, Progress
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def jobs() -> AsyncIterator[Jobs]:
    async with open_jobs(megabytes=512) as opened:
        yield opened


def process_of(_progress: Progress) -> int:
    print("not an answer")  # noqa: T201 - what a job prints does not disturb it
    return os.getpid()


def half_done(progress: Progress, found: str) -> str:
    progress(0.5)
    return found


def show_and_wait(progress: JobProgress, seconds: float) -> None:
    progress.show("first")
    progress(0.5)
    progress.show("second")
    time.sleep(seconds)


def sleep(progress: Progress, seconds: float) -> None:
    progress(0.01)
    time.sleep(seconds)


def compute(_progress: Progress) -> None:
    while True:
        pass


def refuse(_progress: Progress) -> None:
    raise Invalid([Violation("text", "invalid_value", "it is not good")])


def fill_memory(_progress: Progress) -> int:
    return len(bytes(1 << 30))


def fail(_progress: Progress) -> None:
    raise RuntimeError("planted")


def uncarried(_progress: Progress) -> object:
    return lambda: None


def end_process(_progress: Progress) -> None:
    os._exit(1)


async def test_a_process_is_kept_for_the_next_job(jobs: Jobs) -> None:
    first = await jobs.brief(1, 30, process_of)
    assert first != os.getpid()
    assert await jobs.brief(2, 30, process_of) == first


async def test_a_run_tells_how_far_it_is_and_what_it_found(jobs: Jobs) -> None:
    run = jobs.start(1, new_run("backtest", None, 0, "test"), half_done, "found")
    assert (run.state, jobs.runs(1, "backtest"), jobs.runs(2, "backtest")) == (
        "waiting",
        (run,),
        (),
    )
    assert run.task is not None
    await run.task
    assert (run.state, run.found, run.share) == ("done", "found", 1.0)
    with pytest.raises(NotFound):
        jobs.run(2, "backtest", run.id)


async def test_a_run_shows_what_it_finds_before_its_end(jobs: Jobs) -> None:
    run = jobs.start(1, new_run("backtest", None, 0, "test"), show_and_wait, 600.0)
    while len(run.shown) < 2:
        await asyncio.sleep(0.01)
    assert (run.state, run.share, run.shown) == ("running", 0.5, ["first", "second"])
    await jobs.remove(1, "backtest", run.id)


async def test_a_refusal_says_why(jobs: Jobs) -> None:
    with pytest.raises(Invalid, match="it is not good"):
        await jobs.brief(1, 30, refuse)


async def test_a_job_beyond_its_time_or_memory_is_ended_and_the_next_one_runs(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 6000)
    before = await jobs.brief(1, 30, process_of)
    with pytest.raises(JobExceededError, match="takes longer than"):
        await jobs.brief(1, 0.1, compute)
    with pytest.raises(JobExceededError, match="more than 512 MiB"):
        await jobs.brief(1, 30, fill_memory)
    assert await jobs.brief(1, 30, process_of) != before


async def test_a_job_that_the_machine_gives_no_time_is_ended_for_no_fault_of_its_own(
    jobs: Jobs,
) -> None:
    with pytest.raises(JobUnavailable, match="took longer than"):
        await jobs.brief(1, 0.1, sleep, 600.0)


async def test_a_text_that_takes_too_much_is_at_fault_when_it_is_published(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WORKER_SECONDS", 0.1)
    monkeypatch.setattr(module, "PATIENCE", 6000)
    with pytest.raises(Invalid, match="takes longer than"):
        await jobs.run_in_worker(1, compute, print)


async def test_publishing_waits_for_none_of_the_account_s_other_jobs(jobs: Jobs) -> None:
    many = [
        asyncio.create_task(jobs.brief(account, 30, sleep, 600.0))
        for account in (1, 2)
        for _ in range(MOST_WAITING)
    ]
    await asyncio.sleep(0)
    assert await jobs.run_in_worker(1, os.getpid) != os.getpid()
    for each in many:
        each.cancel()
    await asyncio.wait(many)


async def test_a_run_that_is_removed_ends_with_its_process(jobs: Jobs) -> None:
    pid = await jobs.brief(1, 30, process_of)
    run = jobs.start(1, new_run("backtest", None, 0, "test"), sleep, 600.0)
    with pytest.raises(Conflict, match="goes on"):
        jobs.start(1, new_run("backtest", None, 0, "test"), sleep, 600.0)
    while run.state == "waiting":
        await asyncio.sleep(0.01)
    await jobs.remove(1, "backtest", run.id)
    assert (run.state, jobs.runs(1, "backtest")) == ("cancelled", ())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_run_that_is_refused_says_why(jobs: Jobs) -> None:
    run = jobs.start(1, new_run("backtest", None, 0, "test"), refuse)
    assert run.task is not None
    await run.task
    assert (run.state, run.reason) == ("failed", "it is not good")


@pytest.mark.parametrize("broken", [fail, uncarried, end_process])
async def test_a_job_that_fails_says_so(jobs: Jobs, broken: object) -> None:
    with pytest.raises(JobUnavailable):
        await jobs.brief(1, 30, broken)  # type: ignore[arg-type]
    assert await jobs.brief(1, 30, half_done, "next") == "next"


async def test_a_run_whose_process_cannot_start_fails_and_makes_way_for_the_next(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/nowhere/python")
        run = jobs.start(1, new_run("backtest", None, 0, "ana"), half_done, "found")
        assert run.task is not None
        await asyncio.wait([run.task])
    assert (run.state, run.goes_on) == ("failed", False)
    again = jobs.start(1, new_run("backtest", None, 0, "ana"), half_done, "found")
    assert again.task is not None
    await again.task
    assert again.found == "found"


async def test_an_account_with_many_jobs_delays_no_other(jobs: Jobs) -> None:
    many = [asyncio.create_task(jobs.brief(1, 30, sleep, 0.05)) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(JobUnavailable, match="too many"):
        await jobs.brief(1, 30, process_of)
    await jobs.brief(2, 30, process_of)
    assert sum(each.done() for each in many) < MOST_WAITING
    await asyncio.gather(*many)
