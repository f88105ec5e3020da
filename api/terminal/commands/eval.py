"""`toll eval`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import rich_click as click

from tollkeeper.api.terminal.options import json_option
from tollkeeper.api.terminal.output import print_json, print_lines, refuse


@click.command("eval", panel="Rule files")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--score", type=click.FloatRange(0, 1), help="The score, in place of a scorecard's.")
@click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Payments and updates before this one, as JSON Lines.",
)
@click.option("--explain", is_flag=True, help="Show why, part by part.")
@json_option
def evaluate(
    file: Path, score: float | None, history: Path | None, explain: bool, as_json_: bool
) -> None:
    """Decide the payment on standard input by FILE, without a server."""
    import msgspec

    from tollkeeper.api.http.views import explanation_view
    from tollkeeper.api.terminal.explanation import explanation_lines, reason_line
    from tollkeeper.engine.offline.testing.evaluation import evaluate_payment
    from tollkeeper.engine.offline.testing.files import BrokenFileError, library_of
    from tollkeeper.engine.offline.testing.streams import StreamError

    try:
        found = evaluate_payment(
            file,
            sys.stdin.buffer.read(),
            library_of([file.parent]),
            now=time.time_ns() // 1000,
            history=history,
            score=None if score is None else round(score * 100),
        )
    except (StreamError, BrokenFileError) as error:
        refuse(str(error))
    if as_json_:
        answer = explanation_view(found).explanation
        print_json(msgspec.to_builtins(answer if explain else answer.analyses))
        return
    print_lines([reason_line(found), *(explanation_lines(found) if explain else ())])
