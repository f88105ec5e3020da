"""What was acknowledged is on disk, whatever happens to the process."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.service.process import PATIENCE_S, Running, new_key, serving

CLIENTS = 8
ROUNDS = 2
ACKNOWLEDGED = 100
"""So many answers of a round are waited for before the service is killed."""


@pytest.mark.parametrize("place", ["folder", "database"])
def test_kill_9_under_load_loses_nothing_that_was_acknowledged(
    tmp_path: Path, place: str, request: pytest.FixtureRequest
) -> None:
    if place == "database":
        request.getfixturevalue("on_database")
    folder = tmp_path / "data"
    headers = {"authorization": f"Bearer {new_key(folder, 'payments')}"}
    created: set[str] = set()
    updated: set[str] = set()

    for round_ in range(ROUNDS):
        with serving(folder) as service:
            stop, acknowledged = threading.Event(), threading.Semaphore(0)
            with ThreadPoolExecutor(CLIENTS) as clients:
                for client in range(CLIENTS):
                    name = f"{round_}-{client}"
                    clients.submit(
                        report, service, headers, name, stop, acknowledged, created, updated
                    )
                try:
                    for _ in range(ACKNOWLEDGED):
                        assert acknowledged.acquire(timeout=PATIENCE_S)
                    service.kill()
                finally:
                    stop.set()

    with (
        serving(folder) as service,
        httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE_S) as client,
    ):
        for id_ in created:
            known = client.get(f"/v1/payments/{id_}")
            assert known.status_code == 200, id_
            if id_ in updated:
                assert known.json()["payment"]["status"] == "failed", id_
    assert len(created) + len(updated) >= ROUNDS * ACKNOWLEDGED
    assert updated


def report(
    service: Running,
    headers: dict[str, str],
    name: str,
    stop: threading.Event,
    acknowledged: threading.Semaphore,
    created: set[str],
    updated: set[str],
) -> None:
    """Reports payments one after the other and notes which of them were acknowledged."""
    with httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE_S) as client:
        number = 0
        while not stop.is_set():
            id_ = f"{name}-{number}"
            number += 1
            try:
                answer = client.post("/v1/payments", json=payment(id=id_))
                if answer.status_code == 201:
                    created.add(id_)
                    acknowledged.release()
                answer = client.patch(f"/v1/payments/{id_}", json={"payment": {"status": "failed"}})
                if answer.status_code == 200:
                    updated.add(id_)
                    acknowledged.release()
            except httpx.TransportError:
                return
