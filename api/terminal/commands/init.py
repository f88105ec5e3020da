"""`toll init`."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from tollkeeper.api.terminal.output import refuse, say


@click.command(panel="Rule files")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def init(folder: Path) -> None:
    """Write a folder of rules to start from: a rule with tests, a case, a workflow."""
    from tollkeeper.engine.offline.testing.starting import OccupiedError, start_folder

    try:
        for path in start_folder(folder):
            say(f"wrote {path}")
    except OccupiedError as error:
        refuse(str(error))
