"""A process's own folder is gone after it, at the latest with the next one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir

import pytest

from tollkeeper.engine.offline.own_folder import own_folder

HOLD = """
from tollkeeper.engine.offline.own_folder import own_folder
with own_folder("rows") as path:
    (path / "payments").write_text("p")
    print(path, flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert gettempdir() == str(tmp_path)
    return tmp_path


def test_what_a_killed_process_left_is_removed_and_what_another_holds_is_not(
    temporary: Path,
) -> None:
    command = [sys.executable, "-c", HOLD]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    killed, running = (subprocess.Popen(command, **pipes) for _ in range(2))  # type: ignore[call-overload]
    try:
        left, held = (Path(each.stdout.readline().strip()) for each in (killed, running))
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.exists()
        with own_folder("rows") as own:
            assert sorted(temporary.iterdir()) == sorted([own, held])
            with own_folder("columns"):
                assert own.exists()
        running.communicate("\n")
        assert not [*temporary.iterdir()]
    finally:
        for each in (killed, running):
            each.kill()
            each.communicate()


def test_nothing_is_removed_behind_a_link(temporary: Path) -> None:
    kept = temporary / "kept"
    kept.mkdir()
    (temporary / "toll-rows-link").symlink_to(kept)
    with own_folder("rows"):
        pass
    assert kept.exists()
