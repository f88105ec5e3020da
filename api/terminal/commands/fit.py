"""`toll fit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.options import NEW_FILE, data_option
from tollkeeper.api.terminal.output import err, progress_bar, refuse, say
from tollkeeper.api.terminal.rule_file import read_rule_file

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="Rule files")
@click.argument(
    "history", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--account", help="Learn from the labels that this account has stored.")
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
    "--scorecard",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The scorecard whose numbers are estimated, in place of the shipped one.",
)
@click.option("--curves", is_flag=True, help="Keep the weights, and estimate curves.")
@click.option(
    "--calibration",
    is_flag=True,
    help="Estimate the baseline and one factor for all weights: 0.90 comes to mean nine in ten.",
)
@click.option(
    "--output",
    type=NEW_FILE,
    help="Write the new text here; standard output otherwise.",
)
@data_option
def fit(
    history: Path | None,
    account: str | None,
    since: str,
    mature: str,
    scorecard: Path | None,
    curves: bool,
    calibration: bool,
    output: Path | None,
    data: JournalSource,
) -> None:
    """Estimate a scorecard's numbers from labels: those of HISTORY (JSON Lines), or an account's.

    Publishes nothing: the new text is for review.
    """
    from tollkeeper.api.terminal.inputs import InputError, read_since
    from tollkeeper.api.terminal.rendering import draw_fitted
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.lists.environment import Environment
    from tollkeeper.engine.offline.outcomes import NothingToLearnError
    from tollkeeper.engine.offline.testing.streams import StreamError
    from tollkeeper.engine.programs.active import SCORECARD_NAME
    from tollkeeper.engine.programs.load import SHIPPED
    from tollkeeper.grammar.program import Scorecard

    with extra("fit"):
        from tollkeeper.engine.offline.fit.examples import examples_in_file, examples_of_account
        from tollkeeper.engine.offline.fit.fitting import (
            FitError,
            fit_calibration,
            fit_curves,
            fit_weights,
        )
    if bool(account) == bool(history):
        raise click.UsageError("give either HISTORY or --account")
    if curves and calibration:
        raise click.UsageError("give either --curves or --calibration")
    path = scorecard or SHIPPED / f"{SCORECARD_NAME}.rule"
    reading = read_rule_file(path)
    program = reading.program
    if not isinstance(program, Scorecard):
        refuse(f"{path} is not a scorecard")
    try:
        with refusals(), progress_bar("replaying") as progress:
            if history is not None:
                examples = examples_in_file(program, history, progress, Environment())
            else:
                assert account is not None
                moment = now()
                age = moment - read_since(mature, moment)
                begins = read_since(since, moment)
                examples = examples_of_account(data, account, program, begins, age, progress)
        estimate = fit_curves if curves else fit_calibration if calibration else fit_weights
        fitted = estimate(reading.text, program, examples)
    except (FitError, InputError, NothingToLearnError, StreamError, OSError) as error:
        refuse(str(error))
    err.print(draw_fitted(fitted), soft_wrap=True)
    if output is None:
        sys.stdout.write(fitted.text)
    else:
        output.write_text(fitted.text, encoding="utf-8")
        say(f"wrote {output}")
