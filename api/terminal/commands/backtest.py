"""`toll backtest`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.options import NEW_FILE, data_option, json_option, late_option
from tollkeeper.api.terminal.output import err, print_json, progress_bar, refuse, show_whole

if TYPE_CHECKING:
    from tollkeeper.api.terminal.inputs import CandidateFiles
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.offline.backtest.compare import Labels
    from tollkeeper.engine.offline.backtest.report import Report
    from tollkeeper.engine.progress import Progress
    from tollkeeper.grammar.program import Rule, Scorecard


@click.command(panel="Rule files")
@click.argument("candidate")
@click.option(
    "--since",
    metavar="DAY|SPAN",
    help="Only payments from this day on, or a span back; `30d` by default, everything for a file.",
)
@click.option("--account", envvar="TOLL_ACCOUNT", show_envvar=True, help="Name of the account.")
@click.option(
    "--history",
    "histories",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSONL, CSV or Parquet in place of an account's history.",
)
@click.option(
    "--columns",
    type=click.Path(file_okay=False, path_type=Path),
    help="Export here first, and read the export in place of the service's data.",
)
@click.option(
    "--on",
    "master",
    metavar="SPARK",
    help="Read the export on Spark: `spark://HOST:PORT`, `local[2]`.",
)
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Labels of payments.",
)
@late_option
@click.option("--html", type=NEW_FILE, help="Write an HTML page.")
@click.option("--summary", "markdown", is_flag=True, help="Print Markdown, for a pull request.")
@json_option
@data_option
def backtest(
    candidate: str,
    since: str | None,
    account: str | None,
    histories: tuple[Path, ...],
    columns: Path | None,
    master: str | None,
    labels: Path | None,
    late: int,
    html: Path | None,
    markdown: bool,
    as_json_: bool,
    data: JournalSource,
) -> None:
    """Try CANDIDATE, a file or NAME@VERSION, on stored history."""
    from tollkeeper.api.terminal.inputs import (
        InputError,
        read_candidate,
        read_labels,
        read_since,
    )
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.offline.testing.files import BrokenFileError

    if bool(account) == bool(histories):
        raise click.UsageError("give either --account or --history")
    if columns is not None and account is None:
        raise click.UsageError("an export is of accounts: give --account, too")
    if master is not None and columns is None:
        raise click.UsageError("Spark reads an export: give --columns, too")
    try:
        with refusals():
            candidate_files = read_candidate(candidate, account, data)
            program, moment = candidate_files.program, now()
            begin = read_since(since or ("30d" if account else "1970-01-01"), moment)
            known = {} if labels is None else read_labels(labels)
            if columns is not None:
                if err.is_terminal:
                    _show_newest(columns, account or "", program, (begin, moment), known, late)
                if isinstance(data, Path):
                    _export(data, columns, account or "")
            with progress_bar("replaying") as progress:
                if columns is not None:
                    over = (columns, account or "", program, (begin, moment), known, progress, late)
                    report = _over_columns(master, *over)
                elif account:
                    from tollkeeper.engine.offline.backtest.backtest import backtest_account

                    report = backtest_account(
                        data, account, program, (begin, moment), known, progress, late
                    )
                else:
                    report = _over_files(histories, candidate_files, begin, known, progress, late)
    except (BrokenFileError, InputError) as error:
        refuse(str(error))
    _tell(report, html, markdown=markdown, as_json_=as_json_)


def _tell(report: Report, html: Path | None, *, markdown: bool, as_json_: bool) -> None:
    if html is not None:
        from tollkeeper.api.terminal.backtest_page import backtest_page

        html.write_text(backtest_page(report), encoding="utf-8")
    if as_json_:
        from msgspec import to_builtins

        print_json(to_builtins(report))
    elif markdown:
        from tollkeeper.api.terminal.backtest_words import summary as backtest_summary

        print("\n".join(backtest_summary(report)))  # noqa: T201 - for a pull request
    else:
        from tollkeeper.api.terminal.rendering import draw_backtest

        show_whole(draw_backtest(report))


def _over_files(
    histories: tuple[Path, ...],
    candidate: CandidateFiles,
    begin: int,
    labels: Labels,
    progress: Progress,
    late: int,
) -> Report:
    from tollkeeper.engine.offline.backtest.files import HistoryError, backtest_files

    try:
        return backtest_files(
            histories, candidate.program, candidate.events, begin, labels, progress, late
        )
    except HistoryError as error:
        refuse(str(error))


def _export(data: Path, columns: Path, account: str) -> None:
    with extra("columns"):
        from tollkeeper.engine.columns.export import bring_up_to_date

    with progress_bar("exporting") as progress:
        bring_up_to_date(data, columns, account, progress)


def _show_newest(
    columns: Path,
    account: str,
    program: Rule | Scorecard,
    period: tuple[int, int],
    labels: Labels,
    late: int,
) -> None:
    """Show examples from the last export while the rest is computed."""
    from tollkeeper.api.terminal.rendering import draw_examples
    from tollkeeper.engine.journal.contract import JournalError

    with extra("columns"):
        from tollkeeper.engine.offline.columns.backtest import backtest_newest

    try:
        found = backtest_newest(columns, account, program, period, labels, late)
    except JournalError:  # there is no export yet, or it must be completed first
        return
    if found is not None and found.changes:
        err.print(draw_examples(found, 1), soft_wrap=True)


def _over_columns(
    master: str | None,
    columns: Path,
    account: str,
    program: Rule | Scorecard,
    period: tuple[int, int],
    labels: Labels,
    progress: Progress,
    late: int,
) -> Report:
    with extra("columns"):
        from tollkeeper.engine.offline.columns import backtest as over

    compare: over.CompareColumns = over.compare_in_processes
    if master is not None:
        with extra("spark"):
            from tollkeeper.engine.offline.columns.on_spark import compare_on_spark

        compare = partial(compare_on_spark, master)
    try:
        return over.backtest_columns(
            columns, account, program, period, labels, progress, late, compare
        )
    except over.NotExportedError as error:
        refuse(str(error))
