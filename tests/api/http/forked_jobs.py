"""Jobs as a service runs them, whose processes are forked from one that has loaded the product."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tollkeeper.engine.offline.jobs import jobs, process
from tollkeeper.tests.forked import fork


class ForkedProcess:
    """What `Jobs` needs of a process that asyncio has started."""

    def __init__(self, megabytes: int, channel: socket.socket) -> None:
        self._process = fork(_serve_jobs, megabytes, channel)
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    async def wait(self) -> None:
        assert self.stdin is not None
        self.stdin.close()
        await asyncio.to_thread(self._process.join)


def _serve_jobs(megabytes: int, channel: socket.socket) -> None:
    with channel.makefile("rb") as sent, channel.makefile("wb") as answers:
        sys.stdin, sys.stdout = _Stream(sent), _Stream(answers)
        process.main(megabytes)


class _Stream:
    """The part of a standard stream that the process of jobs uses."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer


async def _start(megabytes: int) -> Any:
    ours, theirs = socket.socketpair()
    with theirs:
        forked = ForkedProcess(megabytes, theirs)
    forked.stdout, forked.stdin = await asyncio.open_connection(sock=ours)
    return jobs._JobProcess(forked)  # type: ignore[arg-type]


@asynccontextmanager
async def open_forked_jobs() -> AsyncIterator[jobs.Jobs]:
    """As `open_jobs`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs._JobProcess, "start", _start)
        async with jobs.open_jobs() as opened:
            yield opened
