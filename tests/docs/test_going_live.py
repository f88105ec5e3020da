"""The way of a change in docs/going-live.md, walked with a real service, prints what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic, sleep

import pytest

from tollkeeper.tests.engine.offline.testing.test_tutorial import BLOCK, commands, run
from tollkeeper.tests.service.forked_toll import forked_toll
from tollkeeper.tests.service.process import PATIENCE_S, serving, toll

PAGE = Path(__file__).parents[2] / "docs" / "going-live.md"
ADDRESS = "http://127.0.0.1:8000"
# Times are those of the day, and scores the shipped scorecard's, which has tests of its own.
VARIES = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.+]+Z?)?|0\.\d\d|\"checksum\": \"\w+\"")


def normal(printed: str) -> list[list[str]]:
    return [VARIES.sub("…", line).split() for line in printed.splitlines()]


def test_the_way_of_a_change_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("TOLL_DATA", str(data))
    assert toll(data, "accounts", "create", "shop").returncode == 0
    with serving(data) as service, forked_toll() as forked:
        here, address = tmp_path, service.url.removesuffix("/v1")
        for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            for command, shown in commands(block):
                end = monotonic() + PATIENCE_S
                printed, here = run(command.replace(ADDRESS, address), here, forked)
                # A shadow looks at a payment after it was answered.
                while (
                    "report" in command and normal(printed) != normal(shown) and monotonic() < end
                ):
                    sleep(0.2)
                    printed, here = run(command, here, forked)
                assert (command, normal(printed)) == (command, normal(shown))
