"""`toll check`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import rich_click as click

from tollkeeper.api.terminal.options import json_option, paths_argument
from tollkeeper.api.terminal.output import NO, OK, out, plural, print_json, say
from tollkeeper.engine.offline.paths import is_rule

if TYPE_CHECKING:
    from tollkeeper.grammar.diagnostics import Diagnostic
    from tollkeeper.grammar.render import Source


WATCH_EVERY_S = 0.3
GUTTER = 10
"""The most cells before an excerpt."""
LEAST_CELLS = 60


@click.command(panel="Rule files")
@paths_argument(is_rule)
@json_option
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for a code host.")
@click.option("--strict", is_flag=True, help="Exit 1 for a warning, too.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.option("--fix", is_flag=True, help="Write the fixes that can't change a decision.")
def check(
    paths: Sequence[Path], as_json_: bool, sarif: bool, strict: bool, watch: bool, fix: bool
) -> None:
    """Check rule files; exit 1 when one has an error."""
    from tollkeeper.engine.offline.rule_files import check_files, fix_files
    from tollkeeper.grammar.render import as_json, as_sarif

    if watch and (as_json_ or sarif):
        raise click.UsageError("--watch shows a page for people: leave --json and --sarif out")
    if fix:
        for path in fix_files(paths):
            say(f"fixed {path}")
    if watch:
        watch_files(paths)
    found = check_files(paths)
    left = sum(each.safe for _, several in found for one in several for each in one.fixes[:1])
    if fix and left:
        say(f"{plural(left, 'safe change')} can still be made: run it again")
    if as_json_:
        print_json([item for source, several in found for item in as_json(source, several)])
    elif sarif:
        print_json(as_sarif(found))
    else:
        show_found(found)
    refused = {"error", "warning"} if strict else {"error"}
    broken = any(each.severity in refused for _, several in found for each in several)
    sys.exit(NO if broken else OK)


def show_found(found: Sequence[tuple[Source, Sequence[Diagnostic]]]) -> None:
    """Print each file's findings, and the totals."""
    from tollkeeper.grammar.render import MAX_CELLS, as_rich

    for source, several in found:
        if several:
            width = out.width - GUTTER if out.is_terminal else MAX_CELLS
            out.print(as_rich(source, several, max(width, LEAST_CELLS)), soft_wrap=True)
    errors = sum(each.severity == "error" for _, several in found for each in several)
    warnings = sum(len(several) for _, several in found) - errors
    summary = (
        f"{plural(len(found), 'file')}, {plural(errors, 'error')}, {plural(warnings, 'warning')}"
    )
    say(summary, style="bold red" if errors else "bold green")


def watch_files(paths: Sequence[Path]) -> NoReturn:
    """Print the findings, and again after each change, until interrupted."""
    from tollkeeper.engine.offline.rule_files import check_files, last_written

    try:
        seen = last_written(paths)
        while True:
            with suppress(FileNotFoundError):  # an editor may be replacing a file
                found = check_files(paths)
                out.clear()
                show_found(found)
            while (newest := last_written(paths)) == seen:
                time.sleep(WATCH_EVERY_S)
            # An editor may empty a file before it writes it.
            while newest != seen:
                seen = newest
                time.sleep(WATCH_EVERY_S)
                newest = last_written(paths)
    except KeyboardInterrupt:
        sys.exit(OK)
