"""What becomes of a request that is sent on to another node: answered, certainly not done, or unknown."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tollkeeper.api.http import forward, node_connection
from tollkeeper.api.http.errors import Problem
from tollkeeper.api.http.forward import (
    CLIENT,
    Forwarded,
    Forwarder,
    HeldBody,
    Hold,
    node_context,
    of_its_client,
    outgoing,
)
from tollkeeper.api.http.node_connection import Broken, NodeConnection, connect_to_node

pytestmark = pytest.mark.anyio
ANSWER = b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\nconnection: close\r\nx-more: 1\r\n\r\n{}"
NOT_OWNER = b"HTTP/1.1 503 Unavailable\r\ntoll-not-owner: 1\r\ncontent-length: 0\r\n\r\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Peer:
    """Another node, which answers what it is told to: nothing, where that is empty."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer
        self.received = asyncio.Event()
        self.request = b""
        self.writers: list[asyncio.StreamWriter] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or b"0")
        self.request = head + await reader.readexactly(length)
        self.received.set()
        if self.answer is not None:
            writer.write(self.answer)
            writer.close()


@asynccontextmanager
async def peer(answer: bytes | None, context: Any = None) -> AsyncIterator[tuple[Peer, str]]:
    found = Peer(answer)
    server = await asyncio.start_server(found.accept, "127.0.0.1", 0, ssl=context)
    try:
        yield found, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for writer in found.writers:
            writer.close()
        server.close()


HOST = ((b"host", b"shop"),)


def scope(
    method: str = "POST",
    path: str = "/v1/payments",
    *headers: tuple[bytes, bytes],
    version: str = "1.1",
    host: tuple[tuple[bytes, bytes], ...] = HOST,
) -> Any:
    found = [*host, (b"connection", b"keep-alive"), *headers]
    return {
        "method": method,
        "http_version": version,
        "raw_path": path.encode(),
        "query_string": b"a=1",
        "client": ("192.0.2.7", 1),
        "headers": found,
    }


async def sent_on(
    address: str,
    certificates: Path | None = None,
    path: str = "/v1/payments",
    headers: tuple[tuple[bytes, bytes], ...] = (),
    ceased: asyncio.Event | None = None,
    **asked: Any,
) -> tuple[Forwarded, list[dict[str, Any]]]:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    body_of_two = [{"type": "http.request", "body": b"{}", "more_body": False}]

    async def receive() -> Any:
        if body_of_two:
            return body_of_two.pop()
        return await asyncio.get_running_loop().create_future()

    scheme = "http" if certificates is None else "https"
    async with forwarding(certificates) as forwarder, Hold().body(receive) as body:
        assert body is not None
        with_body = scope("POST", path, (b"content-length", b"2"), *headers, **asked)
        node = f"{scheme}://{address}"
        sending = asyncio.create_task(forwarder.forward(node, outgoing(with_body, body), send))
        if ceased is not None:
            await ceased.wait()
            forwarder.leave(node)
        outcome = await sending
    return outcome, sent


@asynccontextmanager
async def forwarding(certificates: Path | None = None) -> AsyncIterator[Forwarder]:
    forwarder = Forwarder(certificates, 30)
    try:
        yield forwarder
    finally:
        forwarder.close()
        # A connection ends when the loop turns.
        await asyncio.sleep(0)


@pytest.mark.parametrize("start", ["*@{}/x", "*", "/v1/payments/a;b", "//{}/x", "/@{}"])
async def test_a_target_reaches_the_owner_as_it_is_and_nobody_else(start: str) -> None:
    async with peer(ANSWER) as (other, elsewhere), peer(ANSWER) as (node, address):
        path = start.format(elsewhere)
        outcome, _ = await sent_on(address, path=path)
        assert not other.received.is_set()
    assert outcome is Forwarded.ANSWERED
    assert node.request.startswith(f"POST {path}?a=1 HTTP/1.1\r\n".encode())


async def test_nodes_speak_one_version_of_http_whichever_a_client_speaks() -> None:
    async with peer(ANSWER) as (node, address):
        await sent_on(address, version="1.0", host=())
    assert node.request.startswith(b"POST /v1/payments?a=1 HTTP/1.1\r\n")
    assert node.request.count(b"\r\nhost: ") == 1


async def test_the_owner_knows_whose_request_it_is_and_believes_no_client_that_says_so() -> None:
    async with peer(ANSWER) as (node, address):
        await sent_on(address, headers=((CLIENT, b"198.51.100.9"),))
    assert node.request.lower().count(b"toll-client: ") == 1
    assert b"toll-client: 192.0.2.7\r\n" in node.request.lower()
    assert of_its_client(scope("GET", "/", (CLIENT, b"192.0.2.7")))["client"] == ("192.0.2.7", 0)
    assert of_its_client(scope("GET", "/", (CLIENT, b"nobody")))["client"] == ("192.0.2.7", 1)


