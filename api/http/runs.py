"""What operations on runs share: the id in the path, and the view."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.parameters import path_parameter
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.offline.jobs.runs import JobRun, RunState

RunId = Annotated[
    str,
    path_parameter("The id from the answer that started it.", "5f0d1c2ab34e9f70", name="id"),
]


class RunView(Struct, frozen=True):
    """A run's progress: `share` from 0 to 1; `reason` says why it failed."""

    id: str
    state: RunState
    share: Annotated[float, Meta(ge=0, le=1)]
    reason: str | None
    started_at: InstantText
    started_by: str


def run_members(run: JobRun) -> dict[str, Any]:
    """Return the members of `RunView`."""
    return {
        "id": run.id,
        "state": run.state,
        "share": round(run.share, 3),
        "reason": run.reason,
        "started_at": show_instant(run.started),
        "started_by": run.by,
    }
