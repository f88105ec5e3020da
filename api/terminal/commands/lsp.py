"""`toll lsp`."""

from __future__ import annotations

import rich_click as click

from tollkeeper.api.terminal.extras import extra


@click.command(panel="Rule files")
def lsp() -> None:
    """Serve an editor over standard input and output (Language Server Protocol)."""
    with extra("editor"):
        from tollkeeper.api.terminal.lsp.server import build_server

    build_server().start_io()