@asynccontextmanager
async def endless(gone: asyncio.Event) -> AsyncIterator[str]:
    """A node whose answer begins and does not end; `gone` once it is left."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        await reader.read()
        writer.close()
        gone.set()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("what", ["the client leaves", "the owner ends"])
async def test_an_answer_that_has_begun_holds_nothing_for_ever(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "GRACE_S", 0.0)
    gone, begun = asyncio.Event(), asyncio.Event()

    async def send(message: Any) -> None:
        if message.get("body"):
            begun.set()
            if what == "the owner ends":
                forwarder.leave(address)

    async def leave() -> Any:
        await (begun if what == "the client leaves" else asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async with endless(gone) as address, forwarding() as forwarder:
        body = HeldBody(b"", leave, is_whole=True)
        asking = forwarder.forward(address, outgoing(scope("GET"), body), send)
        if what == "the client leaves":
            assert await asking is Forwarded.ANSWERED
        else:
            with pytest.raises(Broken):
                await asking
        await gone.wait()


async def test_a_head_that_the_owner_refuses_reaches_it_as_it_is() -> None:
    async with peer(ANSWER) as (node, address):
        await sent_on(address, headers=((b"host", b"other"),))
    assert node.request.count(b"host: ") == 2


@dataclass
class Steady:
    """A node that answers one request after the other, each with its body; `connections` are those
    that were made to it, `ended` their ends."""

    connections: list[asyncio.StreamWriter] = field(default_factory=list)
    ended: list[asyncio.Future[None]] = field(default_factory=list)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        ended = asyncio.get_running_loop().create_future()
        self.ended.append(ended)
        await self.answer(reader, writer)
        writer.close()
        ended.set_result(None)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await head_of(reader):
            answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            body = await body_of(reader, head)
            if not head.startswith(b"HEAD"):
                answer += b"%x\r\n%b\r\n" % (len(body), body) if body else b""
                answer += b"0\r\n\r\n"
            writer.write(answer)
            await writer.drain()


async def head_of(reader: asyncio.StreamReader) -> bytes:
    """Empty once the other side has ended."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


async def body_of(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if b"transfer-encoding: chunked" not in head:
        length = head.partition(b"content-length: ")[2].split(b"\r\n")[0]
        return await reader.readexactly(int(length or b"0"))
    found = b""
    while size := int(await reader.readline(), 16):
        found += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return found


@asynccontextmanager
async def steady() -> AsyncIterator[tuple[Steady, str, Forwarder]]:
    node = Steady()
    async with await asyncio.start_server(node.accept, "127.0.0.1", 0) as server:
        async with forwarding() as forwarder:
            yield node, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", forwarder
        await asyncio.gather(*node.ended)


async def passed_back(
    forwarder: Forwarder, address: str, parts: list[bytes], method: str = "POST"
) -> bytes:
    """The answer's body to a request whose body comes in parts."""
    got: list[bytes] = []

    async def receive() -> Any:
        if not rest:
            return await asyncio.get_running_loop().create_future()
        return {"type": "http.request", "body": rest.pop(0), "more_body": bool(rest)}

    async def send(message: Any) -> None:
        await asyncio.sleep(0)
        got.append(message.get("body", b""))

    first, *rest = parts
    body = HeldBody(first, receive, is_whole=not rest)
    going = outgoing(scope(method), body)
    assert await forwarder.forward(address, going, send) is Forwarded.ANSWERED
    return b"".join(got)


async def test_connections_stay_and_are_no_more_than_requests_at_once() -> None:
    async with steady() as (node, address, forwarder):
        for number in range(5):
            body = b"%d" % number
            assert await passed_back(forwarder, address, [body]) == body
        assert await passed_back(forwarder, address, [b""], "GET") == b""
        assert len(node.connections) == 1
        at_once = [passed_back(forwarder, address, [b"%d" % number]) for number in range(8)]
        assert await asyncio.gather(*at_once) == [b"%d" % number for number in range(8)]
        assert len(node.connections) == 8
        for writer in node.connections:
            writer.transport.abort()
        await asyncio.sleep(0.01)
        assert await passed_back(forwarder, address, [b"again"]) == b"again"


async def test_an_answer_without_a_body_is_not_waited_for() -> None:
    async with steady() as (_, address, forwarder):
        assert await passed_back(forwarder, address, [b""], "HEAD") == b""
        assert await passed_back(forwarder, address, [b"next"]) == b"next"


async def test_large_bodies_are_passed_on_as_they_arrive_in_both_directions() -> None:
    parts = [bytes([number]) * 100_000 for number in range(30)]
    async with steady() as (_, address, forwarder):
        assert await passed_back(forwarder, address, parts) == b"".join(parts)
        assert await passed_back(forwarder, address, [b"next"]) == b"next"


async def test_what_is_answered_is_passed_back_as_it_is() -> None:
    async with peer(ANSWER) as (node, address):
        outcome, sent = await sent_on(address)
    assert outcome is Forwarded.ANSWERED
    assert node.request.startswith(b"POST /v1/payments?a=1 HTTP/1.1\r\n")
    assert node.request.endswith(b"\r\n\r\n{}")
    assert (sent[0]["status"], sent[0]["headers"]) == (
        201,
        [(b"content-length", b"2"), (b"x-more", b"1")],
    )
    assert b"".join(each["body"] for each in sent[1:]) == b"{}"


async def test_what_no_owner_has_had_is_certainly_not_done() -> None:
    async with peer(NOT_OWNER) as (_, address):
        assert await sent_on(address) == (Forwarded.NOT_DONE, [])
    assert await sent_on(address) == (Forwarded.NOT_DONE, [])


async def test_of_what_an_owner_had_and_did_not_answer_nobody_knows() -> None:
    async with peer(b"") as (_, address):
        assert await sent_on(address) == (Forwarded.UNKNOWN, [])


async def test_an_owner_that_is_no_more_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "GRACE_S", 0.0)
    ceased = asyncio.Event()
    async with peer(None) as (node, address):
        sending = asyncio.create_task(sent_on(address, ceased=ceased))
        await node.received.wait()
        assert not sending.done()
        ceased.set()
        assert await sending == (Forwarded.UNKNOWN, [])


