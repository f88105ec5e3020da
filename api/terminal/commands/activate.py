"""`toll activate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from tollkeeper.api.terminal.folder import perform
from tollkeeper.api.terminal.options import account_option, data_option, kind_option
from tollkeeper.api.terminal.output import progress_bar, say


@click.command(panel="What decides")
@click.argument("name")
@click.argument("version", type=int)
@kind_option
@account_option
@data_option
def activate(name: str, version: int, kind: Any, account: str, data: Path) -> None:
    """Make VERSION of NAME the active one; also rolls back."""
    from tollkeeper.engine.publish.activate import Activate

    with progress_bar("filling windows") as progress:
        perform(data, Activate(account, kind, name, version), progress)
    say(f"[bold]{name}[/] version {version} is active")
