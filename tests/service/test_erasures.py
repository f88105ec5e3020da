"""An erasure that was asked for is made, whatever happens to the process."""

from __future__ import annotations

import json
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.engine.journal.test_fencing import do, expire
from tollkeeper.tests.service.process import PATIENCE_S, new_key, serving, until
from tollkeeper.tests.service.test_nodes import clients_of, nodes, whole

PERSON = {"id": "u-ana", "email": "ana@mail.example"}
_BODIES = "SELECT convert_from(body, 'UTF8') FROM journal WHERE kind = %s"


def is_told(client: httpx.Client) -> bool:
    trail = client.get("/v1/audit", params={"action": "person_erased"}).json()["audit"]
    return bool(trail)


def test_an_erasure_that_failed_is_made_after_a_kill_and_a_start(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    headers = {"authorization": f"Bearer {new_key(folder, 'payments', 'admin')}"}

    def client_of(url: str) -> httpx.Client:
        return httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S)

    with serving(folder) as service, client_of(service.url) as client:
        body = payment(id="p", user=PERSON)
        assert client.post("/v1/payments", json=body).status_code == 201
        # A reader that keeps the write-ahead log from being emptied, as a backup does.
        with closing(schema.connect_for_reading(folder)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM journal").fetchone()
            assert client.post("/v1/erasures", json={"user": "u-ana"}).status_code == 503
            service.kill()
    with serving(folder) as service, client_of(service.url) as client:
        until(lambda: is_told(client))
        found = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
        assert b"u-ana" not in found
        assert b"ana@mail.example" not in found


def test_an_erasure_whose_node_is_killed_is_made_by_the_next_owner(
    tmp_path: Path, on_database: str
) -> None:
    with nodes(tmp_path, 2) as (key, running), clients_of(key, running) as shop:
        until(lambda: whole(on_database), 2)
        shop.pay(1, "p", "u-ana")

        def ask() -> None:
            with suppress(httpx.TransportError):
                shop.clients[0].post("/v1/erasures", json={"user": "u-ana"})

        asking = threading.Thread(target=ask)
        with psycopg.connect(on_database) as holding:
            # The erasure can't rewrite the payment before its node is killed.
            holding.execute("SELECT 1 FROM journal WHERE id = 'p' FOR UPDATE").fetchall()
            asking.start()
            until(lambda: requests_in(on_database))
            running[0].kill()
            asking.join(PATIENCE_S)
            assert "sealed" in requests_in(on_database)[0]
        expire(on_database)
        until(lambda: is_told(shop.clients[1]))
        assert all("sealed" not in each for each in requests_in(on_database))
        ((left,),) = do(on_database, _BODIES, Kind.PAYMENT)
        assert "u-ana" not in left


def requests_in(url: str) -> list[dict[str, Any]]:
    """The requests for erasures in the journal."""
    changes = (json.loads(body)["change"] for (body,) in do(url, _BODIES, Kind.CHANGE))
    return [change for change in changes if change["type"] == "erasure_asked"]
