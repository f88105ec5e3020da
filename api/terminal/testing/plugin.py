"""What pytest collects: each `test` block of a rule file, and each case.

`--snapshot-update` accepts the current decisions of cases. pytest loads it everywhere, so other
modules are only imported when it meets a file of ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tollkeeper.engine.offline.paths import is_case, is_rule

if TYPE_CHECKING:
    from tollkeeper.api.terminal.testing.collecting import CollectedFiles

COLLECTED: pytest.StashKey[CollectedFiles] = pytest.StashKey()
_FROM_WORKER = "tollkeeper_seen"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not (is_rule(file_path) or is_case(file_path)):
        return None
    from tollkeeper.api.terminal.testing.collecting import CaseCollector, RuleCollector

    kind = RuleCollector if is_rule(file_path) else CaseCollector
    return kind.from_parent(parent, path=file_path)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a worker's collected files and coverage to the controller of pytest-xdist."""
    worker = getattr(session.config, "workeroutput", None)
    if worker is not None and COLLECTED in session.config.stash:
        from tollkeeper.api.terminal.testing.collecting import for_controller

        worker[_FROM_WORKER] = for_controller(session.config.stash[COLLECTED])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add a worker's collected files and coverage."""
    sent = (getattr(node, "workeroutput", None) or {}).get(_FROM_WORKER)
    if sent is not None:
        from tollkeeper.api.terminal.testing.collecting import collection_of, from_worker

        from_worker(collection_of(node.config), sent)
