"""`toll versions`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.folder import read_account, refusals
from tollkeeper.api.terminal.options import account_option, data_option, json_option, kind_option
from tollkeeper.api.terminal.output import show_rows

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="What decides")
@click.argument("name")
@kind_option
@account_option
@json_option
@data_option
def versions(name: str, kind: Any, account: str, as_json_: bool, data: JournalSource) -> None:
    """List the versions of NAME, newest first."""
    from tollkeeper.engine.instants import show_instant
    from tollkeeper.engine.registry.versions import find_lineage

    with refusals():
        lineage = find_lineage(read_account(data, account), kind, name)
    states: defaultdict[int | None, list[str]] = defaultdict(list)
    states[lineage.active].append("active")
    if lineage.rollout is not None:
        states[lineage.rollout.version].append(f"rollout {lineage.rollout.percent}%")
    states[lineage.shadow].append("shadow")
    rows = [
        (
            version.number,
            ", ".join(states[version.number]),
            show_instant(version.stored_at),
            version.stored_by,
            version.checksum[:12],
        )
        for version in reversed(lineage.versions)
    ]
    titles = ("version", "state", "stored_at", "stored_by", "checksum")
    show_rows(titles, rows, as_json_)
