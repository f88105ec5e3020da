"""The process that questions are answered in, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tollkeeper.engine.offline.prove.questions import ProofVerdict
from tollkeeper.engine.offline.prove.worker import open_worker
from tollkeeper.tests.engine.offline.prove.asked import answer, asked_process, die, wait_for_ever


def ask_for_ever(told: str) -> None:
    with open_worker(600) as worker:
        worker.ask(wait_for_ever, Path(told))


def test_a_question_ends_with_the_process_that_asked_it(tmp_path: Path) -> None:
    program = f"from {__name__} import ask_for_ever; ask_for_ever({str(tmp_path)!r})"
    asking = subprocess.Popen([sys.executable, "-c", program])
    while not (tmp_path / "id").exists():
        assert asking.poll() is None
        time.sleep(0.02)
    asking.kill()
    asking.wait()
    while _lives(int((tmp_path / "id").read_text())):
        time.sleep(0.02)


def test_a_question_that_waits_without_computing_has_no_answer(tmp_path: Path) -> None:
    with open_worker(0.001) as worker:
        assert worker.ask(wait_for_ever, tmp_path) is None


def test_no_question_is_asked_once_the_time_for_all_of_them_is_over(tmp_path: Path) -> None:
    with open_worker(600, within=0.1) as worker:
        assert worker.ask(wait_for_ever, tmp_path) is None
        assert worker.is_late()
        assert worker.ask(answer) is None


def test_a_question_whose_process_dies_has_no_answer_and_the_next_one_has() -> None:
    with open_worker() as worker:
        assert worker.ask(die) is None
        assert worker.ask(answer) == ProofVerdict("proved")


def test_an_interrupt_of_the_whole_terminal_is_left_to_who_asked() -> None:
    with open_worker() as worker:
        process = worker.ask(asked_process)
        assert process is not None
        os.kill(process, signal.SIGINT)
        assert worker.ask(answer) == ProofVerdict("proved")


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
