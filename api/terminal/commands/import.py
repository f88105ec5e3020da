"""`toll import`."""

# ruff: noqa: N999 - a command's module has its name

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.options import data_option
from tollkeeper.api.terminal.output import plural, progress_bar, say

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command("import", panel="Service")
@click.option(
    "--from",
    "folder",
    required=True,
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Data folder whose service has been stopped; it is not changed.",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="The number of payments, spread over all, whose explanations are compared.",
)
@data_option
def import_(folder: Path, sample: int, data: JournalSource) -> None:
    """Move a data folder into the PostgreSQL database of --database, and compare the two.

    Every entry and every value of a list is compared. If interrupted, it continues when run again.
    """
    from tollkeeper.engine.journal.source import Database

    if not isinstance(data, Database):
        raise click.UsageError("give the database with --database")
    with refusals(), progress_bar("moving") as progress:
        from tollkeeper.engine.backup.into_database import move_into_database

        moved = move_into_database(folder, data, sample, progress)
    say(
        f"moved {plural(moved.entries, 'entry')}, the same there; {plural(moved.explained, 'payment')}"
        f" explained alike. {data.folder} holds the key of secrets for `toll serve`"
    )
