"""`toll clock`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import perform, refusals
from tollkeeper.api.terminal.options import author_option, data_option
from tollkeeper.api.terminal.output import say

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.group(panel="Service")
def clock() -> None:
    """The clock, by which old data is removed."""


@clock.command("accept")
@author_option
@data_option
def accept_clock(data: JournalSource) -> None:
    """Confirm that this machine's clock is right although it seems to have jumped."""
    from tollkeeper.engine.journal.source import shards_of
    from tollkeeper.engine.watching import AcceptClock

    with refusals():
        shards = shards_of(data)
    for each in shards:
        perform(each, AcceptClock())
    say("the clock is taken as right; what is too old is removed from now on")
