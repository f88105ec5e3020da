"""A folder that takes no more: 503 in the one error body, nothing acknowledged is lost, it recovers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tollkeeper.tests.api.service import errors, payment
from tollkeeper.tests.service.process import new_key, serving

MOST = 2000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 4 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield disk
    subprocess.run(["umount", disk], check=True)


class Till:
    """A client that remembers which of its payments were acknowledged."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.kept: list[str] = []

    def pay(self) -> httpx.Response:
        id_ = f"p{len(self.kept)}"
        answer = self.client.post("/v1/payments", json=payment(id=id_))
        if answer.status_code == 201:
            self.kept.append(id_)
        return answer

    def pay_until_refused(self) -> httpx.Response:
        for _ in range(MOST):
            answer = self.pay()
            if answer.status_code != 201:
                return answer
        raise AssertionError("the folder took everything")

    def missing(self) -> list[str]:
        return [
            id_ for id_ in self.kept if self.client.get(f"/v1/payments/{id_}").status_code != 200
        ]


def fill(path: Path) -> None:
    """Makes a file as large as the disk allows."""
    with suppress(OSError), path.open("wb", 0) as file:
        while True:
            file.write(bytes(4096))


def test_a_full_disk_refuses_until_there_is_space(disk: Path) -> None:
    folder = disk / "data"
    headers = {"authorization": f"Bearer {new_key(folder, 'payments')}"}
    with serving(folder) as service, httpx.Client(base_url=service.url, headers=headers) as client:
        till = Till(client)
        assert till.pay().status_code == 201
        fill(disk / "ballast")
        refused = till.pay_until_refused()
        assert refused.status_code == 503
        assert errors(refused) == [("body", "unavailable")]
        assert refused.headers["retry-after"] == "1"
        assert till.missing() == []
        assert till.client.get("/health/live").status_code == 200
        (disk / "ballast").unlink()
        assert [till.pay().status_code for _ in range(5)] == [201] * 5
    with serving(folder) as service, httpx.Client(base_url=service.url, headers=headers) as client:
        till.client = client
        assert till.missing() == []
