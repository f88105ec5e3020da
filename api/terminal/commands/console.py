"""`toll console`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import author, perform
from tollkeeper.api.terminal.options import account_option, author_option, data_option

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.registry.scopes import KeyScope


@click.command(panel="Service")
@account_option
@click.option("--owner", help="The person, for the audit log; by default you.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=("admin",),
    show_default=True,
    help="The scopes, as of a key; repeat it for more.",
)
@author_option
@click.option(
    "--address",
    help="Where the service is reached; when left out, where it listens on this machine.",
)
@data_option
def console(
    account: str,
    owner: str | None,
    scopes: tuple[KeyScope, ...],
    address: str | None,
    data: JournalSource,
) -> None:
    """Print a link to the running service's console: it signs in once, within ten minutes."""
    from tollkeeper.engine.console_address import sign_in_link
    from tollkeeper.engine.publish.sign_in import MakeLink

    code = perform(data, MakeLink(account, owner or author(), scopes)).key
    print(sign_in_link(data, address, code or ""))  # noqa: T201 - the link alone, for a script
