"""`toll serve`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click

from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.options import data_option
from tollkeeper.api.terminal.output import progress_bar

POSITIVE = click.IntRange(min=1)


class Setting(click.Option):
    """An option whose default is that of `Settings`, looked up when it is asked for."""

    def get_default(self, ctx: Any, call: bool = True) -> Any:  # noqa: ARG002 - click's way
        from tollkeeper.api.http.settings import Settings

        return getattr(Settings(), self.name or "")


def setting(name: str, help_: str, type: Any = int) -> Callable[[Callable[..., Any]], Any]:  # noqa: A002 - click's word
    """An option of `toll serve`, with its `TOLL_…` variable."""
    return click.option(
        f"--{name.replace('_', '-')}",
        cls=Setting,
        type=type,
        envvar=f"TOLL_{name.upper()}",
        show_default=True,
        show_envvar=True,
        help=help_,
    )


@click.command(panel="Service")
@data_option
@setting("host", "Address to listen on.", type=str)
@setting("port", "Port to listen on.")
@setting("waiting", "Requests that may wait for the disk at once; more get a 503.")
@setting("connections", "Connections that may be open at once; more get a 503.")
@setting("idle_seconds", "A connection without a whole request for so long is closed.")
@setting("head_bytes", "Bytes of a request's head; a larger one gets a 431.", POSITIVE)
@setting("body_bytes", "Bytes of a JSON body; a larger one gets a 413.", POSITIVE)
@setting("body_seconds", "How long a body may take to arrive; else it gets a 408.", POSITIVE)
@setting("drain_seconds", "How long requests in flight have once the service is told to stop.")
@setting("windows_cap", "Elements that an account's windows may hold.")
@setting(
    "late_hours",
    "Hours after its time that a payment still reads and counts in windows.",
    click.IntRange(1, 24),
)
@setting("reach", "Where webhooks may go.", type=click.Choice(("public", "any")))
def serve(data: Path, **settings: Any) -> None:
    """Start the service."""
    from tollkeeper.api.http.serve import serve as serve_folder
    from tollkeeper.api.http.settings import Settings

    with refusals(), progress_bar("filling windows") as progress:
        serve_folder(Settings(folder=data, **settings), progress)
