"""An alert for each publication without the second approval, delivered as monitors' alerts are."""

from __future__ import annotations

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.registry.changes import Activated, EntriesChanged, RecordedChange

LONE_TYPE = "rule.published"
LONE_MONITOR = "alone"
"""The names of type and monitor in such an alert; no account can define them: they contain a dot.
"""


def lone_publication(recorded: RecordedChange) -> tuple[Transition, ...]:
    """The alert that the change raises; empty for every other change."""
    change = recorded.change
    match change:
        case Activated(alone=True, until=int(until)):
            key: tuple[str, str, int | None] = (change.kind, change.name, change.proposal)
            title = f"{change.name} v{change.number} was published alone"
        case EntriesChanged(alone=True, until=int(until)):
            key = ("list", change.list, change.proposal)
            title = f"entries of {change.list} were put alone: {change.count}"
        case _:
            return ()
    raised = Transition(
        type=LONE_TYPE,
        monitor=LONE_MONITOR,
        key=key,
        at=recorded.at,
        met=True,
        title=title,
        values={
            "by": recorded.by,
            "reason": change.reason,
            "until": show_instant(until),
        },
    )
    return (raised,)
