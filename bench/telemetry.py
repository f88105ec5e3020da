"""What do traces and metrics over OpenTelemetry cost a payment?

    python -m tollkeeper.bench.telemetry [--seconds 5] [--rounds 3]

`toll serve` with the shipped scorecard, without telemetry and with it, against a collector in a
process of its own that accepts everything and stores nothing. The rounds alternate; the figures are
medians.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

from tollkeeper.bench.asgi import measure_servers, show_servers
from tollkeeper.bench.http import furnish
from tollkeeper.bench.servers import calling, free_port, serving


class Sink(BaseHTTPRequestHandler):
    """Accepts everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.do_GET()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def collect(port: int) -> None:
    """Run a collector until its process is stopped."""
    ThreadingHTTPServer(("127.0.0.1", port), Sink).serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    port = free_port()
    call = f"tollkeeper.bench.telemetry.collect({port})"
    with TemporaryDirectory(prefix="toll-bench-") as place, ExitStack() as running:
        collector = running.enter_context(calling(call, port, "/"))
        servers = {}
        for name, more in (
            ("without", ()),
            ("with telemetry", ("--telemetry", collector.url)),
        ):
            folder = Path(place, name)
            key = furnish(folder, "shipped")
            servers[name] = running.enter_context(serving(folder, key, *more))
        found = measure_servers(servers, options.seconds, options.rounds)
    show_servers("The whole service, with and without telemetry", found, "without")


if __name__ == "__main__":
    main()
