"""The index's file, which the service and commands may make at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

from tollkeeper.engine.search.index_file import connect_to_write

OPENERS = 4
FOLDERS = 50


def test_a_new_file_may_be_opened_by_several_at_once(tmp_path: Path) -> None:
    together = Barrier(OPENERS)

    def open_in_turn(folder: Path) -> None:
        together.wait()
        with closing(connect_to_write(folder)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    with ThreadPoolExecutor(OPENERS) as openers:
        for number in range(FOLDERS):
            folder = tmp_path / str(number)
            folder.mkdir()
            for done in [openers.submit(open_in_turn, folder) for _ in range(OPENERS)]:
                done.result()
