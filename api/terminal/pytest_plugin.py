"""The pytest plugin: options that report the coverage of rule files.

pytest loads it everywhere, so other modules are only imported when a report is requested.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["tollkeeper.api.terminal.testing.plugin"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tollkeeper", "rule files")
    group.addoption(
        "--rule-coverage",
        action="store_true",
        help="Report conditions that were never met or never refused, and operands that never mattered.",
    )
    group.addoption(
        "--rule-coverage-json", type=Path, metavar="FILE", help="Write the coverage as JSON."
    )
    group.addoption(
        "--rule-coverage-html",
        type=Path,
        metavar="FILE",
        help="Write the coverage as an HTML page.",
    )
    group.addoption(
        "--rule-coverage-fail-under",
        type=float,
        metavar="PERCENT",
        help="Fail if less than this is covered.",
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the requested coverage reports, and fail the run if coverage is too low."""
    if hasattr(session.config, "workeroutput"):
        return
    option = session.config.option
    files = (option.rule_coverage_json, option.rule_coverage_html)
    wanted = option.rule_coverage_fail_under
    if wanted is None and files == (None, None):
        return
    from tollkeeper.api.terminal.coverage import as_html, as_json
    from tollkeeper.api.terminal.testing.collecting import coverage_of
    from tollkeeper.engine.offline.testing.coverage import percent

    covered = coverage_of(session.config)
    is_low = wanted is not None and percent(covered) < wanted
    if is_low and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    for path, write in zip(files, (as_json, as_html), strict=True):
        if path is not None:
            path.write_text(write(covered), encoding="utf-8")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    wanted = config.option.rule_coverage_fail_under
    if not config.option.rule_coverage and wanted is None:
        return
    from tollkeeper.api.terminal.coverage import as_text
    from tollkeeper.api.terminal.testing.collecting import coverage_of
    from tollkeeper.engine.offline.testing.coverage import percent

    covered = coverage_of(config)
    terminalreporter.write_sep("-", "rule coverage")
    terminalreporter.write_line(as_text(covered))
    if wanted is not None and percent(covered) < wanted:
        terminalreporter.write_line(f"less than {wanted:g} % is covered", red=True)
