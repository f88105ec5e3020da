"""`toll test`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import indent

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.options import NEW_FILE, json_option, paths_argument
from tollkeeper.api.terminal.output import NO, OK, out, plural, print_json, say
from tollkeeper.engine.offline.paths import is_case, is_rule


@click.command(panel="Rule files")
@paths_argument(is_rule, is_case)
@click.option("--only", multiple=True, metavar="TITLE", help="Run only the tests with this title.")
@json_option
@click.option("--accept", is_flag=True, help="Accept the current decisions of cases.")
@click.option("--coverage", is_flag=True, help="Show what no test or case covered.")
@click.option(
    "--coverage-json",
    type=NEW_FILE,
    help="Write the coverage as JSON.",
)
@click.option(
    "--coverage-html",
    type=NEW_FILE,
    help="Write the coverage as an HTML page.",
)
@click.option("--junit", type=NEW_FILE, help="Write the results as JUnit's XML.")
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="Exit 1 if less than PERCENT is covered.",
)
def test(
    paths: Sequence[Path],
    only: tuple[str, ...],
    as_json_: bool,
    accept: bool,
    coverage: bool,
    coverage_json: Path | None,
    coverage_html: Path | None,
    junit: Path | None,
    fail_under: float | None,
) -> None:
    """Run the tests and cases under PATHS; exit 1 when one fails."""
    from tollkeeper.api.terminal.coverage import as_data, as_html
    from tollkeeper.api.terminal.coverage import as_text as coverage_as_text
    from tollkeeper.engine.offline.testing.coverage import percent

    with extra("test"):
        from tollkeeper.api.terminal.testing.run import run_tests

    for path in paths:
        if not (path.is_dir() or is_rule(path) or is_case(path)):
            raise click.UsageError(f"`{path}` is neither a rule file nor a file of cases")
    run = run_tests(paths, accept=accept, only=only, junit=junit)
    titles = {each.title for each in run.results}
    unknown = [title for title in only if title not in titles]
    # The titles in a file with errors are not known.
    if unknown and not run.faults:
        raise click.UsageError(f"no test or case is called `{unknown[0]}`")
    if as_json_:
        print_json(
            {
                "tests": run.tests,
                "cases": run.cases,
                "results": [asdict(each) for each in run.results],
                "faults": [asdict(each) for each in run.faults],
                "coverage": as_data(run.coverage),
            }
        )
    for fault in () if as_json_ else run.faults:
        out.print(f"{fault.place}: {fault.title}", style="bold red")
        out.print(indent(fault.text, "  "), soft_wrap=True)
        out.print()
    undecided = [each for each in run.results if each.outcome == "skipped"]
    for each in () if as_json_ else undecided:
        place = each.file if each.line is None else f"{each.file}:{each.line}"
        out.print(f"{place}: {each.title}", style="bold yellow")
        out.print(indent(each.text, "  "), soft_wrap=True)
        out.print()
    if coverage_json is not None:
        written = json.dumps(as_data(run.coverage), indent=2)
        coverage_json.write_text(f"{written}\n", encoding="utf-8")
    if coverage_html is not None:
        coverage_html.write_text(as_html(run.coverage), encoding="utf-8")
    if (coverage or fail_under is not None) and not as_json_:
        out.print(coverage_as_text(run.coverage), soft_wrap=True)
    is_low = fail_under is not None and percent(run.coverage) < fail_under
    if is_low:
        say(f"less than {fail_under:g} % is covered", "bold red")
    failed = f"{len(run.faults)} failed" if run.faults else "none failed"
    outcome = f"{failed}, {len(undecided)} not proved" if undecided else failed
    if not (run.faults or undecided):
        outcome = "all passed"
    summary = f"{plural(run.tests, 'test')}, {plural(run.cases, 'case')}, {outcome}"
    colour = "red" if run.faults else "yellow" if undecided else "green"
    say(summary, f"bold {colour}")
    sys.exit(NO if run.faults or is_low else OK)
