"""`toll holdout`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import read_account, refusals
from tollkeeper.api.terminal.options import account_option, data_option, json_option
from tollkeeper.api.terminal.output import out, print_json

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="What happened")
@account_option
@click.argument("search", required=False, default="")
@json_option
@data_option
def holdout(account: str, search: str, as_json_: bool, data: JournalSource) -> None:
    """Show how many denials are wrong, measured on held-out payments.

    SEARCH is a filter, such as `rule:checkout since:180d`.
    """
    import msgspec

    from tollkeeper.api.http.figures import FalsePositivesAnswer
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.registry.settings import HUNDREDTHS
    from tollkeeper.engine.search.ask import LocalSearch
    from tollkeeper.engine.search.filters import read_filter, read_members
    from tollkeeper.engine.search.holdout import FalsePositives, FindFalsePositives

    account_found, moment = read_account(data, account), now()
    with refusals():
        question = FindFalsePositives(read_filter(read_members(search), moment), moment)
        found, _ = asyncio.run(
            LocalSearch(data).ask(account_found.number, question, FalsePositives)
        )
    if as_json_:
        print_json(msgspec.to_builtins(FalsePositivesAnswer(found, 0)))
        return
    held_out = account_found.settings.holdout
    passing = f"{held_out.percent / HUNDREDTHS:g} % of denials pass, by {held_out.by}"
    waiting = f"{found.unripe:,} may still get a label"
    lines = [passing if held_out.percent else "no denials pass: see holdout.percent"]
    if found.share is None or found.low is None or found.high is None:
        lines.append(f"nothing is known yet of those held out; {waiting}")
    else:
        known = (
            f"of those held out {found.people:,} were people's, {found.frauds:,} fraud; {waiting}"
        )
        share = f"{found.share:.1%} of denials are wrong ({found.low:.1%} to {found.high:.1%})"
        lines += [known, share]
    for line in lines:
        out.print(line, highlight=False, soft_wrap=True)
