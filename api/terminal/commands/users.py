"""`toll users`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_account
from tollkeeper.api.terminal.options import account_option, author_option, data_option, json_option
from tollkeeper.api.terminal.output import say, show_rows

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource

_ROLES = ("viewer", "analyst", "lead", "auditor", "admin")


@click.group(panel="Accounts")
def users() -> None:
    """People who may sign in to the console, each with a role."""


@users.command("set")
@click.argument("name")
@click.option("--role", required=True, type=click.Choice(_ROLES), help="Their role.")
@click.option(
    "--merchant",
    "merchants",
    multiple=True,
    help="Limit them to the merchant with this id; repeat it for several.",
)
@account_option
@author_option
@data_option
def put_user(
    name: str, role: str, merchants: tuple[str, ...], account: str, data: JournalSource
) -> None:
    """Add user NAME, or change their role.

    NAME is an e-mail address if people sign in by OpenID.
    """
    from tollkeeper.engine.publish.users import PutUser

    perform(data, PutUser(account, name, role, merchants or None))
    say(f"{name} is {role}")


@users.command("list")
@account_option
@json_option
@data_option
def list_users(account: str, as_json_: bool, data: JournalSource) -> None:
    """List the account's users."""
    from tollkeeper.engine.instants import show_instant

    found = sorted(read_account(data, account).users.items())
    rows = [
        (name, user.role, " ".join(user.merchants), show_instant(user.since), user.set_by)
        for name, user in found
    ]
    show_rows(("name", "role", "merchants", "since", "by"), rows, as_json_)


@users.command("remove")
@click.argument("name")
@account_option
@author_option
@data_option
def drop_user(name: str, account: str, data: JournalSource) -> None:
    """Remove user NAME, and end their sessions."""
    from tollkeeper.engine.publish.users import DropUser

    perform(data, DropUser(account, name))
    say(f"{name} is no user any more")


@users.command("link")
@click.argument("name")
@account_option
@author_option
@click.option(
    "--address",
    help="Where the service is reached; when left out, where it listens on this machine.",
)
@data_option
def give_link(name: str, account: str, address: str | None, data: JournalSource) -> None:
    """Print a link to the running service's console: it signs NAME in once, within ten minutes."""
    from tollkeeper.engine.console_address import sign_in_link
    from tollkeeper.engine.publish.users import GiveLink

    code = perform(data, GiveLink(account, name)).key
    print(sign_in_link(data, address, code or ""))  # noqa: T201 - the link alone, for a script
