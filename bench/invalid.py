"""Does an invalid request cost the service more than a valid one?

    python -m tollkeeper.bench.invalid [--seconds 2] [--rounds 3]

`wrk` sends each kind over 8 connections; the figure is the server's CPU per request, compared with
valid payments of about the same size, which are scored, sent through the shipped rule and stored on
disk. The rounds alternate; the figures are medians.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import json

from tollkeeper.bench.http import furnish
from tollkeeper.bench.load import LoadResult, load
from tollkeeper.bench.payments import body
from tollkeeper.bench.servers import serving
from tollkeeper.bench.tables import Target, show, show_targets

SCRIPT = Path(__file__).with_name("bodies.lua")
BODIES = 200
CONNECTIONS = 8
MOST = 5
ATTEMPTS = 100

Make = Callable[[random.Random], bytes]


def attempt(number: int) -> dict[str, Any]:
    return {
        "id": f"attempt-{number}",
        "status": "declined",
        "connector": {"id": "acquirer-1", "type": "acquirer", "response_code": "51"},
    }


def valid(chance: random.Random) -> bytes:
    return body(chance)


def long(chance: random.Random) -> bytes:
    sent = json.decode(valid(chance))
    sent["payment"]["transactions"] = [attempt(number) for number in range(ATTEMPTS)]
    sent["payment"]["metadata"] = {f"field {n}": "books and music" for n in range(300)}
    return json.encode(sent)


def changed(change: Callable[[dict[str, Any]], Any], of: Make) -> Make:
    """Return a maker of bodies with this change."""

    def make(chance: random.Random) -> bytes:
        sent = json.decode(of(chance))
        change(sent["payment"])
        return json.encode(sent)

    return make


def with_every_field_wrong(payment: dict[str, Any]) -> None:
    for name in payment:
        payment[name] = [payment[name]]


def with_every_text_wrong(payment: dict[str, Any]) -> None:
    payment |= {"type": "sale", "currency": "brl", "amount": 1.999, "status": "paid"}
    payment["method"]["card"] |= {"network": "x", "presence": "x", "bin": "4", "last_four": "12345"}
    payment["device"] |= {"ip_address": "10.0.0.300"}
    payment["merchant"] |= {"country": "Brazil", "category_code": "0"}


def with_every_attempt_wrong(payment: dict[str, Any]) -> None:
    for each in payment["transactions"]:
        each["status"] = "failing"
        each["connector"] = {"type": 5}


def nested(_chance: random.Random) -> bytes:
    return b'{"payment":' + b"[" * 1_900


def nested_in_metadata(_chance: random.Random) -> bytes:
    return b'{"payment":{"metadata":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}}"


KINDS: dict[str, tuple[Make, Make]] = {
    "valid": (valid, valid),
    "one value wrong": (changed(lambda p: p.update(currency="brl"), valid), valid),
    "a field missing": (changed(lambda p: p.pop("currency"), valid), valid),
    "every text wrong": (changed(with_every_text_wrong, valid), valid),
    "every type wrong": (changed(with_every_field_wrong, valid), valid),
    "cut off": (lambda chance: valid(chance)[:-40], valid),
    "not JSON": (lambda chance: valid(chance).replace(b'"', b"'"), valid),
    "1,900 brackets": (nested, valid),
    "valid, 100 attempts": (long, long),
    "100 attempts, one value wrong": (changed(lambda p: p.update(currency="brl"), long), long),
    "100 attempts, each wrong": (changed(with_every_attempt_wrong, long), long),
    "100 attempts, cut off": (lambda chance: long(chance)[:-40], long),
    "metadata 5,000 deep": (nested_in_metadata, long),
}
"""The maker of each kind's bodies, and that of the valid ones to compare with."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, list[LoadResult]] = {name: [] for name in KINDS}
    with TemporaryDirectory(prefix="toll-bench-") as place:
        folder = Path(place)
        sizes = {name: write(folder, name) for name in KINDS}
        key = furnish(folder / "data", "shipped")
        with serving(folder / "data", key) as server:
            for _ in range(options.rounds):
                for name, measured in found.items():
                    variables = {"BENCH_BODIES": str(folder / name)}
                    measured.append(
                        load(
                            server,
                            options.seconds,
                            connections=CONNECTIONS,
                            script=SCRIPT,
                            variables=variables,
                        )
                    )
    for name, measured in found.items():
        refused = sum(each.refused for each in measured)
        answered = sum(each.requests for each in measured)
        assert refused == (0 if name.startswith("valid") else answered), (name, refused, answered)
    cost = {name: median(each.cpu_each for each in measured) for name, measured in found.items()}
    base = {make: cost[name] for name, (make, _) in KINDS.items()}
    ratios = {name: cost[name] / base[valid_kind] for name, (_, valid_kind) in KINDS.items()}
    show(
        "Requests, refused with a 422 but for the valid ones",
        ["", "bytes", "CPU µs each", "× a valid one"],
        [[name, sizes[name], cost[name], ratios[name]] for name in KINDS],
    )
    dearest = max(ratio for name, ratio in ratios.items() if not name.startswith("valid"))
    show_targets([Target("the dearest invalid request", dearest, at_most=MOST)])


def write(folder: Path, name: str) -> int:
    """Write a file with bodies of that kind; return their mean size."""
    chance = random.Random(5)
    bodies = [KINDS[name][0](chance) for _ in range(BODIES)]
    (folder / name).write_bytes(b"\n".join(bodies) + b"\n")
    return sum(map(len, bodies)) // len(bodies)


if __name__ == "__main__":
    main()
