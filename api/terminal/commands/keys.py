"""`toll keys`."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_data
from tollkeeper.api.terminal.options import account_option, author_option, data_option, json_option
from tollkeeper.api.terminal.output import say, show_rows

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.read_folder import Picture
    from tollkeeper.engine.registry.scopes import KeyScope
    from tollkeeper.engine.registry.state import ApiKey

_BUNDLES = ("payments", "rules", "admin")
_SCOPES = (
    *("payments:write", "payments:read", "personal:read", "labels:write", "events:write"),
    *("rules:read", "rules:write", "rules:publish", "lists:read", "lists:write"),
    *("settings:read", "settings:write", "audit:read", "people:write"),
    *("users:read", "users:write"),
)
_DAYS = re.compile(r"([1-9][0-9]{0,4})d")


@click.group(panel="Accounts")
def keys() -> None:
    """API keys; each belongs to one account and has scopes."""


@keys.command("create")
@account_option
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice((*_BUNDLES, *_SCOPES)),
    default=("payments",),
    show_default=True,
    metavar="SCOPE",
    help="What the key may do; repeat it for more scopes. "
    f"Bundles: {', '.join(_BUNDLES)}. Scopes: {', '.join(_SCOPES)}.",
)
@click.option("--name", default="", help="A name for people.")
@click.option(
    "--expires", metavar="INSTANT|DAYSd", help="When the key ends: `2027-01-01T00:00Z`, or `90d`."
)
@click.option(
    "--test", is_flag=True, help="For the test account, whose payments are separate from live ones."
)
@click.option("--owner", default="", help="The user responsible for the key.")
@author_option
@data_option
def create_key(
    account: str,
    scopes: tuple[KeyScope, ...],
    name: str,
    expires: str | None,
    test: bool,
    owner: str,
    data: JournalSource,
) -> None:
    """Make a key and print it alone; it is shown only once."""
    from tollkeeper.engine.publish.accounts import CreateKey

    ends_at = None if expires is None else _read_end(expires)
    verb = CreateKey(account, scopes, name, ends_at, test, owner)
    print(perform(data, verb).key)  # noqa: T201 - the key alone, for a script


@keys.command("list")
@account_option
@json_option
@data_option
def list_keys(account: str, as_json_: bool, data: JournalSource) -> None:
    """List the account's keys by their id, the part that is not secret."""
    from tollkeeper.engine.journal.source import folder_of
    from tollkeeper.engine.key_uses import read_key_uses
    from tollkeeper.engine.registry.accounts import find_account, sharing

    async def ask(picture: Picture) -> list[ApiKey]:
        numbers = sharing(picture.state, find_account(picture.state, account).number)
        return [key for each in numbers for key in picture.state.accounts[each].keys.values()]

    uses = read_key_uses(folder_of(data))
    rows = [
        (
            key.id,
            key.name,
            " ".join(key.scopes),
            *map(_show, (key.created_at, key.expires_at, uses.get(key.id), key.revoked_at)),
        )
        for key in read_data(data, ask)
    ]
    titles = ("id", "name", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")
    show_rows(titles, rows, as_json_)


@keys.command("revoke")
@click.argument("key_id")
@account_option
@author_option
@data_option
def revoke_key(key_id: str, account: str, data: JournalSource) -> None:
    """Revoke the key with the id KEY_ID."""
    from tollkeeper.engine.publish.accounts import RevokeKey

    perform(data, RevokeKey(account, key_id))
    say(f"key {key_id} is revoked")


def _read_end(text: str) -> int:
    """Read when a key ends (µs). Raises `BadParameter`."""
    from tollkeeper.engine.instants import DAY
    from tollkeeper.engine.lists.values import read_instant

    if days := _DAYS.fullmatch(text):
        return time.time_ns() // 1000 + int(days[1]) * DAY
    try:
        return read_instant(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--expires") from None


def _show(at: int | None) -> str:
    from tollkeeper.engine.instants import show_instant

    return "" if at is None else show_instant(at)
