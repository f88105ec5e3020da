"""What holds for every test: none depends on how fast the machine is or on how `toll` is set up there,
and none waits for a disk.
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Generator
from fcntl import LOCK_EX, flock
from pathlib import Path
from shutil import disk_usage
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings, strategies

from tollkeeper.tests.examples import examples
from tollkeeper.tests.forked import fork_from, shared_address

for name in [each for each in os.environ if each.startswith("TOLL_")]:
    # What a developer works with is not what tests are about, nor may they write there.
    if name != "TOLL_TEST_DATABASE":
        del os.environ[name]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So a shell starts what it runs in the background, and each process that this one starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A process that others are forked from may have no second thread, which could hold a lock meanwhile.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(
    "any_machine",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any_machine")

# In colours, as structlog does without being told, a request's line takes longer than the request.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(default=str),
    ]
)

MEMORY = Path("/dev/shm")
if os.access(MEMORY, os.W_OK) and disk_usage(MEMORY).free > 2 * 2**30:
    # Tests end processes, never the machine: nothing of theirs has to outlive it.
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than processors: services, browsers and databases are waited for. Each more takes
    as long as all tests take to be collected.
    """
    return 1 + (os.cpu_count() or 1)


def pytest_configure_node(node: Any) -> None:
    """It loads what it loads while workers collect."""
    node.workerinput["forked_from"] = shared_address()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        fork_from(config.workerinput["forked_from"])


class SharedDir(pytest.Dir):
    """A folder that each worker reads from another place on: what one has compiled, others find."""

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        found = [*super().collect()]
        worker = getattr(self.config, "workerinput", {"workerid": "gw0", "workercount": 1})
        begin = len(found) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        return found[begin:] + found[:begin]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector:
    return SharedDir.from_parent(parent, path=path)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    items: list[pytest.Item],
) -> Generator[None, object, object]:
    sort_items(items)
    # Hypothesis keeps what it reads of our sources and of Unicode: one worker reads, others find it.
    with Path(__file__).open("rb") as shared:
        flock(shared, LOCK_EX)
        result = yield
        strategies.text().validate()
    return result


def sort_items(items: list[pytest.Item]) -> None:
    """In the order of their folders, but those of running services come first: they wait for much,
    and other workers reckon meanwhile. Of these, files of few tests have the longest ones: none is
    left for the end, when others have nothing to do beside it.
    """
    tests = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[bool, int, tuple[str, ...]]:
        serves = item.nodeid.startswith("tests/service/")
        return not serves, serves and tests[item.path], item.path.parts

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All that is imported stays: collections of garbage would look through it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Collections of garbage look at what tests make, seldom, and never again at what was collected."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure(config: pytest.Config) -> None:
    # A worker ends at once (workers.py). Elsewhere libraries complain of what is still there.
    if not hasattr(config, "workerinput"):
        gc.unfreeze()
