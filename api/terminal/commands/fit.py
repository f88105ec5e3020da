"""`toll fit`."""

from __future__ import annotations

import sys
from pathlib import Path

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.output import err, progress_bar, refuse, say
from tollkeeper.api.terminal.rule_file import read_rule_file


@click.command(panel="Rule files")
@click.argument("history", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--scorecard",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The scorecard whose weights are estimated, in place of the shipped one.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the new text here; standard output otherwise.",
)
def fit(history: Path, scorecard: Path | None, output: Path | None) -> None:
    """Estimate a scorecard's baseline and weights from labelled HISTORY (JSON Lines)."""
    from tollkeeper.api.terminal.rendering import draw_fitted
    from tollkeeper.engine.offline.testing.streams import StreamError
    from tollkeeper.engine.programs.active import SCORECARD_NAME
    from tollkeeper.engine.programs.load import SHIPPED
    from tollkeeper.grammar.program import Scorecard

    with extra("fit"):
        from tollkeeper.engine.offline.fit.fitting import FitError
        from tollkeeper.engine.offline.fit.fitting import fit as fit_weights
    path = scorecard or SHIPPED / f"{SCORECARD_NAME}.rule"
    reading = read_rule_file(path)
    if not isinstance(reading.program, Scorecard):
        refuse(f"{path} is not a scorecard")
    try:
        with progress_bar("replaying") as progress:
            fitted = fit_weights(reading.text, reading.program, history, progress)
    except (FitError, StreamError, OSError) as error:
        refuse(str(error))
    err.print(draw_fitted(fitted), soft_wrap=True)
    if output is None:
        sys.stdout.write(fitted.text)
    else:
        output.write_text(fitted.text, encoding="utf-8")
        say(f"wrote {output}")
