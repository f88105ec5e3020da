"""`toll accounts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import journal_of, perform, read_account, read_data, refusals
from tollkeeper.api.terminal.options import author_option, data_option, json_option
from tollkeeper.api.terminal.output import plural, print_json, say, show_rows

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.read_folder import Picture
    from tollkeeper.engine.registry.state import Account, Configuration, DeletedAccount


@click.group(panel="Accounts")
def accounts() -> None:
    """Accounts: each has its own keys, rules, lists and payments."""


@accounts.command("create")
@click.argument("name")
@author_option
@data_option
def create_account(name: str, data: JournalSource) -> None:
    """Make an account."""
    from tollkeeper.engine.journal.source import home_of
    from tollkeeper.engine.publish.accounts import CreateAccount

    with refusals():
        home = home_of(data, name, is_new=True)
    perform(home, CreateAccount(name))
    say(f"account {name} is there; make a key with toll keys create --account {name}")


@accounts.command("list")
@json_option
@data_option
def list_accounts(as_json_: bool, data: JournalSource) -> None:
    """List the accounts, those that were deleted last."""
    from tollkeeper.engine.journal.source import shards_of

    async def ask(picture: Picture) -> Configuration:
        return picture.state

    with refusals():
        states = [read_data(each, ask) for each in shards_of(data)]
    rows = [_account_row(each) for state in states for each in state.accounts.values()]
    rows += [_deleted_row(each) for state in states for each in state.deleted.values()]
    titles = ("name", "created_at", "state", "since", "by")
    show_rows(titles, rows, as_json_)


def _account_row(account: Account) -> tuple[str, ...]:
    from tollkeeper.engine.instants import show_instant

    created = show_instant(account.created_at)
    if account.suspended_at is None:
        return account.name, created, "active", created, ""
    since = show_instant(account.suspended_at)
    return account.name, created, "suspended", since, account.suspended_by or ""


def _deleted_row(deleted: DeletedAccount) -> tuple[str, ...]:
    from tollkeeper.engine.instants import show_instant

    times = show_instant(deleted.created_at), show_instant(deleted.deleted_at)
    return deleted.name, times[0], "deleted", times[1], deleted.deleted_by


@accounts.command("show")
@click.argument("name")
@data_option
def show_account(name: str, data: JournalSource) -> None:
    """Print the account's settings as JSON."""
    from tollkeeper.engine.registry.settings import show_settings

    print_json(show_settings(read_account(journal_of(data, name), name).settings))


@accounts.command("set")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="SETTING=VALUE...")
@author_option
@data_option
def set_account(name: str, settings: Sequence[str], data: JournalSource) -> None:
    """Change settings: `thresholds.deny=0.9`, `default_rule=checkout`, `default_rule=null`."""
    from tollkeeper.engine.publish.set_settings import ChangeSettings, read_assignments

    with refusals():
        changes = read_assignments(settings)
    changed = perform(journal_of(data, name), ChangeSettings(name, changes)).count
    say(f"{plural(changed or 0, 'setting')} of account {name} changed")


@accounts.command("suspend")
@click.argument("name")
@author_option
@data_option
def suspend_account(name: str, data: JournalSource) -> None:
    """Refuse every request with the account's keys, until it is resumed."""
    from tollkeeper.engine.publish.accounts import SuspendAccount

    perform(journal_of(data, name), SuspendAccount(name))
    say(f"account {name} is suspended; its webhooks wait, and nothing of it is lost")


@accounts.command("resume")
@click.argument("name")
@author_option
@data_option
def resume_account(name: str, data: JournalSource) -> None:
    """End an account's suspension."""
    from tollkeeper.engine.publish.accounts import ResumeAccount

    perform(journal_of(data, name), ResumeAccount(name))
    say(f"account {name} goes on")


@accounts.command("delete")
@click.argument("name")
@author_option
@data_option
def delete_account(name: str, data: JournalSource) -> None:
    """Delete a suspended account for good, with all its data."""
    from tollkeeper.engine.privacy.deletion import DeleteAccount

    removed = perform(journal_of(data, name), DeleteAccount(name)).count or 0
    say(f"account {name} is deleted, {plural(removed, 'entry')} with it")
