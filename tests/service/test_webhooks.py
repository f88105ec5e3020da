"""Alerts reach a receiver that fails, hangs and comes back, and survive the service's own end."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tollkeeper.tests.service.process import (
    PATIENCE_S,
    Running,
    new_key,
    reserved_port,
    serving_within,
    until,
)

SECRETS = ["the old secret of the shop", "the new secret of the shop"]
TYPE = """
event sign_in
  field user_id: string required
  metric failures = count(events by user_id over 1h)
  monitor many "Many sign-ins" when failures >= 2
"""


class Receiver:
    """A real HTTP server that keeps what it gets and answers what it is told to."""

    def __init__(self, port: int = 0) -> None:
        self.answer = 200
        self.hang = threading.Event()
        self.freed = threading.Event()
        self.got: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
                if receiver.hang.is_set():
                    receiver.freed.wait(PATIENCE_S)
                    return
                self.send_response(receiver.answer)
                self.send_header("location", f"http://127.0.0.1:{receiver.port}/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/alerts"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def receiving(port: int) -> Iterator[Receiver]:
    """A receiver at the port; another one may follow there, which gets nothing of what it got."""
    opened = Receiver(port)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as reserved:
        yield reserved


@pytest.fixture
def receiver(port: int) -> Iterator[Receiver]:
    with receiving(port) as opened:
        yield opened


@contextmanager
def serving(folder: Path, reach: str = "any") -> Iterator[Running]:
    with serving_within(folder, reach=reach) as service:
        yield service


def client_of(service: Running, key: str) -> httpx.Client:
    return httpx.Client(
        base_url=f"{service.url}/v1", headers={"authorization": f"Bearer {key}"}, timeout=PATIENCE_S
    )


def set_up(client: httpx.Client, url: str) -> None:
    answer = client.post("/event-types/sign_in/versions?publish=true", content=TYPE)
    assert answer.status_code == 201, answer.text
    set_webhook(client, url, SECRETS[:1])


def set_webhook(client: httpx.Client, url: str, secrets: list[str]) -> None:
    answer = client.put("/webhooks", json={"webhook": {"url": url, "secrets": secrets}})
    assert answer.status_code == 200, answer.text


def raise_alert(client: httpx.Client, user: str) -> None:
    for _ in range(2):
        sent = {"event": {"type": "sign_in", "data": {"user_id": user}}}
        answer = client.post("/events", json=sent)
        assert answer.status_code == 201, answer.text
    assert answer.json()["event"]["alerts"] == ["many"]


def deliveries(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/webhooks/deliveries").json()["deliveries"]
    return found


def states(client: httpx.Client) -> set[str]:
    return {each["state"] for each in deliveries(client)}


def last(client: httpx.Client, member: str) -> Any:
    """What the latest delivery has there."""
    return deliveries(client)[0][member]


def verified(headers: dict[str, str], body: bytes, secret: str) -> bool:
    stamp, *marks = headers["toll-signature"].split(",")
    signed = stamp.removeprefix("t=").encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"v1={expected}" in marks


def test_an_alert_is_sent_signed_and_with_either_secret_while_one_replaces_the_other(
    tmp_path: Path, receiver: Receiver
) -> None:
    key = new_key(tmp_path / "data", "admin")
    with serving(tmp_path / "data") as service, client_of(service, key) as client:
        set_up(client, receiver.url)
        raise_alert(client, "u-1")
        until(lambda: receiver.got)
        headers, body = receiver.got[0]
        assert verified(headers, body, SECRETS[0])
        assert not verified(headers, body, SECRETS[1])
        alert = json.loads(body)["alert"]
        (listed,) = client.get("/alerts").json()["alerts"]
        assert alert == {name: listed[name] for name in alert}
        assert (alert["monitor"], alert["key"]) == ("many", ["u-1"])

        set_webhook(client, receiver.url, SECRETS)
        raise_alert(client, "u-2")
        until(lambda: len(receiver.got), 2)
        assert all(verified(*receiver.got[1], secret) for secret in SECRETS)
        until(lambda: states(client), {"delivered"})


def test_a_receiver_that_fails_redirects_and_comes_back_gets_every_alert_once(
    tmp_path: Path, receiver: Receiver
) -> None:
    key = new_key(tmp_path / "data", "admin")
    with serving(tmp_path / "data") as service, client_of(service, key) as client:
        set_up(client, receiver.url)
        receiver.answer = 500
        raise_alert(client, "u-1")
        until(lambda: receiver.got)
        until(lambda: last(client, "status"), 500)
        receiver.answer = 302
        until(lambda: last(client, "status"), 302)
        (waiting,) = deliveries(client)
        assert (waiting["state"], waiting["delivered_at"]) == ("pending", None)
        assert waiting["attempts"] >= 2
        receiver.answer = 204
        until(lambda: last(client, "state"), "delivered")
        assert {headers["toll-delivery"] for headers, _ in receiver.got} == {waiting["id"]}


def test_a_webhook_is_tried_out_and_a_delivery_is_sent_again(
    tmp_path: Path, receiver: Receiver
) -> None:
    key = new_key(tmp_path / "data", "admin")
    with serving(tmp_path / "data") as service, client_of(service, key) as client:
        set_up(client, receiver.url)
        path = f"/webhooks/{client.get('/webhooks').json()['webhooks'][0]['id']}"
        tried = client.post(f"{path}/test").json()["sample"]
        assert tried == {"delivered": True, "status": 200, "error": None}
        headers, body = receiver.got[0]
        assert verified(headers, body, SECRETS[0])
        assert json.loads(body)["alert"]["type"] == "sample"
        receiver.answer = 410
        assert client.post(f"{path}/test").json()["sample"]["delivered"] is False
        receiver.answer = 200

        raise_alert(client, "u-1")
        until(lambda: last(client, "state"), "delivered")
        (sent,) = deliveries(client)
        again = client.post(f"{path}/deliveries/{sent['id']}/redeliver").json()["delivery"]
        assert (again["id"], again["state"]) == (sent["id"], "pending")
        until(lambda: len(receiver.got), 4)
        assert receiver.got[2][1] == receiver.got[3][1]
        assert receiver.got[3][0]["toll-delivery"] == sent["id"]
        for missing in ("/webhooks/wh_0/test", f"{path}/deliveries/0-0-0/redeliver"):
            assert client.post(missing).status_code == 404


def test_a_webhook_that_does_not_answer_is_sent_one_sample_at_a_time(
    tmp_path: Path, receiver: Receiver
) -> None:
    key = new_key(tmp_path / "data", "admin")
    with serving(tmp_path / "data") as service, client_of(service, key) as client:
        set_webhook(client, receiver.url, SECRETS[:1])
        path = f"/webhooks/{client.get('/webhooks').json()['webhooks'][0]['id']}/test"
        receiver.hang.set()
        first: list[httpx.Response] = []
        sending = threading.Thread(target=lambda: first.append(client.post(path)))
        sending.start()
        until(lambda: receiver.got)
        second = client.post(path)
        assert second.status_code == 409
        assert second.json()["errors"][0]["type"] == "conflict"
        receiver.hang.clear()
        receiver.freed.set()
        sending.join()
        assert not first[0].json()["sample"]["delivered"]
        assert client.post(path).json()["sample"]["delivered"]
        assert len(receiver.got) == 2


def test_kill_9_of_the_service_and_a_receiver_that_is_down_lose_no_alert(
    tmp_path: Path, port: int
) -> None:
    folder = tmp_path / "data"
    key = new_key(folder, "admin")
    users = [f"u-{number}" for number in range(20)]
    with serving(folder) as service:
        with receiving(port) as hanging, client_of(service, key) as client:
            hanging.hang.set()
            set_up(client, hanging.url)
            for user in users:
                raise_alert(client, user)
        service.kill()
    with receiving(port) as receiver, serving(folder) as service, client_of(service, key) as client:
        until(lambda: states(client), {"delivered"})
        assert len(deliveries(client)) == len(users)
        told = [json.loads(body)["alert"]["key"][0] for _, body in receiver.got]
        assert sorted(told) == sorted(users)
        assert len(client.get("/alerts").json()["alerts"]) == len(users)


def test_only_https_to_public_addresses_is_reached_by_default(
    tmp_path: Path, receiver: Receiver
) -> None:
    folder = tmp_path / "data"
    key = new_key(folder, "admin")
    with serving(folder, "any") as service, client_of(service, key) as client:
        set_up(client, f"http://localhost:{receiver.port}/")
    with serving(folder, "public") as service, client_of(service, key) as client:
        refused = {
            "http://hooks.example.com/": "invalid_format",
            "https://127.0.0.1/": "private_address",
            "https://[::ffff:10.0.0.1]/": "private_address",
            "https://localhost/": "private_address",
            "https://169.254.169.254/latest/": "private_address",
        }
        for url, type_ in refused.items():
            body = {"webhook": {"url": url, "secrets": SECRETS}}
            answer = client.put("/webhooks", json=body)
            assert answer.json()["errors"][0]["type"] == type_, url
        # Set while the setting allowed it, and a name: it is refused as it resolves.
        raise_alert(client, "u-1")
        until(lambda: last(client, "error"), "the host has a private address")
        assert receiver.got == []


def test_what_waits_for_a_webhook_that_is_removed_is_dropped(
    tmp_path: Path, receiver: Receiver
) -> None:
    key = new_key(tmp_path / "data", "admin")
    with serving(tmp_path / "data") as service, client_of(service, key) as client:
        set_up(client, receiver.url)
        receiver.answer = 503
        raise_alert(client, "u-1")
        until(lambda: last(client, "attempts"))
        assert client.delete("/webhooks", params={"url": receiver.url}).status_code == 200
        until(lambda: last(client, "state"), "dropped")
        assert client.get("/webhooks").json() == {"webhooks": []}


RULE = """rule gate
  condition big "A large amount" when amount > 100 then deny
  otherwise allow
