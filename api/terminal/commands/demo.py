"""`toll demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.output import out, refuse

if TYPE_CHECKING:
    from tollkeeper.api.terminal.demo_service import DemoAccess, Sample


@click.command(panel="Service")
@click.option(
    "--port",
    default=8000,
    envvar="TOLL_PORT",
    show_default=True,
    show_envvar=True,
    help="Port to listen on.",
)
def demo(port: int) -> None:
    """Serve a throwaway account with sample traffic, and show what is decided."""
    from tollkeeper.api.http.settings import StartError
    from tollkeeper.api.terminal.demo_service import demo as run_demo

    try:
        with refusals():
            run_demo(port, show_demo)
    except StartError as error:
        refuse(str(error))


def show_demo(news: DemoAccess | Sample) -> None:
    from tollkeeper.api.terminal.decision_lines import demo_lines

    for line in demo_lines(news):
        out.print(line, soft_wrap=True)
