"""`toll lsp`."""

from __future__ import annotations

import gc

import rich_click as click

from tollkeeper.api.terminal.extras import extra


@click.command(panel="Rule files")
def lsp() -> None:
    """Serve an editor over standard input and output (Language Server Protocol)."""
    with extra("editor"):
        from tollkeeper.api.terminal.lsp.server import build_server

    server = build_server()
    # What is read of files holds no cycles: a collector that looks through it each time finds none.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    server.start_io()
