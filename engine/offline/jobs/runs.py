"""A long job that an account started: how far it is, and what came of it."""

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
    """`subject` is what was asked for, `started` in µs, `share` what is done from 0 to 1.

    `shown` is what it showed of what it finds, in that order; `found` is there once it is done,
    `reason` once it failed.
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
        """What the job tells before its end."""
        self.state = "running"
        if word.what == "shown":
            self.shown.append(word.value)
        else:
            self.share = word.value

    async def end(self) -> None:
        """Ends it, if it still goes on."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.wait([self.task])


def new_run(kind: RunKind, subject: Any, started: int, by: str) -> JobRun:
    return JobRun(secrets.token_hex(8), kind, subject, started, by)
