"""What a command prints goes to a disk that is full."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOLL = Path(sys.executable).with_name("toll")


@pytest.mark.parametrize("given", [["fields"], ["fields", "--json"]])
def test_it_says_so_in_one_line(given: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run([TOLL, *given], stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    assert "no space left on device" in ended.stderr.decode()
    assert "Traceback" not in ended.stderr.decode()
