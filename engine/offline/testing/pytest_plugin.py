"""The pytest plugin: each `test` block of a rule file is a test, and so is each case.

`--snapshot-update` accepts what cases decide now; `--rule-coverage` tells what no test looked at.
It is loaded wherever pytest runs, so that nothing else is imported before a file of ours is met.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tollkeeper.engine.offline.paths import is_case, is_rule

if TYPE_CHECKING:
    from tollkeeper.engine.offline.testing.collecting import Collected

COLLECTED: pytest.StashKey[Collected] = pytest.StashKey()
_FROM_WORKER = "tollkeeper_seen"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tollkeeper", "rule files")
    group.addoption(
        "--rule-coverage",
        action="store_true",
        help="Tell which conditions were never met or refused, and which operands never mattered.",
    )
    group.addoption(
        "--rule-coverage-json", type=Path, metavar="FILE", help="Write the coverage as JSON."
    )
    group.addoption(
        "--rule-coverage-html", type=Path, metavar="FILE", help="Write the coverage as a page."
    )
    group.addoption(
        "--rule-coverage-fail-under",
        type=float,
        metavar="PERCENT",
        help="Fail when less than this was seen.",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not (is_rule(file_path) or is_case(file_path)):
        return None
    from tollkeeper.engine.offline.testing.collecting import CaseCollector, RuleCollector

    kind = RuleCollector if is_rule(file_path) else CaseCollector
    return kind.from_parent(parent, path=file_path)


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    worker = getattr(config, "workeroutput", None)
    if worker is None:
        _finish(session)
    elif COLLECTED in config.stash:
        from tollkeeper.engine.offline.testing.collecting import for_controller

        worker[_FROM_WORKER] = for_controller(config.stash[COLLECTED])


def _finish(session: pytest.Session) -> None:
    """Writes the coverage where it was asked for, and fails the run when it is too low."""
    option = session.config.option
    files = (option.rule_coverage_json, option.rule_coverage_html)
    wanted = option.rule_coverage_fail_under
    if wanted is None and files == (None, None):
        return
    from tollkeeper.engine.offline.testing.collecting import coverage_of
    from tollkeeper.engine.offline.testing.coverage import percent
    from tollkeeper.engine.offline.testing.coverage_report import as_html, as_json

    covered = coverage_of(session.config)
    is_low = wanted is not None and percent(covered) < wanted
    if is_low and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    for path, write in zip(files, (as_json, as_html), strict=True):
        if path is not None:
            path.write_text(write(covered), encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker of pytest-xdist has collected and seen."""
    sent = (getattr(node, "workeroutput", None) or {}).get(_FROM_WORKER)
    if sent is not None:
        from tollkeeper.engine.offline.testing.collecting import collected, from_worker

        from_worker(collected(node.config), sent)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    wanted = config.option.rule_coverage_fail_under
    if not config.option.rule_coverage and wanted is None:
        return
    from tollkeeper.engine.offline.testing.collecting import coverage_of
    from tollkeeper.engine.offline.testing.coverage import percent
    from tollkeeper.engine.offline.testing.coverage_report import as_text

    covered = coverage_of(config)
    terminalreporter.write_sep("-", "rule coverage")
    terminalreporter.write_line(as_text(covered))
    if wanted is not None and percent(covered) < wanted:
        terminalreporter.write_line(f"less than {wanted:g} % were seen", red=True)
