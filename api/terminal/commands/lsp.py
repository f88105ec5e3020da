"""`toll lsp`."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, TextIO

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
    help="Show figures of this account's payments, and backtest on them.",
)
@data_option
@click.option("--url", help="Show figures of the payments in the service at this address.")
@click.option(
    "--key-file",
    type=click.File(),
    envvar="TOLL_KEY_FILE",
    show_envvar=True,
    help="With `--url`: the file with an API key of the scope `payments:read`.",
)
def lsp(account: str | None, data: JournalSource, url: str | None, key_file: TextIO | None) -> None:
    """Serve an editor over standard input and output (Language Server Protocol)."""
    with extra("editor"):
        from tollkeeper.api.terminal.lsp.live import LiveAccount, LiveService
        from tollkeeper.api.terminal.lsp.server import build_server

    service = None
    if url is not None:
        if key_file is None:
            raise click.UsageError("`--url` needs `--key-file`")
        service = LiveService(url, key_file.read().strip())
    server = build_server(None if account is None else LiveAccount(account, data), service)
    # What is there now stays: collections would look through it again and again.
    gc.freeze()
    # The server closes the output that it is given, and the command flushes its own at the end.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output:
        server.start_io(stdout=output)
