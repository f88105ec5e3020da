"""`toll decisions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.folder import read_data
from tollkeeper.api.terminal.options import (
    account_option,
    cursor_option,
    data_option,
    json_option,
    limit_option,
    since_option,
)
from tollkeeper.api.terminal.output import print_json, say_cursor, show_whole

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.read_folder import Picture


@click.command(panel="What happened")
@account_option
@since_option
@click.option(
    "--action",
    type=click.Choice(("allow", "challenge", "deny")),
    help="Only decisions with this action.",
)
@click.option("--rule", help="Only decisions by this rule.")
@limit_option
@cursor_option
@json_option
@data_option
def decisions(
    account: str,
    since: int,
    action: Any,
    rule: str | None,
    limit: int,
    cursor: int | None,
    as_json_: bool,
    data: JournalSource,
) -> None:
    """List decisions, newest first."""
    import msgspec

    from tollkeeper.api.http.views import decision_view
    from tollkeeper.api.terminal.decision_lines import decision_table
    from tollkeeper.engine.explain.records import decided_page
    from tollkeeper.engine.registry.accounts import find_account

    async def ask(picture: Picture) -> Any:
        number = find_account(picture.state, account).number
        return await decided_page(
            picture.journal,
            number,
            since=since,
            action=action,
            rule=rule,
            cursor=cursor,
            limit=limit,
        )

    page = read_data(data, ask)
    items = [msgspec.to_builtins(decision_view(item)) for item in page.items]
    if as_json_:
        print_json({"decisions": items, "cursor": page.cursor})
        return
    show_whole(decision_table(items))
    say_cursor(page.cursor)
