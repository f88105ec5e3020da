"""`toll console`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import author, perform
from tollkeeper.api.terminal.options import account_option, author_option, data_option

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.registry.scopes import KeyScope

ADDRESS = "http://127.0.0.1:8000"


@click.command(panel="Service")
@account_option
@click.option("--owner", help="Who it is for, as the audit shows it; you, when left out.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=("admin",),
    show_default=True,
    help="What they may do, as of a key; give it more than once for more scopes.",
)
@author_option
@click.option("--address", default=ADDRESS, show_default=True, help="Where the service is reached.")
@data_option
def console(
    account: str, owner: str | None, scopes: tuple[KeyScope, ...], address: str, data: JournalSource
) -> None:
    """Print a link to the running service's console: it signs in once, within ten minutes."""
    from tollkeeper.engine.publish.sign_in import MakeLink

    code = perform(data, MakeLink(account, owner or author(), scopes)).key
    print(f"{address}/console/sign-in?code={code}")  # noqa: T201 - the link alone, for a script
