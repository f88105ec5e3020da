"""`toll drift`."""

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
@click.option(
    "--since",
    default="56d",
    show_default=True,
    metavar="INSTANT|SPAN",
    help="Only payments that arrived at this instant or later, or a span back such as `30d`.",
)
@json_option
@data_option
def drift(account: str, since: str, as_json_: bool, data: JournalSource) -> None:
    """Show by week whether scores shifted, and whether they predicted fraud."""
    import msgspec

    from tollkeeper.api.http.drift import drift_answer
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.search.ask import LocalSearch
    from tollkeeper.engine.search.drift import FindScoreWeeks, ScoreWeek
    from tollkeeper.engine.search.filters import read_filter

    found, moment = read_account(data, account), now()
    with refusals():
        question = FindScoreWeeks(read_filter([("since", since)], moment), moment)
        weeks: list[ScoreWeek]
        weeks, _ = asyncio.run(LocalSearch(data).ask(found.number, question, list[ScoreWeek]))
    answer = drift_answer(weeks, 0)
    if as_json_:
        print_json(msgspec.to_builtins(answer))
        return
    out.print(f"{'week from':10} {'payments':>9} {'shift':>6} {'expected':>9} {'frauds':>7}")
    for each in answer.weeks:
        shift = "–" if each.shift is None else f"{each.shift:.2f}"
        mark = "  shifted" if each.shifted else ""
        out.print(
            f"{each.since[:10]} {each.payments:>9,} {shift:>6} {each.expected:>9,.1f}"
            f" {each.frauds:>7,}{mark}",
            highlight=False,
            soft_wrap=True,
        )
