"""Where is a request's CPU time spent?

    python -m tollkeeper.bench.stages [--seconds 10]

The service runs with a rule and a scorecard of 3 windows, and with the shipped ones, under the load
of 32 connections. A CPU timer interrupts it each half millisecond; the main thread's time since the
last interrupt is added to the stage of the innermost frame of the product's code. Other threads and
processes are measured by the kernel. `loop` is time outside the product's code: the event loop
itself, in C.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from msgspec import json

from tollkeeper.api.http.serve import serve
from tollkeeper.api.http.settings import Settings
from tollkeeper.bench.http import furnish
from tollkeeper.bench.load import load
from tollkeeper.bench.servers import calling, children, cpu_seconds, free_port
from tollkeeper.bench.tables import show

EVERY_S = 0.0005
# The first entry whose path part occurs in a frame's file counts, from the innermost frame
# outwards. A part between slashes is a folder, of the project or of a distribution.
STAGES = {
    "log line": ("/structlog/", "/api/http/logs.py"),
    "HTTP: read, parse, write": ("/uvicorn/", "/api/http/connection.py"),
    "routing": (
        "/litestar/",
        "/api/http/app.py",
        "/api/http/dispatch.py",
        "/api/http/request.py",
        "/api/http/metrics.py",
        "/api/console/application.py",
    ),
    "authentication": ("/api/http/authentication.py", "/engine/registry/"),
    "body": ("/api/http/bodies.py",),
    "decode and validation": ("/engine/intake/", "/engine/instants.py"),
    "facts": ("/engine/facts/",),
    "ages": ("/engine/velocity/first_seen",),
    "windows": ("/engine/velocity/", "<rule>:count", "/re2/"),
    "scorecard and rule": ("/engine/programs/decider.py", "<rule>:"),
    "programs in force": ("/engine/programs/",),
    "journal, this thread": ("/engine/journal/",),
    "monitors": ("/engine/monitors/", "/engine/events/"),
    "shadows": ("/engine/shadows/", "/engine/shadow_queue.py"),
    "the way itself, encoding": (
        "/engine/decide.py",
        "/engine/keep.py",
        "/engine/stored_records.py",
        "/api/http/payments.py",
        "/api/http/answers.py",
        "/api/http/request.py",
    ),
}
LOOP, WRITER, OTHERS = "loop", "journal, its own thread", "other threads: log lines, ages"
INDEX = "the index, a process of its own"
TRAFFIC = {"lean": "3 windows", "shipped": "the shipped scorecard"}


def stage_of(frame: FrameType | None) -> str:
    while frame is not None:
        place = f"{frame.f_code.co_filename}:{frame.f_code.co_name}"
        for stage, parts in STAGES.items():
            if any(part in place for part in parts):
                return stage
        frame = frame.f_back
    return LOOP


class Samples:
    """Seconds of CPU by stage, of this process since `restart`."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._last = 0.0
        self._beside: dict[str, float] = {}

    def restart(self, _signal: int, _frame: FrameType | None) -> None:
        self.seconds.clear()
        self._last, self._beside = time.thread_time(), other_cpu()

    def take(self, _signal: int, frame: FrameType | None) -> None:
        now = time.thread_time()
        self.seconds[stage_of(frame)] += now - self._last
        self._last = now

    def all(self) -> dict[str, float]:
        beside = {name: took - self._beside.get(name, 0) for name, took in other_cpu().items()}
        return {**self.seconds, **beside}


def other_cpu() -> dict[str, float]:
    """Return the CPU seconds so far of all other threads and processes; called by the main thread."""
    writer = writer_seconds()
    others = time.process_time() - time.thread_time() - writer
    index = sum(map(cpu_seconds, children(os.getpid())))
    return {WRITER: writer, OTHERS: others, INDEX: index}


def writer_seconds() -> float:
    """Return the CPU of the thread that writes the journal; 0 without one."""
    return sum(
        time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        for thread in threading.enumerate()
        if thread.name == "journal" and thread.ident
    )


def serve_sampled(folder: str, port: int, notes: str) -> None:
    """Run the service; SIGUSR1 restarts sampling, SIGUSR2 writes the samples to the file `notes`."""
    samples = Samples()
    signal.signal(signal.SIGPROF, samples.take)
    signal.signal(signal.SIGUSR1, samples.restart)
    signal.signal(signal.SIGUSR2, lambda *_: write(Path(notes), json.encode(samples.all())))
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    serve(Settings(folder=Path(folder), port=port), lambda _share: None)


def write(file: Path, text: bytes) -> None:
    """Write atomically, so that the file exists only when complete."""
    part = file.with_suffix(".part")
    part.write_bytes(text)
    part.rename(file)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=10)
    seconds = parser.parse_args().seconds
    found = {title: sampled(name, seconds) for name, title in TRAFFIC.items()}
    rows: list[tuple[str, list[float]]] = []
    for stage in (*STAGES, LOOP, WRITER, OTHERS, INDEX):
        each = [of.get(stage, 0.0) for of in found.values()]
        shares = [
            100 * took / sum(of.values()) for took, of in zip(each, found.values(), strict=True)
        ]
        rows.append((stage, [cell for pair in zip(each, shares, strict=True) for cell in pair]))
    rows.sort(key=lambda row: -row[1][0])
    rows.append(("all", [cell for of in found.values() for cell in (sum(of.values()), 100.0)]))
    show(
        "µs of CPU a payment, the sampling's own included",
        ["", *(head for title in TRAFFIC.values() for head in (title, "%"))],
        [(stage, *cells) for stage, cells in rows],
    )


def sampled(traffic: str, seconds: int) -> dict[str, float]:
    """Return µs of CPU per payment, by stage."""
    with TemporaryDirectory(prefix="toll-bench-") as place:
        folder, notes, port = Path(place, "data"), Path(place, "notes"), free_port()
        key = furnish(folder, traffic)
        call = f"tollkeeper.bench.stages.serve_sampled({str(folder)!r}, {port}, {str(notes)!r})"
        with calling(call, port, "/health/ready", key) as server:
            load(server, 2)
            server.process.send_signal(signal.SIGUSR1)
            measured = load(server, seconds)
            server.process.send_signal(signal.SIGUSR2)
            while not notes.exists():
                time.sleep(0.01)
        found = json.decode(notes.read_bytes(), type=dict[str, float])
    return {stage: took / measured.requests * 1e6 for stage, took in found.items()}


if __name__ == "__main__":
    main()
