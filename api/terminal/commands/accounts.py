"""`toll accounts`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_account, read_data, refusals
from tollkeeper.api.terminal.options import data_option, json_option
from tollkeeper.api.terminal.output import plural, print_json, say, show_rows

if TYPE_CHECKING:
    from tollkeeper.engine.read_folder import Picture
    from tollkeeper.engine.registry.state import Account


@click.group(panel="Accounts")
def accounts() -> None:
    """Accounts: each has its own keys, rules, lists and payments."""


@accounts.command("create")
@click.argument("name")
@data_option
def create_account(name: str, data: Path) -> None:
    """Make an account."""
    from tollkeeper.engine.publish.accounts import CreateAccount

    perform(data, CreateAccount(name))
    say(
        f"account [bold]{name}[/] is there; make a key with [cyan]toll keys create --account {name}[/]"
    )


@accounts.command("list")
@json_option
@data_option
def list_accounts(as_json_: bool, data: Path) -> None:
    """List the accounts."""
    from tollkeeper.engine.instants import show_instant

    async def ask(picture: Picture) -> list[Account]:
        return list(picture.state.accounts.values())

    found = read_data(data, ask)
    rows = [(each.name, show_instant(each.created_at)) for each in found]
    titles = ("name", "created_at")
    show_rows(titles, rows, as_json_)


@accounts.command("show")
@click.argument("name")
@data_option
def show_account(name: str, data: Path) -> None:
    """Print the account's settings as JSON."""
    from tollkeeper.engine.registry.settings import show_settings

    print_json(show_settings(read_account(data, name).settings))


@accounts.command("set")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="SETTING=VALUE...")
@data_option
def set_account(name: str, settings: Sequence[str], data: Path) -> None:
    """Change settings: `thresholds.deny=0.9`, `default_rule=checkout`, `default_rule=null`."""
    from tollkeeper.engine.publish.set_settings import ChangeSettings, read_assignments

    with refusals():
        changes = read_assignments(settings)
    changed = perform(data, ChangeSettings(name, changes)).count
    say(f"{plural(changed or 0, 'setting')} of account [bold]{name}[/] changed")
