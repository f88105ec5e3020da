"""A receiver of webhooks that accepts everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import msgspec

from tollkeeper.bench.faults.history import Notice

_NAMED_BY = {
    "payment.decided": ("payment", "id"),
    "payment.updated": ("payment", "id"),
    "label.created": ("label", "payment"),
    "rule.published": ("rule", "version"),
    "alert.raised": ("alert", "key"),
}
"""Where each kind of notice names its subject."""


@contextmanager
def receiver(port: int) -> Iterator[list[Notice]]:
    """Yield the notices received so far at a port of every address of this machine; the path names
    the account.
    """
    taken: list[Notice] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            notice = msgspec.json.decode(self.rfile.read(int(self.headers["content-length"])))
            what, name = _NAMED_BY[notice["kind"]]
            subject, delivery = str(notice[what][name]), self.headers["toll-delivery"]
            taken.append(Notice(self.path.strip("/"), notice["kind"], subject, delivery))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Without log output."""

    with ThreadingHTTPServer(("", port), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield taken
        finally:
            server.shutdown()
