"""Is anything that was acknowledged ever lost when the process is killed under load?

    python -m tollkeeper.bench.crash [--kills 50]

Clients report payments, updates and events, and publish rule versions, as fast as they can; at
random moments the process gets SIGKILL and is restarted. Afterwards the journal is read: everything
acknowledged must be in it, each decision's window must equal a recount of the journal up to its
place, and each version must be a complete text that was sent.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import httpx
from rich.console import Console
from rich.progress import track

from tollkeeper.bench.servers import ACCOUNT, Server, new_key, serving
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.programs.load import loaded_rule
from tollkeeper.engine.read_folder import Picture, read_folder
from tollkeeper.engine.stored_records import decode_decision, decode_recorded

CLIENTS = 12
USERS = 40
LIFE_S = (0.3, 1.5)
EVENT = """event sign_in
  field user: string required
  metric recent = count(events by user over 1h)
"""


def rule(number: int) -> str:
    """A different text for each version; all read one window, and long ones take time to write."""
    conditions = "\n".join(
        f"  condition c{n} when uses > {number + n} then deny" for n in range(40)
    )
    return (
        "rule crash\n  let uses = count(payments by user.id over 24h)\n"
        f"  condition any when uses > 0 then allow\n{conditions}\n"
    )


@dataclass
class Acknowledged:
    """What clients were told is stored: ids, and the numbers of rule texts by version."""

    payments: set[str] = field(default_factory=set)
    updates: set[str] = field(default_factory=set)
    events: set[str] = field(default_factory=set)
    versions: dict[int, int] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    kills = parser.parse_args().kills
    acknowledged = Acknowledged()
    with TemporaryDirectory(prefix="toll-bench-") as name:
        folder = Path(name, "data")
        key = new_key(folder, "payments", "rules")
        for life in track(range(kills), description="kills", console=Console(stderr=True)):
            with serving(folder, key) as server:
                live(server, life, acknowledged)
        with serving(folder, key):
            pass
        show_found(
            acknowledged,
            kills,
            read_folder(folder, lambda picture: count_errors(picture, acknowledged)),
        )


def live(server: Server, life: int, acknowledged: Acknowledged) -> None:
    """One life of the service, from its start to its kill."""
    clients = [
        Thread(target=report, args=(server, f"{life}-{n}", acknowledged)) for n in range(CLIENTS)
    ]
    clients.append(Thread(target=publish, args=(server, life, acknowledged)))
    for client in clients:
        client.start()
    time.sleep(random.uniform(*LIFE_S))
    server.process.kill()
    for client in clients:
        client.join()


def report(server: Server, name: str, acknowledged: Acknowledged) -> None:
    """Report payments, their updates and events, one at a time until the service dies."""
    with client_of(server) as client:
        number = 0
        try:
            while True:
                number += 1
                id_, user = f"{name}-{number}", f"u{random.randrange(USERS)}"
                if client.post("/v1/payments", json=payment(id_, user)).status_code == 201:
                    acknowledged.payments.add(id_)
                update = {"payment": {"status": "failed"}}
                if client.patch(f"/v1/payments/{id_}", json=update).status_code == 200:
                    acknowledged.updates.add(id_)
                event = {"event": {"type": "sign_in", "id": id_, "data": {"user": user}}}
                if client.post("/v1/events", json=event).status_code == 201:
                    acknowledged.events.add(id_)
        except httpx.TransportError:
            return


def publish(server: Server, life: int, acknowledged: Acknowledged) -> None:
    """Publish new versions of the rule, one at a time until the service dies."""
    with client_of(server) as client:
        number = 1000 * life
        try:
            client.post("/v1/event-types/sign_in/versions?publish=true", content=EVENT)
            while True:
                number += 1
                answer = client.post("/v1/rules/crash/versions?publish=true", content=rule(number))
                if answer.status_code == 201:
                    acknowledged.versions[answer.json()["rule"]["version"]] = number
        except httpx.TransportError:
            return


def client_of(server: Server) -> httpx.Client:
    headers = {"authorization": f"Bearer {server.key}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=30)


def payment(id_: str, user: str) -> dict[str, Any]:
    return {
        "payment": {
            "id": id_,
            "type": "purchase",
            "currency": "BRL",
            "method": {"type": "pix"},
            "merchant": {"id": "m"},
            "user": {"id": user},
            "analyze": {"bot_behaviour": True, "rule": {"name": "crash"}},
        }
    }


async def count_errors(picture: Picture, acknowledged: Acknowledged) -> dict[str, int]:
    """Return the number of errors in the journal, by their names in the table."""
    entries = [entry for batch in picture.journal.replay() for entry in batch]
    ids = {kind: {entry.id for entry in entries if entry.kind == kind} for kind in Kind}
    account = picture.state.accounts[picture.state.numbers[ACCOUNT]]
    lineage = account.files.get(("rule", "crash"))
    versions = {} if lineage is None else {each.number: each for each in lineage.versions}
    for version in versions.values():
        loaded_rule(version)
    return {
        "payments missing": len(acknowledged.payments - ids[Kind.PAYMENT]),
        "updates missing": len(acknowledged.updates - ids[Kind.UPDATE]),
        "events missing": len(acknowledged.events - ids[Kind.EVENT]),
        "versions missing": sum(
            number not in versions or versions[number].text != rule(text)
            for number, text in acknowledged.versions.items()
        ),
        "versions half-written": sum(
            not each.text.endswith("then deny\n") for each in versions.values()
        ),
        "decisions": sum(entry.kind == Kind.PAYMENT and bool(entry.outcome) for entry in entries),
        "windows that differ from a recount": differing(entries),
    }


def differing(entries: list[Entry]) -> int:
    """Count the decisions that read another number of the user's payments than the journal has
    there.
    """
    seen: Counter[str | None] = Counter()
    wrong = 0
    for entry in entries:
        if entry.kind != Kind.PAYMENT:
            continue
        user = decode_recorded(entry.body).payment.user
        name = None if user is None else user.id
        seen[name] += 1
        decision = decode_decision(entry.outcome or b"{}")
        if decision.rule is not None and decision.rule.name == "crash":
            wrong += decision.reads[-1] != seen[name]
    return wrong


def show_found(acknowledged: Acknowledged, kills: int, wrong: dict[str, int]) -> None:
    decisions = wrong.pop("decisions")
    show(
        f"After {kills} kills under the load of {CLIENTS} clients",
        ["acknowledged", "number"],
        [
            ["payments", len(acknowledged.payments)],
            ["updates", len(acknowledged.updates)],
            ["events", len(acknowledged.events)],
            ["rule versions", len(acknowledged.versions)],
            ["decisions with a window, recounted", decisions],
        ],
    )
    show_targets(Target(name, number, at_most=0) for name, number in wrong.items())


if __name__ == "__main__":
    main()
