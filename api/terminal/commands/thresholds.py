"""`toll thresholds`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import read_account, refusals
from tollkeeper.api.terminal.options import account_option, data_option, json_option
from tollkeeper.api.terminal.output import print_json, print_lines

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="What happened")
@account_option
@click.option(
    "--since",
    default="180d",
    show_default=True,
    metavar="INSTANT|SPAN",
    help="Only payments that arrived at this instant or later, or a span back such as `30d`.",
)
@click.option("--challenge", type=click.FloatRange(0, 1), help="Challenge from this score.")
@click.option("--deny", type=click.FloatRange(0, 1), help="Deny from this score.")
@click.option("--chargeback", type=click.FloatRange(0, 10**7), help="The fee of a chargeback.")
@click.option("--margin", type=click.FloatRange(0, 1), help="The margin, as a share of the amount.")
@click.option(
    "--challenge-lost",
    type=click.FloatRange(0, 1),
    help="The share of people who leave at a challenge.",
)
@json_option
@data_option
def thresholds(
    account: str,
    since: str,
    challenge: float | None,
    deny: float | None,
    chargeback: float | None,
    margin: float | None,
    challenge_lost: float | None,
    as_json_: bool,
    data: JournalSource,
) -> None:
    """Evaluate thresholds on the score from labels: who is stopped, and what it costs.

    The defaults are the account's settings.
    """
    import msgspec

    from tollkeeper.api.http.thresholds import thresholds_answer
    from tollkeeper.api.terminal.threshold_lines import threshold_lines
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.registry.changes import Costs, Thresholds
    from tollkeeper.engine.registry.settings import BASIS_POINTS, HUNDREDTHS
    from tollkeeper.engine.search.ask import LocalSearch
    from tollkeeper.engine.search.filters import read_filter
    from tollkeeper.engine.search.thresholds import FindScoreBands, ScoreBand

    found = read_account(data, account)
    own, moment = found.settings.thresholds, now()
    chosen = Thresholds(
        _scale(challenge, HUNDREDTHS, own.challenge), _scale(deny, HUNDREDTHS, own.deny)
    )
    usual = found.settings.costs
    costs = Costs(
        _scale(chargeback, HUNDREDTHS, usual.chargeback),
        _scale(margin, BASIS_POINTS, usual.margin),
        _scale(challenge_lost, BASIS_POINTS, usual.challenge_lost),
    )
    with refusals():
        question = FindScoreBands(read_filter([("since", since)], moment), moment)
        bands: list[ScoreBand]
        bands, _ = asyncio.run(LocalSearch(data).ask(found.number, question, list[ScoreBand]))
    answer = thresholds_answer(bands, own, chosen, costs, 0)
    if as_json_:
        print_json(msgspec.to_builtins(answer))
        return
    print_lines(threshold_lines(answer))


def _scale(given: float | None, scale: int, otherwise: int) -> int:
    return otherwise if given is None else round(given * scale)
