"""`toll lsp`."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.options import data_option

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="Rule files")
@click.option(
    "--account",
    envvar="TOLL_ACCOUNT",
    show_envvar=True,
    help="Show what this account's payments hold, and backtest on them.",
)
@data_option
def lsp(account: str | None, data: JournalSource) -> None:
    """Serve an editor over standard input and output (Language Server Protocol)."""
    with extra("editor"):
        from tollkeeper.api.terminal.lsp.live import LiveAccount
        from tollkeeper.api.terminal.lsp.server import build_server

    server = build_server(None if account is None else LiveAccount(account, data))
    # What is read of files holds no cycles: a collector that looks through it each time finds none.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    server.start_io()
