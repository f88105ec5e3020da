"""`toll restore`."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.options import data_option
from tollkeeper.api.terminal.output import progress_bar, say


@click.command(panel="Service")
@click.argument("backup", type=click.Path(file_okay=False, exists=True, path_type=Path))
@data_option
def restore(backup: Path, data: Path) -> None:
    """Make the data folder, which must be empty, what the folder BACKUP holds.

    Persons erased after the backup was taken are in it again: erase them again.
    """
    from tollkeeper.engine.backup.restore import restore as restore_into
    from tollkeeper.engine.instants import show_instant

    with refusals(), progress_bar("restoring") as progress:
        made = restore_into(backup, data, progress)
    say(
        f"restored what was backed up at {show_instant(made.taken_at)}, up to entry"
        f" {made.sequence}, into {data}"
    )
    say("whoever was erased since then is in it again: erase them again", style="yellow")
