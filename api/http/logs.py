"""One log line per request: JSON in a pipe, coloured on a terminal, without personal data.

A request only appends its line to a queue. A thread formats and writes the lines, so that a stalled
reader delays nobody: past a limit, lines are dropped, and their number is logged once the reader
continues.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from time import time_ns
from typing import Any, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, FilteringBoundLogger

_PAUSE_S = 0.05
"""The interval at which lines are written together."""
WAITING = 20_000
"""The most lines that wait for the reader."""
_PATIENCE_S = 2.0
"""How long closing waits for the reader."""

_encode = msgspec.json.Encoder(enc_hook=str).encode
_colour = structlog.dev.ConsoleRenderer(colors=True)


class Lines:
    """Writes lines to a stream, as a structlog logger; `word` formats one."""

    def __init__(self, stream: TextIO, word: Callable[[EventDict], bytes]) -> None:
        self._file = stream.fileno()
        self._word = word
        self._waiting: deque[EventDict] = deque()
        self._dropped = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._bring_out, name="log", daemon=True)
        self._thread.start()

    def msg(self, event: EventDict) -> None:
        if len(self._waiting) < WAITING:
            self._waiting.append(event)
        else:
            self._dropped += 1

    debug = info = warning = error = critical = exception = msg

    def close(self) -> None:
        """Wait until all lines are written, or `_PATIENCE_S` has passed."""
        self._closed.set()
        self._thread.join(_PATIENCE_S)

    def _bring_out(self) -> None:
        # Stops for good once the reader is gone.
        with suppress(OSError, ValueError):
            while not self._closed.wait(_PAUSE_S):
                self._write()
            self._write()

    def _write(self) -> None:
        events = [self._waiting.popleft() for _ in range(len(self._waiting))]
        dropped, self._dropped = self._dropped, 0
        if dropped:
            events.append(_stamp("warning", {"event": "lines_dropped", "count": dropped}))
        text = b"".join([b"%b\n" % self._word(event) for event in events])
        while text:
            # Not through the stream's buffer, whose lock would block the end of the process.
            text = text[os.write(self._file, text) :]


@contextmanager
def logging_to(stream: TextIO = sys.stderr) -> Iterator[None]:
    """Send all log lines to `stream` while the context lasts."""
    lines = Lines(stream, _on_terminal if stream.isatty() else _as_json)
    structlog.configure(
        processors=[_as_it_is],
        wrapper_class=_Logger,
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )
    others = _Others()
    logging.getLogger().addHandler(others)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(others)
        lines.close()


class _Logger(structlog.make_filtering_bound_logger("debug")):  # type: ignore[misc]
    """structlog's logger, whose `info` copies what a line says once: its own does so at each of four
    steps, which for a request's line took as long as to decode its payment."""

    def info(self, event: str, **fields: Any) -> None:
        fields["event"] = event
        with suppress(structlog.DropEvent):
            line: Any = fields
            for step in self._processors:
                line = step(self._logger, "info", line)
            positional, named = line
            self._logger.info(*positional, **named)


class _Others(logging.Handler):
    """Logs warnings of libraries, whose texts contain nothing that clients sent."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._log = structlog.get_logger("tollkeeper.libraries")

    def emit(self, record: logging.LogRecord) -> None:
        say = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        words = record.getMessage().strip()
        say("library", logger=record.name, words=words, exc_info=record.exc_info)


def request_log() -> FilteringBoundLogger:
    # Bound once, because structlog binds an unbound logger again for each line.
    log: FilteringBoundLogger = structlog.get_logger("tollkeeper.request").bind()
    return log


def _as_it_is(
    _logger: Any, method: str, event: EventDict
) -> tuple[tuple[EventDict], dict[str, Any]]:
    """Return the arguments for `Lines`. Exceptions are formatted at once, since their objects may
    change.
    """
    if "exc_info" in event:
        event = structlog.processors.format_exc_info(_logger, method, event)
    return (_stamp(method, event),), {}


def _stamp(method: str, event: EventDict) -> EventDict:
    """Add level and time (ns) in one step, instead of structlog's two."""
    event["level"] = "error" if method == "exception" else method
    event["timestamp"] = time_ns()
    return event


def _as_json(event: EventDict) -> bytes:
    dated = _dated(event)
    try:
        return _encode(dated)
    except UnicodeEncodeError:
        # A lone surrogate, which only escapes can represent.
        return json.dumps(dated, default=str).encode()


def _on_terminal(event: EventDict) -> bytes:
    return _colour(None, "", _dated(event)).encode(errors="replace")


def _dated(event: EventDict) -> EventDict:
    second, ns = divmod(event["timestamp"], 1_000_000_000)
    event["timestamp"] = f"{_text_of(second)}.{ns // 1000:06}Z"
    return event


@lru_cache(2)
def _text_of(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
