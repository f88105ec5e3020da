"""`toll erase`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import perform
from tollkeeper.api.terminal.options import UTF8, account_option, author_option, data_option
from tollkeeper.api.terminal.output import plural, say

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="What happened")
@click.option("--user", type=UTF8, required=True, help="The user's id, as in payments.")
@account_option
@author_option
@data_option
def erase(user: str, account: str, data: JournalSource) -> None:
    """Erase one person's data for good: from payments, events, alerts, lists and windows."""
    from tollkeeper.engine.privacy.erasure import EraseUser

    erased = perform(data, EraseUser(account, user)).erased
    assert erased is not None
    counts = (plural(erased.payments, "payment"), plural(erased.events, "event"))
    say(f"erased from {', '.join(counts)} and {plural(erased.alerts, 'alert')}")
    for name, count in erased.list_entries.items():
        say(f"{plural(count, 'entry')} removed from the list {name}")
