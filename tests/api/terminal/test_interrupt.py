"""Ctrl-C ends a command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

TOLL = Path(sys.executable).with_name("toll")


def test_the_signal_itself_ends_it_without_a_word_and_not_with_an_answer(tmp_path: Path) -> None:
    read = tmp_path / "a.rule"
    os.mkfifo(read)
    command = subprocess.Popen([TOLL, "check", read], stderr=subprocess.PIPE)
    with read.open("wb"):  # waits until the command reads
        command.send_signal(signal.SIGINT)
        _, said = command.communicate()
    assert (command.returncode, said) == (-signal.SIGINT, b"")


def test_a_command_that_still_loads_ends_as_quietly(tmp_path: Path) -> None:
    loaded = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "rich_click.py").write_text(loaded)
    command = subprocess.run(
        [TOLL, "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (command.returncode, command.stderr) == (-signal.SIGINT, b"")
