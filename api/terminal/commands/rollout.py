"""`toll rollout`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.commands.activate import require_passing_version
from tollkeeper.api.terminal.folder import perform, read_account
from tollkeeper.api.terminal.options import (
    account_option,
    author_option,
    data_option,
    decider_option,
)
from tollkeeper.api.terminal.output import progress_bar, say, warn_all

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.group(panel="What decides")
def rollout() -> None:
    """A version that decides a percentage of the payments, selected by a key."""


@rollout.command("set")
@click.argument("name")
@click.argument("version", type=int)
@click.option(
    "--percent", type=int, required=True, help="0 to 100; an increase moves no payments back."
)
@click.option(
    "--by",
    type=click.Choice(("user", "device", "order")),
    default="user",
    show_default=True,
    help="The key that selects a payment's version: one user always gets the same.",
)
@decider_option
@account_option
@author_option
@data_option
def set_rollout(
    name: str, version: int, percent: int, by: str, kind: Any, account: str, data: JournalSource
) -> None:
    """Decide a percentage of the payments by VERSION of NAME.

    The tests of a version that has not decided before run first.
    """
    from tollkeeper.engine.publish.trials import SetRollout

    warn_all(require_passing_version(read_account(data, account), kind, name, version))
    with progress_bar("filling windows") as progress:
        perform(data, SetRollout(account, kind, name, version, percent, by), progress)
    say(f"{name} version {version} gets {percent}% of the payments, by {by}")


@rollout.command("clear")
@click.argument("name")
@decider_option
@account_option
@author_option
@data_option
def clear_rollout(name: str, kind: Any, account: str, data: JournalSource) -> None:
    """Decide all payments by the active version of NAME again."""
    from tollkeeper.engine.publish.trials import ClearRollout

    perform(data, ClearRollout(account, kind, name))
    say(f"{name} has no rollout any more")
