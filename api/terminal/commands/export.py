"""`toll export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.folder import data_folder, refusals
from tollkeeper.api.terminal.options import data_option, json_option
from tollkeeper.api.terminal.output import plural, print_json, progress_bar, say

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="Service")
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the export.",
)
@click.option("--account", envvar="TOLL_ACCOUNT", show_envvar=True, help="Only this account.")
@json_option
@data_option
def export(target: Path, account: str | None, as_json_: bool, data: JournalSource) -> None:
    """Bring an export up to date: history as Parquet, for DuckDB, pandas and others.

    The service may be running. What was erased or purged is removed from the export, too.
    """
    import msgspec

    with extra("columns"):
        from tollkeeper.engine.columns.export import export_columns

    folder = data_folder(data, "read its tables there; only a data folder is exported")
    with refusals(), progress_bar("exporting") as progress:
        done = export_columns(folder, target, account, progress)
    if as_json_:
        print_json(msgspec.to_builtins(done))
        return
    for each in done.accounts:
        say(
            f"{each.account}: {plural(each.payments, 'payment')} of {plural(each.days, 'day')},"
            f" up to entry {each.sequence}; {plural(len(each.written), 'day')} written"
        )
    for name in done.removed:
        say(f"{name}: removed, as the account is deleted")
