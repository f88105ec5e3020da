"""`toll eval`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import rich_click as click
from rich.markup import escape

from tollkeeper.api.terminal.options import json_option
from tollkeeper.api.terminal.output import out, print_json, refuse


@click.command("eval", panel="Rule files")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--score", type=click.FloatRange(0, 1), help="The score, in place of a scorecard's.")
@click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Payments and updates before this one, as JSON Lines.",
)
@click.option("--explain", is_flag=True, help="Show the value of every part.")
@json_option
def evaluate(
    file: Path, score: float | None, history: Path | None, explain: bool, as_json_: bool
) -> None:
    """Decide about the payment on standard input with FILE, with no server."""
    import msgspec

    from tollkeeper.api.http.answers import analyses
    from tollkeeper.engine.offline.testing.evaluation import evaluate_payment, explanation_lines
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
        refuse(escape(str(error)))
    result = analyses(found.decision)
    if as_json_:
        answer = {"analyses": result} | (
            {"scorecard": found.scorecard, "rule": found.rule} if explain else {}
        )
        print_json(msgspec.to_builtins(answer if explain else result))
        return
    condition = found.decision.rule and found.decision.rule.condition
    by = f" by {condition}" if condition else ""
    out.print(
        f"{found.decision.action}{by}, score {(found.decision.score or 0) / 100:.2f}",
        markup=False,
        highlight=False,
    )
    if explain:
        for line in explanation_lines(found):
            out.print(line, markup=False, highlight=False, soft_wrap=True)
