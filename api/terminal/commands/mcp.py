"""`toll mcp`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.options import data_option

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="Rule files")
@click.argument(
    "folder", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@data_option
def mcp(folder: Path, data: JournalSource) -> None:
    """Serve an assistant over standard input and output (Model Context Protocol): it checks, tests
    and backtests the rules in FOLDER, and reads what a service decided.
    """
    with extra("assistant"):
        from tollkeeper.api.terminal.assistant import build_tools

    build_tools(folder, data).run()
