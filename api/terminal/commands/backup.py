"""`toll backup`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import data_folder, refusals
from tollkeeper.api.terminal.options import data_option, json_option
from tollkeeper.api.terminal.output import plural, print_json, progress_bar, say

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="Service")
@click.argument("target", type=click.Path(file_okay=False, path_type=Path))
@json_option
@data_option
def backup(target: Path, as_json_: bool, data: JournalSource) -> None:
    """Back the data folder up to TARGET; a repeated backup only writes changes.

    The service may be running. TARGET gets no `folder.key`: keep a copy of it elsewhere.
    """
    import msgspec

    from tollkeeper.engine.backup.backup import back_up

    folder = data_folder(
        data, 'copy it with the database\'s own tools (docs/operate.md, "On PostgreSQL")'
    )
    with refusals(), progress_bar("backing up") as progress:
        made = back_up(folder, target, progress)
    if as_json_:
        print_json(msgspec.to_builtins(made))
        return
    say(
        f"backed up {plural(len(made.files), 'file')} up to entry {made.sequence}:"
        f" {made.bytes:,} bytes, of which {made.written:,} were written"
    )
