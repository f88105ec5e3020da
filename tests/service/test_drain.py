"""Told to stop, the service answers what has begun, closes its journal and ends well."""

from __future__ import annotations

import json
import signal
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.service.process import PATIENCE_S, Running, new_key, serving, serving_within
from tollkeeper.tests.service.wire import connected, head, read_answer


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_request_in_flight_is_answered_and_kept(tmp_path: Path, told: signal.Signals) -> None:
    folder = tmp_path / "data"
    headers = {"authorization": f"Bearer {new_key(folder, 'payments')}"}
    body = json.dumps(payment(id="last")).encode()
    with serving(folder) as service, connected(service) as begun:
        begun.sendall(head(headers, len(body)) + body[:100])
        assert httpx.get(f"{service.url}/health/live", timeout=PATIENCE_S).status_code == 200
        service.process.send_signal(told)
        wait_until_refused(service)
        begun.sendall(body[100:])
        assert read_answer(begun).startswith(b"HTTP/1.1 201")
        assert service.process.wait(PATIENCE_S) == 0
        assert not (folder / "tollkeeper.db-wal").exists()
    with serving(folder) as service:
        known = httpx.get(f"{service.url}/v1/payments/last", headers=headers, timeout=PATIENCE_S)
        assert known.status_code == 200


def wait_until_refused(service: Running) -> None:
    with suppress(OSError):
        while True:
            connected(service).close()
            time.sleep(0.05)


def test_a_request_that_never_ends_is_given_up(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    headers = {"authorization": f"Bearer {new_key(folder, 'payments')}"}
    with serving_within(folder, drain_seconds=1) as service, connected(service) as begun:
        begun.sendall(head(headers, 1000))
        assert httpx.get(f"{service.url}/health/live", timeout=PATIENCE_S).status_code == 200
        service.process.terminate()
        assert service.process.wait(PATIENCE_S) == 0
