"""A run: a long job that an account has started, with its progress and result."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tollkeeper.engine.offline.jobs.process import JobWord

RunKind: TypeAlias = Literal["backtest", "suggestion"]
RunState: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]


@dataclass(slots=True, eq=False)
class JobRun:
    """`subject` describes the request, `started` is in µs, `share` is the share done, from 0 to 1.

    `shown` are its partial results; `found` is the result once it is done, `reason` is set once it
    failed.
    """

    id: str
    kind: RunKind
    subject: Any
    started: int
    by: str
    state: RunState = "waiting"
    share: float = 0.0
    shown: list[Any] = field(default_factory=list)
    found: Any = None
    reason: str | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def goes_on(self) -> bool:
        return self.state in ("waiting", "running")

    def hear(self, word: JobWord) -> None:
        """Take a message that the job sent before its end."""
        self.state = "running"
        if word.what == "shown":
            self.shown.append(word.value)
        else:
            self.share = word.value

    async def end(self) -> None:
        """End the run, if it is going on."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait([self.task])


def new_run(kind: RunKind, subject: Any, started: int, by: str) -> JobRun:
    return JobRun(secrets.token_hex(8), kind, subject, started, by)
