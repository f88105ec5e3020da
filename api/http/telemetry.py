"""Traces and metrics by OpenTelemetry, if an address is configured; otherwise nothing of it is
loaded.

Each request has a span within the caller's trace (W3C `traceparent`), with an inner one from append
to commit. Nothing is sent that the log and `/metrics` don't show.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from time import perf_counter
from typing import Any, Final, cast

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client.core import Metric

from tollkeeper.api.http.metrics import Figures, families
from tollkeeper.api.http.request import state_of
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.release import this_release
from tollkeeper.engine.runtime import Engine

FIGURES_EVERY_S: Final = 15.0
_PATIENCE_S: Final = 5.0
"""How long the collector has to accept data, also at the service's end."""

_propagator = TraceContextTextMapPropagator()
_PARENT = (b"traceparent", b"tracestate")
_DURATION = "http.server.request.duration"


@asynccontextmanager
async def telemetry(
    url: str, engine: Engine, figures: Figures
) -> AsyncIterator[Callable[[ASGIApp], ASGIApp]]:
    """Send to the OTLP/HTTP collector at `url` while the context lasts; yields the function that
    wraps the application.

    If the collector doesn't answer, spans and metrics are lost, but no request.
    """
    shard = engine.journal.shard
    named = {} if shard.of == 1 else {"toll.shard": shard.number}
    resource = Resource.create(
        {"service.name": "tollkeeper", "service.version": this_release(), **named}
    )
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces", timeout=_PATIENCE_S))
    )
    sending = OTLPMetricExporter(f"{url}/v1/metrics", timeout=_PATIENCE_S)
    reader = PeriodicExportingMetricReader(sending, 1000 * FIGURES_EVERY_S)
    meters = MeterProvider([reader], resource)
    tracer, meter = traces.get_tracer("tollkeeper"), meters.get_meter("tollkeeper")
    untraced = engine.journal
    engine.journal = cast("Journal", TracedJournal(untraced, tracer))
    durations = meter.create_histogram(_DURATION, "s", "Duration of requests.")
    latest = LatestFigures(meter)
    gathering = asyncio.create_task(_gather(figures, latest))
    try:
        yield lambda app: trace_requests(app, tracer, durations)
    finally:
        gathering.cancel()
        engine.journal = untraced
        with suppress(JournalError):
            latest.keep(await families(figures))
        # Pending data is sent in threads, both at once: each may wait for the collector.
        await asyncio.gather(asyncio.to_thread(traces.shutdown), asyncio.to_thread(meters.shutdown))


def trace_requests(app: ASGIApp, tracer: Tracer, durations: Histogram) -> ASGIApp:
    """Wrap the application with a span for each request."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        sent = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _PARENT}  # fmt: skip
        started = perf_counter()
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            await send(message)

        parent, method = _propagator.extract(sent), scope["method"]
        with tracer.start_as_current_span(method, parent, SpanKind.SERVER) as span:
            try:
                await app(scope, receive, noting)
            finally:
                state = state_of(scope)
                attributes: dict[str, str | int] = {
                    "http.request.method": method,
                    "http.route": state.head.route,
                    "http.response.status_code": status,
                }
                durations.record(perf_counter() - started, attributes)
                span.update_name(f"{method} {state.head.route}")
                span.set_attributes(attributes)
                span.set_attribute("toll.request_id", state.request_id.decode())
                for name, value in state.log.items():
                    if value is not None:
                        span.set_attribute(f"toll.{name}", value)
                if status >= 500:
                    span.set_status(Status(StatusCode.ERROR))

    return handle


class TracedJournal:
    """A journal with a span for each append, until it is on disk or refused."""

    def __init__(self, journal: Journal, tracer: Tracer) -> None:
        self._journal = journal
        self._tracer = tracer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def append(self, entry: Entry, *rest: Any, **more: Any) -> asyncio.Future[None]:
        """See `Journal`."""
        span = self._tracer.start_span("journal.append")
        span.set_attribute("toll.kind", Kind(entry.kind).name.lower())
        span.set_attribute("toll.sequence", entry.sequence)

        def end(done: asyncio.Future[None]) -> None:
            if done.cancelled() or done.exception() is not None:
                span.set_status(Status(StatusCode.ERROR))
            span.end()

        try:
            written = self._journal.append(entry, *rest, **more)
        except BaseException:
            span.set_status(Status(StatusCode.ERROR))
            span.end()
            raise
        written.add_done_callback(end)
        return written


class LatestFigures:
    """The metrics of `/metrics`, stored by the event loop for the threads that send them."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._families: dict[str, Metric] = {}

    def keep(self, families: Iterable[Metric]) -> None:
        """Replace the stored metrics."""
        for family in families:
            is_new = family.name not in self._families
            self._families[family.name] = family
            if is_new:
                self._observe(family)

    def _observe(self, family: Metric) -> None:
        def observations(_options: CallbackOptions) -> Iterable[Observation]:
            for sample in self._families[family.name].samples:
                yield Observation(float(sample.value), sample.labels)

        create = {
            "counter": self._meter.create_observable_counter,
            "gauge": self._meter.create_observable_gauge,
        }.get(family.type)
        if create is not None:
            create(family.name, [observations], "", family.documentation)


async def _gather(figures: Figures, latest: LatestFigures) -> None:
    """Update the metrics until cancelled."""
    while True:
        with suppress(JournalError):
            latest.keep(await families(figures))
        await asyncio.sleep(FIGURES_EVERY_S / 3)