async def test_a_machine_that_takes_nothing_any_more_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(node_connection._END_IF_SILENT, socket.TCP_USER_TIMEOUT, 100)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        connection = await connect_to_node(NodeConnection, address, None)
        with pytest.raises(Broken):
            await asyncio.wait_for(connection.ask("POST", b"", bytes(1 << 25)), 60)


def make_certificates(folder: Path) -> None:
    """An authority, and a node that it has signed for 127.0.0.1."""
    folder.mkdir()
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in ("ca", "node")]
    now = datetime.now(UTC)
    for key, name, file, is_authority in (
        (keys[0], names[0], "authority.pem", True),
        (keys[1], names[1], "certificate.pem", False),
    ):
        host = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        signer = keys[0].public_key()
        made = (
            x509.CertificateBuilder(names[0], name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(1))
            .not_valid_after(now + timedelta(1))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(host, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), False)
            .sign(keys[0], hashes.SHA256())
        )
        (folder / file).write_bytes(made.public_bytes(Encoding.PEM))
    kept = keys[1].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(kept)


async def test_nodes_know_each_other_by_their_certificates(tmp_path: Path) -> None:
    ours, others = tmp_path / "ours", tmp_path / "others"
    make_certificates(ours)
    make_certificates(others)
    async with peer(ANSWER, node_context(ours, server=True)) as (_, address):
        assert (await sent_on(address, certificates=ours))[0] is Forwarded.ANSWERED
        for stranger in (others, None):
            outcome, _ = await sent_on(address, certificates=stranger)
            assert outcome is not Forwarded.ANSWERED


async def test_bodies_that_wait_to_be_sent_on_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forward, "HELD_TOGETHER", 5)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{ }", "more_body": False}

    held = Hold()
    async with held.body(receive):
        with pytest.raises(Problem) as refused:
            async with held.body(receive):
                pass
        assert refused.value.status == 503
    async with held.body(receive) as body:
        assert body is not None
        assert (body.held, body.is_whole, held.size) == (b"{ }", True, 3)
    assert held.size == 0


def test_only_what_does_nothing_more_when_it_is_done_twice_is_sent_twice() -> None:
    key = (b"idempotency-key", b"k")

    def may_repeat(*asked: Any, is_whole: bool = True) -> bool:
        body = HeldBody(b"{}", _unread, is_whole=is_whole)
        return outgoing(scope(*asked), body).may_repeat()

    assert may_repeat("GET")
    assert may_repeat("POST", "/v1/payments", key)
    assert not may_repeat("POST", "/v1/payments", key, is_whole=False)
    assert not may_repeat("POST", "/v1/payments")
    assert not may_repeat("PATCH", "/v1/payments/p", key)


async def _unread() -> Any:
    raise AssertionError
