"""`toll keys`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_account
from tollkeeper.api.terminal.options import account_option, data_option, json_option
from tollkeeper.api.terminal.output import say, show_rows

if TYPE_CHECKING:
    from tollkeeper.engine.registry.changes import KeyScope


@click.group(panel="Accounts")
def keys() -> None:
    """API keys; each belongs to one account and has scopes."""


@keys.command("create")
@account_option
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(("payments", "rules", "admin")),
    default=("payments",),
    show_default=True,
    help="What the key may do; give it more than once for more scopes.",
)
@data_option
def create_key(account: str, scopes: tuple[KeyScope, ...], data: Path) -> None:
    """Make a key and print it alone; it is shown this once."""
    from tollkeeper.engine.publish.accounts import CreateKey

    print(perform(data, CreateKey(account, scopes)).key)  # noqa: T201 - the key alone, for a script


@keys.command("list")
@account_option
@json_option
@data_option
def list_keys(account: str, as_json_: bool, data: Path) -> None:
    """List the account's keys by the part of them that may be shown."""
    from tollkeeper.engine.instants import show_instant

    rows = [
        (
            key.id,
            " ".join(key.scopes),
            show_instant(key.created_at),
            "" if key.revoked_at is None else show_instant(key.revoked_at),
        )
        for key in read_account(data, account).keys.values()
    ]
    titles = ("id", "scopes", "created_at", "revoked_at")
    show_rows(titles, rows, as_json_)


@keys.command("revoke")
@click.argument("key_id")
@account_option
@data_option
def revoke_key(key_id: str, account: str, data: Path) -> None:
    """Revoke the key whose shown part is KEY_ID."""
    from tollkeeper.engine.publish.accounts import RevokeKey

    perform(data, RevokeKey(account, key_id))
    say(f"key [bold]{key_id}[/] is revoked")
