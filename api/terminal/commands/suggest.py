"""`toll suggest`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.options import NEW_FILE, data_option, json_option, late_option
from tollkeeper.api.terminal.output import err, print_json, progress_bar, refuse, say

NOTHING_FOUND = 3

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="Rule files")
@click.option("--account", envvar="TOLL_ACCOUNT", show_envvar=True, help="Name of the account.")
@click.option(
    "--history",
    "histories",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSONL, CSV or Parquet in place of an account's history.",
)
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Labels of payments, in place of those in the history.",
)
@click.option(
    "--by-score",
    type=click.FloatRange(0, 1),
    help="Use the score as the label: fraud from here on. For a shop without labels.",
)
@click.option(
    "--since",
    default="90d",
    show_default=True,
    metavar="DAY|SPAN",
    help="Only payments from this day on, or a span back such as `12h`.",
)
@click.option(
    "--mature",
    default="45d",
    show_default=True,
    help="The age from which a payment without a label counts as honest.",
)
@click.option(
    "--without", multiple=True, help="What no condition may read, such as `score` or `user.id`."
)
@click.option("--name", default="suggested", show_default=True, help="Name of the rule.")
@click.option(
    "--action",
    type=click.Choice(("challenge", "deny")),
    default="deny",
    show_default=True,
    help="The action of its conditions.",
)
@click.option(
    "--conditions",
    type=click.IntRange(1, 20),
    default=5,
    show_default=True,
    help="The most conditions.",
)
@click.option(
    "--precision",
    type=click.FloatRange(0.5, 0.999),
    default=0.9,
    show_default=True,
    help="The share of fraud that each condition should reach with nine chances in ten.",
)
@click.option(
    "--people",
    type=click.FloatRange(0, 0.1),
    default=0.002,
    show_default=True,
    help="The share of honest payments that all conditions together may meet.",
)
@click.option(
    "--output",
    type=NEW_FILE,
    help="Write the rule file here; standard output otherwise.",
)
@late_option
@json_option
@data_option
def suggest(
    account: str | None,
    histories: tuple[Path, ...],
    labels: Path | None,
    by_score: float | None,
    since: str,
    mature: str,
    without: tuple[str, ...],
    name: str,
    action: str,
    conditions: int,
    precision: float,
    people: float,
    output: Path | None,
    late: int,
    as_json_: bool,
    data: JournalSource,
) -> None:
    """Suggest conditions from labelled history, as a rule file for review.

    Learns from the first 60 % of the payments, drops what does not hold in the next 20 %, measures on
    the last 20 %, and backtests the file over them. Publishes nothing. Exits 3 when there is
    nothing to suggest.
    """
    import msgspec

    from tollkeeper.api.terminal.inputs import InputError, read_labels, read_since
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.offline.backtest.files import HistoryError

    with extra("fit"):
        from tollkeeper.api.terminal.suggestion import draw_suggestion
        from tollkeeper.engine.offline.backtest.files import backtest_files
        from tollkeeper.engine.offline.outcomes import NothingToLearnError
        from tollkeeper.engine.offline.suggest.account import examine_for_account
        from tollkeeper.engine.offline.suggest.columns import families
        from tollkeeper.engine.offline.suggest.examine import examine
        from tollkeeper.engine.offline.suggest.search import SearchAims
        from tollkeeper.engine.offline.suggest.suggest import suggest as suggest_conditions
        from tollkeeper.engine.offline.suggest.table import (
            labels_by_score,
            labels_known,
            read_account,
            read_files,
        )
    if bool(account) == bool(histories):
        raise click.UsageError("give either --account or --history")
    if labels is not None and by_score is not None:
        raise click.UsageError("give either --labels or --by-score")
    unknown = set(without) - families()
    if unknown:
        named = ", ".join(sorted(families()))
        raise click.UsageError(f"nothing is called `{min(unknown)}`; conditions read: {named}")
    try:
        with refusals():
            moment = now()
            age = moment - read_since(mature, moment)
            labelling = (
                labels_known({} if labels is None else read_labels(labels))
                if by_score is None
                else labels_by_score(round(by_score * 100))
            )
            with progress_bar("replaying") as progress:
                table = (
                    read_account(
                        data, account, read_since(since, moment), age, late, labelling, progress
                    )
                    if account
                    else read_files(histories, age, labelling, progress, late)
                )
    except (InputError, HistoryError, NothingToLearnError) as error:
        refuse(str(error))
    left_out = frozenset(without) | (frozenset() if by_score is None else {"score"})
    aims = SearchAims(conditions, precision=precision, people=people, without=left_out)
    with progress_bar("searching") as progress:
        found = suggest_conditions(table, aims, name, action, progress)
    with progress_bar("backtesting") as progress:
        if account:
            found = examine_for_account(found, data, account, late, int(table.arrived[-1]) + 1)
        else:
            found = examine(
                found,
                (),
                lambda rule, since: backtest_files(histories, rule, {}, since, {}, progress, late),
            )
    if as_json_:
        print_json(msgspec.to_builtins(found))
    else:
        err.print(draw_suggestion(found, by_score), soft_wrap=True)
        if output is None:
            sys.stdout.write(found.text)
        elif found.conditions:
            output.write_text(found.text, encoding="utf-8")
            say(f"wrote {output}")
    if not found.conditions:
        sys.exit(NOTHING_FOUND)
