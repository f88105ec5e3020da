"""`toll restore`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import data_folder, refusals
from tollkeeper.api.terminal.options import data_option
from tollkeeper.api.terminal.output import progress_bar, say

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="Service")
@click.argument("backup", type=click.Path(file_okay=False, exists=True, path_type=Path))
@data_option
def restore(backup: Path, data: JournalSource) -> None:
    """Restore the folder BACKUP to the data folder, which must be empty.

    No backup contains `folder.key`: put a copy of it into the folder before it is served.
    Persons erased after the backup was taken are in it again: erase them again.
    """
    from tollkeeper.engine.backup.restore import restore as restore_into
    from tollkeeper.engine.folder_key import KEY_FILE
    from tollkeeper.engine.instants import show_instant

    folder = data_folder(
        data, 'restore it with the database\'s own tools (docs/operate.md, "On PostgreSQL")'
    )
    with refusals(), progress_bar("restoring") as progress:
        made = restore_into(backup, folder, progress)
    say(
        f"restored what was backed up at {show_instant(made.taken_at)}, up to entry"
        f" {made.sequence}, into {folder}"
    )
    say(
        f"put the `{KEY_FILE}` of the folder that was backed up into it before it is served",
        style="yellow",
    )
    say("whoever was erased since then is in it again: erase them again", style="yellow")
