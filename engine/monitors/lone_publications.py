"""The alert of a version that somebody published alone, which goes where monitors' alerts go."""

from __future__ import annotations

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.registry.changes import Activated, RecordedChange

LONE_TYPE = "rule.published"
LONE_MONITOR = "alone"
"""No event type and no monitor of an account can have this name: a type's has no dot."""


def lone_publication(recorded: RecordedChange) -> tuple[Transition, ...]:
    """The alert that the change raises; none for every other change."""
    change = recorded.change
    if not isinstance(change, Activated) or not change.alone or change.until is None:
        return ()
    raised = Transition(
        type=LONE_TYPE,
        monitor=LONE_MONITOR,
        key=(change.kind, change.name, change.proposal),
        at=recorded.at,
        met=True,
        title=f"{change.name} v{change.number} was published alone",
        values={
            "by": recorded.by,
            "reason": change.reason,
            "until": show_instant(change.until),
        },
    )
    return (raised,)
