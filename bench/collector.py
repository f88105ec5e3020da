"""What does Python's garbage collector cost, tuned and untuned?

    python -m tollkeeper.bench.collector [--stored 200000] [--seconds 4] [--rounds 3]

The service starts on a journal of so many payments, all in its windows, with each setting in turn,
and gets payments over 32 connections: first at full load, then at half of that for the latencies.
The rounds alternate; the figures are medians. Pauses are those of all rounds; each is one
collection.
"""

from __future__ import annotations

import argparse
import gc
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import json

from tollkeeper.api.http import serve as serving
from tollkeeper.api.http.settings import Settings
from tollkeeper.bench.history import fill
from tollkeeper.bench.http import furnish
from tollkeeper.bench.load import LoadResult, load, pause_for
from tollkeeper.bench.servers import Server, calling, free_port
from tollkeeper.bench.tables import show

SETTINGS: dict[str, Callable[[], None]] = {
    "Python's own": lambda: None,
    "frozen after the start": gc.freeze,
    "as the service has it": serving.settle_memory,
    "never": gc.disable,
}


@dataclass(frozen=True)
class SettingRun:
    """A service with one setting, the file where it writes its pauses (in seconds), and its
    results.
    """

    server: Server
    notes: Path
    full: list[LoadResult] = field(default_factory=list)
    half: list[LoadResult] = field(default_factory=list)

    def pauses(self) -> list[float]:
        self.server.process.send_signal(signal.SIGUSR1)
        while not self.notes.exists():
            time.sleep(0.01)
        return json.decode(self.notes.read_bytes(), type=list[float])


def serve(folder: str, port: int, setting: str, notes: str) -> None:
    """Run the service with a setting; on SIGUSR1 it writes the pauses since it was ready to
    `notes`.
    """
    pauses: list[float] = []

    def note(phase: str, _info: dict[str, Any]) -> None:
        if phase == "start":
            pauses.append(-time.perf_counter())
        else:
            pauses[-1] += time.perf_counter()

    def settle() -> None:
        gc.collect()
        SETTINGS[setting]()
        gc.callbacks.append(note)

    def write(*_: object) -> None:
        part = Path(notes).with_suffix(".part")
        part.write_bytes(json.encode(pauses))
        part.rename(notes)

    serving.settle_memory = settle
    signal.signal(signal.SIGUSR1, write)
    serving.serve(Settings(folder=Path(folder), port=port), lambda _share: None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stored", type=int, default=200_000)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="toll-bench-") as place, ExitStack() as running:
        folder = Path(place)
        key = furnish(folder / "first", "shipped")
        fill(folder / "first", options.stored)
        driven = {}
        for number, name in enumerate(SETTINGS):
            data, notes, port = folder / f"{number}", folder / f"notes-{number}", free_port()
            copytree(folder / "first", data)
            call = (
                f"tollkeeper.bench.collector.serve({str(data)!r}, {port}, {name!r}, {str(notes)!r})"
            )
            server = running.enter_context(calling(call, port, "/health/ready", key))
            driven[name] = SettingRun(server, notes)
        for each in driven.values():
            load(each.server, 1)
        for _ in range(options.rounds):
            for each in driven.values():
                each.full.append(load(each.server, options.seconds))
        for _ in range(options.rounds):
            for each in driven.values():
                pause = pause_for(median(one.rate for one in each.full) / 2)
                each.half.append(load(each.server, options.seconds, pause_ms=pause))
        show(
            f"{options.stored:,} payments stored before",
            [
                "",
                "CPU µs each",
                "p50 ms, half load",
                "p99 ms, half load",
                "collections",
                "ms in all",
                "longest ms",
            ],
            [row(name, each) for name, each in driven.items()],
        )


def row(name: str, each: SettingRun) -> list[str | int | float]:
    pauses = each.pauses()
    return [
        name,
        median(one.cpu_each for one in each.full),
        median(one.p50 for one in each.half),
        median(one.p99 for one in each.half),
        len(pauses),
        1000 * sum(pauses),
        1000 * max(pauses, default=0.0),
    ]


if __name__ == "__main__":
    main()
