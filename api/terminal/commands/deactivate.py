"""`toll deactivate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.folder import perform
from tollkeeper.api.terminal.options import account_option, author_option, data_option, kind_option
from tollkeeper.api.terminal.output import say

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="What decides")
@click.argument("name")
@kind_option
@account_option
@author_option
@data_option
def deactivate(name: str, kind: Any, account: str, data: JournalSource) -> None:
    """Deactivate NAME."""
    from tollkeeper.engine.publish.activate import Deactivate

    perform(data, Deactivate(account, kind, name))
    say(f"{name} is not published any more")
