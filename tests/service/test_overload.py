"""Past its capacity the service refuses early, and nobody who dawdles holds the others up."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from tollkeeper.tests.api.http.service import errors, payment
from tollkeeper.tests.service.process import PATIENCE_S, Running, new_key, serving_within
from tollkeeper.tests.service.wire import connected, head, read_answer

CLIENTS = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def headers(folder: Path) -> dict[str, str]:
    return {"authorization": f"Bearer {new_key(folder, 'payments')}"}


def pay(service: Running, headers: dict[str, str]) -> httpx.Response:
    return httpx.post(
        f"{service.url}/v1/payments",
        json=payment(),
        headers=headers,
        timeout=PATIENCE_S,
        verify=False,
    )


def test_requests_past_the_bound_are_refused_at_once_and_told_to_come_back(
    folder: Path, headers: dict[str, str]
) -> None:
    with serving_within(folder, waiting=4) as service:
        # They all arrive at one moment: the service is asleep until then.
        service.process.send_signal(signal.SIGSTOP)
        with ThreadPoolExecutor(CLIENTS) as clients:
            asked = [clients.submit(pay, service, headers) for _ in range(CLIENTS)]
            while sum(each.running() for each in asked) < CLIENTS:
                time.sleep(0.01)
            service.process.send_signal(signal.SIGCONT)
            answers = [each.result() for each in asked]
        told = Counter(answer.status_code for answer in answers)
        assert set(told) <= {201, 503}
        assert told[201] >= 4
        for refused in (answer for answer in answers if answer.status_code == 503):
            assert refused.headers["retry-after"] == "1"
            assert errors(refused) == [("body", "unavailable")]
        assert pay(service, headers).status_code == 201


def test_connections_past_the_bound_are_refused_and_those_within_are_served(
    folder: Path, headers: dict[str, str]
) -> None:
    body = json.dumps(payment()).encode()
    with serving_within(folder, connections=4) as service, ExitStack() as opened:
        # Each has a body on its way: a connection without a whole head would be given up.
        busy = [opened.enter_context(connected(service)) for _ in range(4)]
        for each in busy:
            each.sendall(head({**headers, "expect": "100-continue"}, len(body)))
            assert each.recv(100).startswith(b"HTTP/1.1 100")
        refused = pay(service, headers)
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert errors(refused) == [("body", "unavailable")]
        assert httpx.get(f"{service.url}/health/ready", timeout=PATIENCE_S).status_code == 200
        busy[0].sendall(body)
        assert read_answer(busy[0]).startswith(b"HTTP/1.1 201")
        opened.close()
        answers = [pay(service, headers).status_code for _ in range(3)]
        assert 201 in answers


def test_clients_that_stop_half_way_hold_nobody_up(folder: Path, headers: dict[str, str]) -> None:
    body = json.dumps(payment()).encode()
    with serving_within(folder, waiting=4) as service, ExitStack() as opened:
        stopped = [opened.enter_context(connected(service)) for _ in range(50)]
        for each in stopped:
            each.sendall(head(headers, len(body)) + body[:100])
        assert [pay(service, headers).status_code for _ in range(10)] == [201] * 10
        stopped[0].sendall(body[100:])
        assert read_answer(stopped[0]).startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize("sent", [b"", b"POST /v1/payments HTTP/1.1\r\nhost:"])
def test_a_connection_without_a_whole_head_is_closed(folder: Path, sent: bytes) -> None:
    with serving_within(folder, idle_seconds=1) as service, connected(service) as slow:
        # If it is held up for longer than the limit, it has been closed before.
        with suppress(ConnectionError):
            slow.sendall(sent)
        assert _received(slow) == b""


def test_a_head_that_never_ends_is_refused(folder: Path) -> None:
    with serving_within(folder) as service, connected(service) as talker:
        talker.sendall(b"GET /health/live HTTP/1.1\r\n")
        told = b""
        for _ in range(1000):
            try:
                talker.sendall(b"x-more: " + b"a" * 4000 + b"\r\n")
            except OSError:
                break
        while chunk := _received(talker):
            told += chunk
        assert not told or told.startswith(b"HTTP/1.1 431")
        assert httpx.get(f"{service.url}/health/live", timeout=PATIENCE_S).status_code == 200


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""