"""


def set_notices(client: httpx.Client, url: str, **asked: Any) -> str:
    webhook = {"url": url, "secrets": SECRETS[:1], **asked}
    answer = client.put("/webhooks", json={"webhook": webhook})
    assert answer.status_code == 200, answer.text
    return f"/webhooks/{answer.json()['webhook']['id']}"


def pay(client: httpx.Client, id_: str, amount: float) -> dict[str, Any]:
    payment = {
        "id": id_,
        "type": "purchase",
        "currency": "EUR",
        "amount": amount,
        "method": {"type": "pix"},
        "merchant": {"id": "m-1"},
        "user": {"id": "u-1"},
        "analyze": {"bot_behaviour": True, "rule": {"name": "gate"}},
    }
    answer = client.post("/payments", json={"payment": payment})
    assert answer.status_code == 201, answer.text
    shown: dict[str, Any] = answer.json()["payment"]
    return shown


def told(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(body) for _, body in receiver.got]


def test_each_kind_of_notice_says_what_the_interface_says(
    tmp_path: Path, receiver: Receiver
) -> None:
    key = new_key(tmp_path / "data", "admin")
    with serving(tmp_path / "data") as service, client_of(service, key) as client:
        kinds = ["payment.decided", "payment.updated", "label.created", "rule.published"]
        path = set_notices(client, receiver.url, kinds=kinds)
        published = client.post("/rules/gate/versions?publish=true", content=RULE)
        assert published.status_code == 201, published.text
        shown = pay(client, "p-1", 120)
        updated = client.patch("/payments/p-1", json={"payment": {"status": "blocked"}}).json()
        label = client.put("/payments/p-1/labels/review", json={"label": "fraud"}).json()
        assert client.delete("/payments/p-1/labels/review").status_code == 200
        until(lambda: len(receiver.got), 4)
        sent = {each["kind"]: each for each in told(receiver)}
        assert sent["rule.published"]["rule"] == {"name": "gate", "version": 1}
        assert sent["payment.decided"]["payment"] == shown
        assert sent["payment.updated"]["payment"] == updated["payment"]
        assert sent["label.created"]["label"] == label["label"]
        assert all(verified(*each, SECRETS[0]) for each in receiver.got)
        assert b"u-1" not in b"".join(body for _, body in receiver.got)
        until(lambda: states(client), {"delivered"})
        shown_kinds = [(each["kind"], each["subject"]) for each in deliveries(client)]
        assert shown_kinds == [
            ("label.created", "p-1"),
            ("payment.updated", "p-1"),
            ("payment.decided", "p-1"),
            ("rule.published", "gate"),
        ]
        first = client.get(f"{path}/deliveries", params={"limit": "1"}).json()
        second = client.get(f"{path}/deliveries", params={"cursor": first["cursor"]}).json()
        assert first["deliveries"] + second["deliveries"] == deliveries(client)
        assert client.get("/webhooks/wh_0/deliveries").status_code == 404


def test_a_filter_and_a_pause_hold_what_is_meant(tmp_path: Path, receiver: Receiver) -> None:
    key = new_key(tmp_path / "data", "admin")
    with serving(tmp_path / "data") as service, client_of(service, key) as client:
        published = client.post("/rules/gate/versions?publish=true", content=RULE)
        assert published.status_code == 201, published.text
        only = {"action": ["deny"], "rule": ["gate"], "condition": ["big"]}
        set_notices(client, receiver.url, kinds=["payment.decided"], only=only, paused=True)
        for number, amount in enumerate((5, 500, 7, 700)):
            pay(client, f"p-{number}", amount)
        webhook = lambda: client.get("/webhooks").json()["webhooks"][0]  # noqa: E731
        until(lambda: webhook()["waiting"], 2)
        assert webhook()["only"] == only
        assert receiver.got == []
        resumed = {"webhook": {"url": receiver.url, "paused": False}}
        assert client.put("/webhooks", json=resumed).json()["webhook"]["only"] == only
        until(lambda: len(receiver.got), 2)
        assert [each["payment"]["id"] for each in told(receiver)] == ["p-1", "p-3"]
        until(lambda: webhook()["waiting"], 0)


def test_kill_9_loses_no_decision_and_tells_of_none_from_before_the_webhook(
    tmp_path: Path, port: int
) -> None:
    folder = tmp_path / "data"
    key = new_key(folder, "admin")
    ids = [f"p-{number}" for number in range(40)]
    with serving(folder) as service:
        with receiving(port) as failing, client_of(service, key) as client:
            pay(client, "before", 1)
            failing.answer = 500
            set_notices(client, failing.url, kinds=["payment.decided"])
            for id_ in ids:
                pay(client, id_, 1)
        service.kill()
    with receiving(port) as receiver, serving(folder) as service, client_of(service, key) as client:
        until(lambda: len(deliveries(client)), len(ids))
        until(lambda: states(client), {"delivered"})
        assert sorted(each["payment"]["id"] for each in told(receiver)) == sorted(ids)


def test_a_secret_is_made_rotated_and_gone_and_never_in_clear_on_disk(
    tmp_path: Path, receiver: Receiver
) -> None:
    folder = tmp_path / "data"
    key = new_key(folder, "admin")
    with serving(folder) as service, client_of(service, key) as client:
        made = client.put("/webhooks", json={"webhook": {"url": receiver.url}}).json()["webhook"]
        path, first = f"/webhooks/{made['id']}", made["secret"]
        assert "secret" not in client.get("/webhooks").json()["webhooks"][0]

        def rotate(overlap_seconds: int) -> str:
            asked = {"secret": {"overlap_seconds": overlap_seconds}}
            rotated: str = client.post(f"{path}/secret", json=asked).json()["secret"]["value"]
            return rotated

        second = rotate(3600)
        assert client.post(f"{path}/test").json()["sample"]["delivered"]
        assert all(verified(*receiver.got[0], secret) for secret in (first, second))
        assert client.get("/webhooks").json()["webhooks"][0]["secrets"] == 2
        third = rotate(1)
        until(lambda: client.get("/webhooks").json()["webhooks"][0]["secrets"], 1)
        assert client.post(f"{path}/test").json()["sample"]["delivered"]
        assert not any(verified(*receiver.got[1], secret) for secret in (first, second))
        assert verified(*receiver.got[1], third)
        assert client.delete("/webhooks", params={"url": receiver.url}).status_code == 200
        stored = b"".join(each.read_bytes() for each in folder.iterdir() if each.is_file())
        assert not [each for each in (first, second, third) if each.encode() in stored]
        assert b"sealed" not in stored
