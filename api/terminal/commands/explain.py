"""`toll explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.folder import read_data
from tollkeeper.api.terminal.options import UTF8, account_option, data_option, json_option
from tollkeeper.api.terminal.output import print_json, print_lines, refuse

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.read_folder import Picture


@click.command(panel="What happened")
@click.argument("payment_id", type=UTF8)
@account_option
@json_option
@data_option
def explain(payment_id: str, account: str, as_json_: bool, data: JournalSource) -> None:
    """Explain a stored decision: the reason, then what the rule and the scorecard read."""
    import msgspec

    from tollkeeper.api.http.views import explanation_view
    from tollkeeper.api.terminal.explanation import (
        explanation_lines,
        payment_line,
        reason_line,
    )
    from tollkeeper.engine.explain.explain import explain as explain_payment
    from tollkeeper.engine.registry.accounts import find_account
    from tollkeeper.engine.registry.past_states import PastStates

    async def ask(picture: Picture) -> Any:
        number = find_account(picture.state, account).number
        return await explain_payment(
            picture.journal, PastStates(picture.journal), number, payment_id
        )

    found = read_data(data, ask)
    if found is None:
        refuse("no payment has this id")
    if as_json_:
        print_json(msgspec.to_builtins(explanation_view(found).explanation))
    else:
        print_lines([reason_line(found), payment_line(found), *explanation_lines(found)])
