"""A collector hears of each request, within the caller's trace, down to the commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.api.http.metrics import Figures
from tollkeeper.tests.api.http.service import HURRIED, open_service, payment
from tollkeeper.tests.service.process import PATIENCE_S, new_key, serving

pytest.importorskip("opentelemetry.sdk")

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collected:
    """What a collector of OTLP over HTTP was sent: spans, and figures by their names."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.figures: dict[str, Any] = {}
        self.service = ""

    def take(self, path: str, body: bytes) -> None:
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        if path == "/v1/traces":
            traces = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
            for resource in traces.resource_spans:
                self.service = attributes(resource.resource)["service.name"]
                for scope in resource.scope_spans:
                    self.spans += scope.spans
        else:
            metrics = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
            for resource in metrics.resource_metrics:
                for scope in resource.scope_metrics:
                    self.figures |= {metric.name: metric for metric in scope.metrics}


def attributes(of: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


@contextmanager
def collecting(wait: Callable[[], object] = lambda: None) -> Iterator[tuple[str, Collected]]:
    """Where a collector listens, and what it was sent; it waits before it answers."""
    collected = Collected()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            wait()
            collected.take(self.path, body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", collected
        finally:
            server.shutdown()
            thread.join()


def test_one_trace_leads_from_the_caller_s_request_to_the_commit(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    key = new_key(folder, "payments")
    headers = {"authorization": f"Bearer {key}", "traceparent": f"00-{TRACE}-{PARENT}-01"}
    with collecting() as (url, collected):
        with serving(folder, ["--telemetry", url]) as service:
            sent = {"url": f"{service.url}/v1/payments", "timeout": PATIENCE_S}
            made = httpx.post(**sent, json=payment(id="p-1"), headers=headers)
            assert made.status_code == 201
            refused = httpx.post(**sent, json={}, headers=headers | {"traceparent": "00-nonsense"})
            assert refused.status_code == 422
        spans = {(each.name, attributes(each).get("toll.reason")): each for each in collected.spans}
    request = spans["POST /v1/payments", None]
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    told = attributes(request)
    assert told["http.route"] == "/v1/payments"
    assert told["http.response.status_code"] == 201
    assert told["toll.request_id"] == made.headers["x-request-id"]
    assert told["toll.account"] == "shop"
    assert key not in str(told)
    commit = next(
        each
        for each in collected.spans
        if each.name == "journal.append" and each.parent_span_id == request.span_id
    )
    assert commit.trace_id == request.trace_id
    assert attributes(commit)["toll.kind"] == "payment"
    assert request.start_time_unix_nano <= commit.start_time_unix_nano
    assert commit.end_time_unix_nano <= request.end_time_unix_nano
    other = next(each for (_, reason), each in spans.items() if reason == "missing")
    assert other.trace_id.hex() != TRACE
    assert collected.service == "tollkeeper"
    assert {"http.server.request.duration", "toll_payments", "toll_ready"} <= {*collected.figures}
    counted = {
        attributes(point)["action"]: point.as_double or point.as_int
        for point in collected.figures["toll_payments"].sum.data_points
    }
    assert sum(counted.values()) == 1


def test_a_collector_that_is_not_there_costs_no_request(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    headers = {"authorization": f"Bearer {new_key(folder, 'payments')}"}
    with serving(folder, ["--telemetry", "http://127.0.0.1:9"]) as service:
        answer = httpx.post(
            f"{service.url}/v1/payments", json=payment(), headers=headers, timeout=PATIENCE_S
        )
        assert answer.status_code == 201


def test_spans_and_figures_are_sent_at_once_when_the_service_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tollkeeper.api.http import telemetry

    monkeypatch.setattr(telemetry, "_PATIENCE_S", 2 * PATIENCE_S)
    both = threading.Barrier(2, timeout=PATIENCE_S)

    async def serve(url: str) -> None:
        async with open_service(tmp_path / "data") as service:
            app = public_app(service_of(service.engine, HURRIED, jobs=service.jobs))
            figures = Figures()
            figures.watch(service.engine)
            async with telemetry.telemetry(url, service.engine, figures) as traced:
                transport = httpx.ASGITransport(traced(app))  # type: ignore[arg-type]
                async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                    assert (await client.get("/health/live")).status_code == 200

    with collecting(both.wait) as (url, collected):
        asyncio.run(serve(url))
    assert [each.name for each in collected.spans] == ["GET /health/live"]
    assert "http.server.request.duration" in collected.figures
