"""`toll payments`: the filter that the command line has in common with the service."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tollkeeper.cli import main


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("since:1h until:2h", "since: `since` is not before `until`"),
        ("score:0.5..0.4", "score_from: the lowest score is more than the highest"),
    ],
)
def test_a_filter_that_nothing_can_match_is_refused(tmp_path: Path, wanted: str, said: str) -> None:
    data = ["--data", str(tmp_path / "data")]
    assert CliRunner().invoke(main, ["accounts", "create", "shop", *data]).exit_code == 0
    asked = ["payments", wanted, "--account", "shop", *data]
    for more in ([], ["--count"]):
        done = CliRunner().invoke(main, [*asked, *more])
        assert done.exit_code == 1
        assert said in done.stderr
