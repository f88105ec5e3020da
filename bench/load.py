"""Load by `wrk` from the same machine: unique payments of 1.6 KB, or given bodies."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tollkeeper.bench.servers import Server, cpu_seconds

PAYMENTS = Path(__file__).with_name("http.lua")
CONNECTIONS = 32


@dataclass(frozen=True)
class LoadResult:
    """Some seconds of load: `cpu` of the server's processes in seconds, latencies in ms.

    `refused` were answered other than 2xx or 3xx, `broken` are failed connections. `latencies` says
    how often each latency (µs) occurred, where the script prints it.
    """

    requests: int
    refused: int
    broken: int
    seconds: float
    cpu: float
    p50: float
    p99: float
    latencies: Mapping[int, int]

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds

    @property
    def cpu_each(self) -> float:
        """µs of the server's CPU per request."""
        return self.cpu / self.requests * 1e6


def load(
    server: Server,
    seconds: float,
    *,
    connections: int = CONNECTIONS,
    pause_ms: int = 0,
    script: Path = PAYMENTS,
    variables: Mapping[str, str] = {},
) -> LoadResult:
    """Send load to the server; with a pause, each connection waits that long on average."""
    told_script = {"BENCH_KEY": server.key, "BENCH_PAUSE_MS": str(pause_ms), **variables}
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency"]
    before, begun = cpu_seconds(server.process.pid), time.perf_counter()
    output = subprocess.run(
        [*command, "-s", str(script), server.url],
        env={**os.environ, **told_script},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    took = time.perf_counter() - begun
    broken = re.search(r"connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    return LoadResult(
        requests=int(_found(r"(\d+) requests in", output)),
        refused=int(_found(r"Non-2xx or 3xx responses: (\d+)", output, "0")),
        broken=sum(map(int, broken.groups())) if broken else 0,
        seconds=took,
        cpu=cpu_seconds(server.process.pid) - before,
        p50=_milliseconds(_found(r"50%\s+([\d.]+\w+)", output)),
        p99=_milliseconds(_found(r"99%\s+([\d.]+\w+)", output)),
        latencies={
            int(latency): int(times)
            for latency, times in re.findall(r"^latency\t(\d+)\t(\d+)$", output, re.MULTILINE)
        },
    )


def pause_for(rate: float, connections: int = CONNECTIONS) -> int:
    """Return the pause in ms with which so many connections send `rate` requests a second together."""
    return max(1, round(1000 * connections / rate))


def _found(pattern: str, output: str, otherwise: str | None = None) -> str:
    match = re.search(pattern, output)
    if match is None:
        assert otherwise is not None, output
        return otherwise
    return match[1]


def _milliseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}[unit]
