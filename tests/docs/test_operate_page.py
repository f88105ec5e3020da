"""The operator's guide names every log event, metric and alert, and only tests that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tollkeeper

ROOT = Path(tollkeeper.__path__[0]).resolve()
PAGE = (ROOT / "docs" / "operate.md").read_text()
LEVELS = {"debug", "info", "warning", "error", "exception"}


def tables(heading: str) -> str:
    """The rows of a part of the guide."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return "\n".join(line for line in part.splitlines() if line.startswith("|"))


def events() -> Iterator[tuple[str, Path]]:
    """The events that the service logs; commands print and log nothing."""
    for folder in ("engine", "api/http"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in LEVELS
                    and node.args
                    and isinstance(node.args[0], ast.Constant)
                    and isinstance(node.args[0].value, str)
                ):
                    yield node.args[0].value, path


def test_every_log_event_is_in_the_guide() -> None:
    documented = set(re.findall(r"`([a-z_]+)`", tables("Log")))
    missing = {
        event: str(path.relative_to(ROOT)) for event, path in events() if event not in documented
    }
    assert missing == {}


def test_every_metric_is_in_the_guide() -> None:
    source = (ROOT / "api" / "http" / "metrics.py").read_text()
    metrics = set(re.findall(r'"(toll_[a-z_]+)"', source))
    documented = {
        re.sub(r"_(total|info)$", "", name)
        for name in re.findall(r"`(toll_[a-z_]+)`", tables("Metrics"))
    }
    assert metrics == documented


def test_every_alert_has_its_row() -> None:
    alerts = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
    named = re.findall(r"alert: (\w+)", alerts)
    assert set(named) == set(re.findall(r"^\| (Tollkeeper\w+) ", PAGE, re.MULTILINE))


def test_every_threat_names_tests_that_are_there() -> None:
    rows = tables("Security model").splitlines()[2:]
    assert rows
    for row in rows:
        named = re.findall(r"`(tests/[^`]+)`", row)
        assert named, row
        assert all((ROOT / each).exists() for each in named), row
