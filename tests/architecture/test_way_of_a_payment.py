"""The files that a payment walks through are those that docs/architecture.md tells, and no more."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from socket import create_server
from types import FrameType
from typing import Any

import httpx
import pytest

import tollkeeper
from tollkeeper.api.http.app import plain_payments, public_app, service_of
from tollkeeper.api.http.plain import answering
from tollkeeper.api.http.serve import Server, configuration
from tollkeeper.tests.api.http.service import HURRIED, Service, open_service, payment

ROOT = Path(tollkeeper.__path__[0]).resolve()
DOCUMENT = ROOT / "docs" / "architecture.md"
MOST = 30
PLAIN = {"api/http/connection.py", "api/http/plain.py"}
"""What is left out where the ordinary way is traced: it begins where the application is called."""
ORDINARY = {"api/http/dispatch.py"}
"""What the ordinary way takes instead."""
ENTRANCES = {
    ("api/http/connection.py", "data_received"),
    ("api/http/plain.py", "_step"),
    ("api/http/dispatch.py", "handle"),
    ("engine/journal/writer.py", "_work"),
}
"""What runs a request in the event loop, and what writes it in the journal's thread."""
STEP = ("engine/journal/writer.py", "_run_step")
"""What the journal's thread does besides: for a seal or a purge, say, and never for a payment."""
STEP_ASKED = ("engine/journal/writer.py", "run")
LOG = "api/http/logs.py"
"""Brings a request's line out once it is answered, where the service logs: a test before may have begun it."""
WRITTEN = "engine/velocity/first_seen_file.py"
"""Is asked for times that were still in memory half a second before."""
RULE = """
rule checkout
  let cards = distinct(payments.method.card.fingerprint by device.fingerprint.id over 1h)
  let uses = count(payments by method.card.fingerprint over 24h)
  let spent = sum(payments.amount by user.id, currency over 24h)
  let attempts = count(transactions by user.id over 24h where status == "declined")
  condition many when cards >= 4 or uses > 5 or spent > 2000 or attempts > 9 then deny
"""
PUBLISH = "/v1/rules/checkout/versions?publish=true"
ANALYZE = {"bot_behaviour": True, "rule": {"name": "checkout"}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Walk:
    """The product's files whose functions are called while `open`, from the entrances on."""

    def __init__(self) -> None:
        self.open = False
        self.files: list[str] = []
        self.entrances: set[tuple[str | None, str]] = set()
        self.asks_for_a_step = False

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        if not self.open or event != "call":
            return
        file = place(frame)
        if (file, frame.f_code.co_name) in ENTRANCES:
            self.entrances.add((file, frame.f_code.co_name))
        if file is not None and file not in self.files and is_within(frame):
            self.files.append(file)
        if (file, frame.f_code.co_name) == STEP_ASKED and is_within(frame):
            self.asks_for_a_step = True


def place(frame: FrameType) -> str | None:
    """The product's file that a frame belongs to, None for what is not the product's."""
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(ROOT):
        return None
    file = str(path.relative_to(ROOT))
    is_one = file.startswith(("api/", "engine/", "grammar/")) and file not in (LOG, WRITTEN)
    return file if is_one else None


def is_within(frame: FrameType | None) -> bool:
    while frame is not None:
        called = (place(frame), frame.f_code.co_name)
        if called == STEP:
            return False
        if called in ENTRANCES:
            return True
        frame = frame.f_back
    return False


@contextmanager
def walked() -> Iterator[Walk]:
    """Threads that start within it are followed, too."""
    walk = Walk()
    before = sys.getprofile()
    threading.setprofile(walk.note)
    sys.setprofile(walk.note)
    try:
        yield walk
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]


def documented_files() -> list[str]:
    """The files of the table; one without a folder is in that of the file before it."""
    section = DOCUMENT.read_text().split("## The way of a payment")[1].split("\n## ")[0]
    files: list[str] = []
    for line in section.splitlines():
        if line.startswith("| "):
            for name in re.findall(r"`([\w/]+\.py)`", line):
                files.append(name if "/" in name else str(Path(files[-1]).with_name(name)))
    return files


@asynccontextmanager
async def shop(folder: Path) -> AsyncIterator[Service]:
    """A service with the rule published."""
    async with open_service(folder) as service:
        made = await service.client.post(PUBLISH, content=RULE)
        assert made.status_code == 201, made.text
        yield service


@pytest.mark.anyio
async def test_a_payment_walks_through_the_files_that_the_architecture_tells(
    tmp_path: Path,
) -> None:
    with walked() as walk:
        async with shop(tmp_path / "data") as service:
            # The first payment looks up what later ones find at hand.
            for id_ in ("payment-of-1", "payment-of-2"):
                sent = payment(id=id_, analyze=ANALYZE)
                walk.open, walk.files = True, []
                answer = await service.client.post("/v1/payments", json=sent)
                walk.open = False
            assert answer.status_code == 201, answer.text
    assert not walk.asks_for_a_step
    assert sorted(walk.files) == sorted({*documented_files(), *ORDINARY} - PLAIN)


@pytest.mark.anyio
async def test_a_plain_payment_walks_through_the_files_that_the_architecture_tells(
    tmp_path: Path,
) -> None:
    with walked() as walk:
        async with shop(tmp_path / "data") as service:
            shared = service_of(service.engine, HURRIED, jobs=service.jobs)
            config = configuration(public_app(shared), HURRIED, plain_payments(answering(shared)))
            config.lifespan = "off"
            server = Server(config)
            with create_server(("127.0.0.1", 0)) as bound:
                serving = asyncio.create_task(server.serve(sockets=[bound]))
                url = f"http://127.0.0.1:{bound.getsockname()[1]}"
                async with httpx.AsyncClient(
                    base_url=url, headers=service.client.headers
                ) as client:
                    # The first payment looks up what later ones find at hand.
                    for id_ in ("payment-of-1", "payment-of-2"):
                        sent = payment(id=id_, analyze=ANALYZE)
                        walk.open, walk.files = True, []
                        answer = await client.post("/v1/payments", json=sent)
                        walk.open = False
                    assert answer.status_code == 201, answer.text
                server.should_exit = True
                await serving
    assert not walk.asks_for_a_step
    assert ("api/http/dispatch.py", "handle") not in walk.entrances
    assert len(walk.files) <= MOST, "\n".join(walk.files)
    assert sorted(walk.files) == sorted(documented_files())
