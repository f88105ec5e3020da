"""`toll shadow`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_data
from tollkeeper.api.terminal.options import (
    account_option,
    author_option,
    data_option,
    decider_option,
    json_option,
)
from tollkeeper.api.terminal.output import print_json, progress_bar, say, show_whole

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.read_folder import Picture
    from tollkeeper.engine.shadows.report import ShadowReport


@click.group(panel="What decides")
def shadow() -> None:
    """A version that is evaluated beside the active one, recorded, never applied."""


@shadow.command("set")
@click.argument("name")
@click.argument("version", type=int)
@decider_option
@account_option
@author_option
@data_option
def set_shadow(name: str, version: int, kind: Any, account: str, data: JournalSource) -> None:
    """Evaluate VERSION of NAME beside the active one."""
    from tollkeeper.engine.publish.trials import SetShadow

    with progress_bar("filling windows") as progress:
        perform(data, SetShadow(account, kind, name, version), progress)
    say(f"{name} version {version} is evaluated as a shadow")


@shadow.command("clear")
@click.argument("name")
@decider_option
@account_option
@author_option
@data_option
def clear_shadow(name: str, kind: Any, account: str, data: JournalSource) -> None:
    """End the shadow of NAME."""
    from tollkeeper.engine.publish.trials import ClearShadow

    perform(data, ClearShadow(account, kind, name))
    say(f"{name} has no shadow any more")


@shadow.command("report")
@click.argument("name")
@click.option("--version", type=int, help="The version; by default the current shadow.")
@decider_option
@account_option
@json_option
@data_option
def report_shadow(
    name: str, version: int | None, kind: Any, account: str, as_json_: bool, data: JournalSource
) -> None:
    """Show how many decisions the shadow of NAME would change, from what to what."""
    import msgspec

    from tollkeeper.api.terminal.rendering import draw_report
    from tollkeeper.engine.registry.accounts import find_account
    from tollkeeper.engine.shadows.report import shadow_report

    async def ask(picture: Picture) -> ShadowReport:
        known = find_account(picture.state, account)
        return shadow_report(picture.journal, known, kind, name, version)

    report = read_data(data, ask)
    if as_json_:
        print_json(msgspec.to_builtins(report))
    else:
        show_whole(draw_report(report))
