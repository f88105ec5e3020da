"""`toll audit`."""

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
from tollkeeper.api.terminal.output import json_line, print_json, say_cursor, show_rows

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.read_folder import Picture


@click.command(panel="What happened")
@account_option
@since_option
@click.option("--by", help="Only changes by this key, user or command.")
@click.option("--action", help="Only this change, as in the column.")
@click.option("--subject", help="Only changes of this, as in the column.")
@click.option("--kind", help="Only `change`, `access` of personal data, or `verdict`.")
@limit_option
@cursor_option
@json_option
@data_option
def audit(
    account: str,
    since: int,
    by: str | None,
    action: str | None,
    subject: str | None,
    kind: str | None,
    limit: int,
    cursor: int | None,
    as_json_: bool,
    data: JournalSource,
) -> None:
    """List who changed what, newest first."""
    import msgspec

    from tollkeeper.api.http.views import audit_view
    from tollkeeper.engine.explain.records import AUDIT_KINDS, AuditFilter, audit_page
    from tollkeeper.engine.registry.accounts import find_account
    from tollkeeper.engine.registry.audit import AUDIT_ACTIONS

    for option, chosen, known in (
        ("--action", action, AUDIT_ACTIONS),
        ("--kind", kind, AUDIT_KINDS),
    ):
        if chosen is not None and chosen not in known:
            raise click.BadParameter(f"this is one of {', '.join(known)}", param_hint=option)
    wanted = AuditFilter(by, action, subject)

    async def ask(picture: Picture) -> Any:
        number = find_account(picture.state, account).number
        return await audit_page(
            picture.journal,
            number,
            since=since,
            wanted=wanted,
            kind=kind,
            cursor=cursor,
            limit=limit,
        )

    page = read_data(data, ask)
    items = [msgspec.to_builtins(audit_view(item)) for item in page.items]
    if as_json_:
        print_json({"audit": items, "cursor": page.cursor})
        return
    rows = [
        (item["at"], item["by"], item["action"], item["subject"], json_line(item["detail"]))
        for item in items
    ]
    show_rows(("at", "by", "action", "subject", "detail"), rows, as_json_=False)
    say_cursor(page.cursor)
