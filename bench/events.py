"""How many events a second can be sent over HTTP, compared with payments without a rule?

    python -m tollkeeper.bench.events [SECONDS]

One process serves; this one sends over persistent connections. The type has 5 metrics and 3
monitors; its events come from 10,000 users. Rounds of the two alternate, and the ratio is that of
their medians.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import uvloop

from tollkeeper.bench.tables import show
from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.service.process import new_key, serving

CONNECTIONS = 16
ROUNDS = 5
BATCH = 200
USERS = 10_000
TYPE = """
event sign_in
  field user_id: string required
  field result: "success" | "failure" required
  field ip: ip
  field device: string
  field risk: number
  metric failures = count(events by user_id over 1h where result == "failure")
  metric attempts = count(events by user_id over 1d)
  metric users_on_ip = distinct(events.user_id by ip over 10m)
  metric devices = distinct(events.device by user_id over 1d)
  metric risk_sum = sum(events.risk by user_id over 1h)
  monitor brute_force when failures >= 1000
  monitor stuffing when users_on_ip > 10000 by ip every 10m
  monitor risky when risk_sum > 100000 and attempts > 100
"""

_numbers = itertools.count()


def event() -> dict[str, object]:
    number = next(_numbers)
    user = number * 7919 % USERS
    return {
        "type": "sign_in",
        "data": {
            "user_id": f"u-{user}",
            "result": "failure" if number % 3 else "success",
            "ip": f"203.0.{user % 113}.{number % 250}",
            "device": f"d-{user % 5000}",
            "risk": number % 100 / 100,
        },
    }


def one_event() -> bytes:
    return json.dumps({"event": event()}).encode()


def batch() -> bytes:
    return json.dumps({"events": [event() for _ in range(BATCH)]}).encode()


def one_payment() -> bytes:
    return json.dumps(payment()).encode()


async def rate(url: httpx.URL, key: str, path: str, bodies: list[bytes], seconds: float) -> float:
    """Return the requests per second that were answered 201; the client is minimal, so that it is
    faster than the service.
    """
    head = f"POST /v1{path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n"
    requests = [f"{head}content-length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
    supply, done = itertools.cycle(requests), 0
    end = time.perf_counter() + seconds

    async def send() -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection(url.host, url.port)
        while time.perf_counter() < end:
            writer.write(next(supply))
            answered = await reader.readuntil(b"\r\n\r\n")
            assert answered.startswith(b"HTTP/1.1 201"), answered
            length = answered.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            done += 1
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(CONNECTIONS)))
    return done / (time.perf_counter() - start)


async def measure(seconds: float) -> None:
    with TemporaryDirectory(prefix="toll-bench-events-") as temporary:
        folder = Path(temporary) / "data"
        key = new_key(folder, "payments", "rules", "admin")
        with serving(folder) as service:
            url = httpx.URL(service.url)
            answer = httpx.post(
                f"{service.url}/v1/event-types/sign_in/versions?publish=true",
                headers={"authorization": f"Bearer {key}"},
                content=TYPE,
            )
            assert answer.status_code == 201, answer.text
            supplies = {
                "payment": ("/payments", [one_payment() for _ in range(2000)], 1),
                "event": ("/events", [one_event() for _ in range(5000)], 1),
                "batch": ("/events", [batch() for _ in range(100)], BATCH),
            }
            rates: dict[str, list[float]] = {name: [] for name in supplies}
            for _ in range(ROUNDS):
                for name, (path, bodies, size) in supplies.items():
                    found = await rate(url, key, path, bodies, seconds)
                    rates[name].append(found * size)
    base = statistics.median(rates["payment"])
    middles = {name: statistics.median(found) for name, found in rates.items()}
    show(
        f"Over {CONNECTIONS} connections; a batch has {BATCH} events",
        ["", "a second", "× payments"],
        [[name, middle, middle / base] for name, middle in middles.items()],
    )


def main() -> None:
    uvloop.run(measure(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0))


if __name__ == "__main__":
    main()
