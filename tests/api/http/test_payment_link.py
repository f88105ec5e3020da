"""Payments that nodes send each other on one connection: what becomes of each."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tollkeeper.api.http import forward, payment_link
from tollkeeper.api.http.dispatch import Find, routes_of
from tollkeeper.api.http.forward import Forwarded, Forwarder
from tollkeeper.api.http.frames import (
    ACCEPTED,
    LEAVING,
    NOT_DONE,
    UPGRADE,
    SentFrame,
    decode_head,
    encode_answered,
    encode_sent,
    take_answered,
    take_sent,
    upgrade_request,
)
from tollkeeper.api.http.node_connection import SHARD
from tollkeeper.api.http.payment_link import open_link
from tollkeeper.api.http.plain import CLOSE, PlainHead, plain_head, recognisable
from tollkeeper.api.http.serve import Server, configuration
from tollkeeper.api.http.settings import Settings
from tollkeeper.api.http.taken_payments import PaymentLinks, TakenPayment

pytestmark = pytest.mark.anyio
HEADERS = [(b"host", b"shop"), (b"authorization", b"Bearer k"), (b"content-length", b"2")]
LINE = b"POST /v1/payments HTTP/1.1\r\n"
CROWDED = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
FIND: Find = routes_of([("/v1/payments", "POST"), ("/v1/payments/{id}", "PATCH")])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def head(*more: tuple[bytes, bytes], is_learned: bool = True) -> PlainHead:
    """A client's head, the first one or one that was learned."""
    sent = [*HEADERS, *more]
    found = plain_head(FIND, b"POST", b"/v1/payments", sent)
    assert found is not None
    whole = LINE + b"".join(b"%b: %b\r\n" % each for each in sent) + b"\r\n{}"
    learned = recognisable(found, whole) if is_learned else found
    assert learned is not None
    return learned


@dataclass
class Asked:
    """A client's request, and what it is answered."""

    plain: PlainHead
    whole: bytes = b"{}"
    peer: str | None = "192.0.2.7"
    answers: list[tuple[int, bytes]] = field(default_factory=list)

    def send_on(self, status: int, rest: bytes) -> None:
        self.answers.append((status, rest))


def asked(*more: tuple[bytes, bytes], is_learned: bool = True, body: bytes = b"{}") -> Any:
    return Asked(head(*more, is_learned=is_learned), body)


@dataclass
class Owner:
    """A node that takes payments: `answer` gives the frames that answer those of one reading."""

    answer: Callable[[list[SentFrame]], bytes | None]
    readings: list[list[SentFrame]] = field(default_factory=list)
    shards: list[bytes] = field(default_factory=list)
    ended: list[asyncio.Future[None]] = field(default_factory=list)
    address: tuple[str, int] = ("", 0)
    openings: list[bytes] = field(default_factory=list)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = asyncio.get_running_loop().create_future()
        self.ended.append(ended)
        request = await reader.readuntil(b"\r\n\r\n")
        assert b"%b: %b" % UPGRADE in request
        self.shards.append(request.partition(b"%b: " % SHARD)[2].split(b"\r\n")[0])
        writer.write(self.openings.pop(0) if self.openings else ACCEPTED)
        rest = b""
        while received := await reader.read(1 << 20):
            frames, rest = take_sent(rest + received)
            self.readings.append(frames)
            answer = self.answer(frames)
            if answer is None:
                break
            writer.write(answer)
        writer.close()
        ended.set_result(None)

    @property
    def taken(self) -> list[SentFrame]:
        return [frame for frames in self.readings for frame in frames]


def created(frames: list[SentFrame]) -> bytes:
    return b"".join(encode_answered(each.number, 201, each.body) for each in frames)


@asynccontextmanager
async def owner(
    answer: Callable[[list[SentFrame]], bytes | None], idle_s: float = 30
) -> AsyncIterator[tuple[Owner, Callable[[Any], Any]]]:
    """A node that takes payments, and what sends it one."""
    node, forwarder = Owner(answer), Forwarder(None, idle_s, 3)
    async with await asyncio.start_server(node.accept, "127.0.0.1", 0) as server:
        node.address = server.sockets[0].getsockname()
        address = f"http://127.0.0.1:{node.address[1]}"

        async def send(request: Any) -> Forwarded:
            return await forwarder.forward_payment(address, request)

        try:
            yield node, send
        finally:
            forwarder.close()
            await asyncio.gather(*node.ended)


def test_frames_are_taken_wherever_what_arrives_is_cut() -> None:
    sent = [(1, 1, b"a head", b"{}"), (2, 1, b"", b""), (1 << 40, 0, b"another", b"x" * 300)]
    whole = b"".join(encode_sent(*each) for each in sent)
    answers = [(1, 201, b"made"), (0, NOT_DONE, b""), (2, 503, b"")]
    told = b"".join(encode_answered(*each) for each in answers)
    for cut in range(len(whole) + 1):
        first, rest = take_sent(whole[:cut])
        second, rest = take_sent(rest + whole[cut:])
        assert ([*first, *second], rest) == (sent, b"")
    for cut in range(len(told) + 1):
        some, rest = take_answered(told[:cut])
        more, rest = take_answered(rest + told[cut:])
        assert ([*some, *more], rest) == (answers, b"")


def test_what_claims_to_be_longer_than_any_frame_is_not_waited_for() -> None:
    with pytest.raises(ValueError, match="longer than any"):
        take_sent(b"\xff" * 100)


async def test_payments_of_one_turn_are_read_together_and_a_head_is_sent_once() -> None:
    async with owner(created) as (node, send):
        await send(asked())
        requests = [asked(body=b"%d" % number) for number in range(20)]
        assert set(await asyncio.gather(*map(send, requests))) == {Forwarded.ANSWERED}
    assert [each.answers for each in requests] == [[(201, b"%d" % n)] for n in range(20)]
    assert list(map(len, node.readings)) == [1, 20]
    assert [bool(each.head) for each in node.taken] == [True, *[False] * 20]
    assert node.shards == [b"3"]
    method, path, peer, sent = decode_head(node.taken[0].head)
    assert (method, path, peer) == (b"POST", b"/v1/payments", "192.0.2.7")
    assert sent == HEADERS[:2]


async def test_a_head_that_is_used_once_takes_no_number() -> None:
    async with owner(created) as (node, send):
        for number in range(3):
            await send(asked((b"idempotency-key", b"%d" % number), is_learned=False))
    assert {each.head_number for each in node.taken} == {0}
    assert [decode_head(each.head)[3][-1][1] for each in node.taken] == [b"0", b"1", b"2"]


async def test_a_head_number_is_given_anew_once_all_are_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(payment_link, "MOST_HEADS", 2)
    async with owner(created) as (node, send):
        for agent in (b"a", b"b", b"a", b"c", b"a"):
            await send(asked((b"user-agent", agent)))
    numbers = [(each.head_number, bool(each.head)) for each in node.taken]
    assert numbers == [(1, True), (2, True), (1, False), (1, True), (2, True)]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (lambda frames: encode_answered(frames[0].number, NOT_DONE, b""), Forwarded.NOT_DONE),
        (lambda _frames: LEAVING, Forwarded.NOT_DONE),
        (lambda _frames: None, Forwarded.UNKNOWN),
        (lambda _frames: b"\xff" * 16, Forwarded.UNKNOWN),
    ],
    ids=["it is not the owner", "it leaves in order", "it ends", "it sends no frame"],
)
async def test_what_an_owner_did_is_known_unless_it_ends_without_a_word(
    answer: Any, outcome: Forwarded
) -> None:
    async with owner(answer) as (_, send):
        assert await send(asked()) is outcome


async def test_a_connection_that_ended_is_followed_by_another() -> None:
    answers = [lambda _frames: LEAVING, created]
    async with owner(lambda frames: answers.pop(0)(frames)) as (node, send):
        assert await send(asked()) is Forwarded.NOT_DONE
        assert await send(asked()) is Forwarded.ANSWERED
    assert len(node.shards) == 2


async def test_a_connection_is_used_by_whoever_comes_next_once_it_opens() -> None:
    async with owner(created) as (node, _):
        host, port = node.address
        link = await open_link(f"http://{host}:{port}", None, b"3")
        assert link is not None
        is_usable = link.is_usable(idle_s=30)
        link.close()
    assert is_usable


async def test_an_owner_that_takes_a_connection_and_leaves_at_once_has_done_nothing() -> None:
    async with owner(lambda _frames: None) as (node, send):
        node.openings = [ACCEPTED + LEAVING]
        assert await send(asked()) is Forwarded.NOT_DONE


async def test_nothing_waits_for_an_answer_on_a_connection_that_has_ended() -> None:
    async with owner(created) as (node, send):
        assert await send(asked()) is Forwarded.ANSWERED
        host, port = node.address
        link = await open_link(f"http://{host}:{port}", None, b"3")
        assert link is not None
        link.close()
        assert await link.ask(asked()) == (NOT_DONE, b"")


async def test_a_connection_that_was_idle_for_long_is_not_trusted() -> None:
    async with owner(created, idle_s=0) as (node, send):
        for _ in range(2):
            assert await send(asked()) is Forwarded.ANSWERED
    assert len(node.shards) == 2


async def test_a_former_owner_answers_for_a_while_and_gets_nothing_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forward, "GRACE_S", 0.0)
    node, forwarder = Owner(lambda _frames: b""), Forwarder(None, 30)
    async with await asyncio.start_server(node.accept, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        sending = asyncio.create_task(forwarder.forward_payment(address, asked()))
        while not node.readings:
            await asyncio.sleep(0.001)
        forwarder.leave(address)
        assert await sending is Forwarded.UNKNOWN
        await asyncio.gather(*node.ended)


async def test_a_node_that_cannot_be_reached_has_certainly_done_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
    forwarder = Forwarder(None, 30)
    assert await forwarder.forward_payment(address, asked()) is Forwarded.NOT_DONE


async def test_a_node_with_too_many_connections_takes_payments_again_later() -> None:
    async with owner(created) as (node, send):
        node.openings = [CROWDED]
        assert await send(asked()) is Forwarded.NOT_DONE
        assert await send(asked()) is Forwarded.ANSWERED
    assert len(node.shards) == 2


async def answer_waiting(payment: TakenPayment, waits: asyncio.Future[None] | None) -> None:
    if waits is not None:
        await waits
    payment.send(201, [(b"x-shard", b"1"), CLOSE], payment.whole)


@asynccontextmanager
async def listener(
    waits: asyncio.Future[None] | None = None, idle_s: float = 30
) -> AsyncIterator[tuple[Server, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A node's own listener, and a connection that it has given to payments."""

    async def no_app(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError

    links = PaymentLinks(FIND, lambda _shard: lambda taken: answer_waiting(taken, waits), idle_s)
    config = configuration(no_app, Settings(), links=links)
    config.lifespan = "off"
    server = Server(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started:
            await asyncio.sleep(0.001)
        reader, writer = await asyncio.open_connection(*bound.getsockname())
        writer.write(upgrade_request(b"1"))
        assert await reader.readexactly(len(ACCEPTED)) == ACCEPTED
        try:
            yield server, reader, writer
        finally:
            writer.close()
            server.should_exit = True
            await serving


def told_head(method: bytes = b"POST", path: bytes = b"/v1/payments") -> bytes:
    return b"%b %b 192.0.2.7\r\nhost: shop\r\n" % (method, path)


async def answers_of(reader: asyncio.StreamReader) -> list[tuple[int, int, bytes]]:
    """All until the connection ends."""
    frames, rest = take_answered(await reader.read())
    assert not rest
    return [*map(tuple, frames)]  # type: ignore[misc]


async def test_an_owner_takes_many_payments_and_leaves_in_order() -> None:
    async with listener() as (server, reader, writer):
        writer.write(encode_sent(1, 5, told_head(), b"one") + encode_sent(2, 5, b"", b"two"))
        writer.write(encode_sent(3, 0, told_head(b"PATCH", b"/v1/payments/p"), b"three"))
        expected = [(1, b"one"), (2, b"two"), (3, b"three")]
        size = sum(len(encode_answered(0, 0, answered(body))) for _, body in expected)
        frames, _ = take_answered(await reader.readexactly(size))
        assert frames == [(number, 201, answered(body)) for number, body in expected]
        server.should_exit = True
        assert await answers_of(reader) == [(0, NOT_DONE, b"")]


def answered(body: bytes) -> bytes:
    """An answer behind its first line, without what closes the client's connection."""
    return b"x-shard: 1\r\n\r\n" + body


async def test_an_owner_that_leaves_answers_what_it_has_taken_and_takes_no_more() -> None:
    waits = asyncio.get_running_loop().create_future()
    async with listener(waits) as (server, reader, writer):
        writer.write(encode_sent(1, 1, told_head(), b"taken"))
        while not server.server_state.tasks:
            await asyncio.sleep(0.001)
        for each in list(server.server_state.connections):
            each.shutdown()
        writer.write(encode_sent(2, 1, b"", b"too late"))
        await asyncio.sleep(0.01)
        waits.set_result(None)
        assert await answers_of(reader) == [(1, 201, answered(b"taken")), (0, NOT_DONE, b"")]


async def test_an_owner_closes_a_connection_on_which_nothing_comes() -> None:
    async with listener(idle_s=0.01) as (_, reader, _):
        assert await answers_of(reader) == [(0, NOT_DONE, b"")]


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff" * 100,
        encode_sent(1, 1, b"", b"{}"),
        encode_sent(1, 1, told_head(b"DELETE"), b"{}"),
        encode_sent(1, 1, told_head(b"POST", b"/v1/lists"), b"{}"),
        encode_sent(1, 1, b"no head at all", b"{}"),
    ],
    ids=["no frame", "an unknown head", "no method", "no payment", "no head"],
)
async def test_an_owner_ends_a_connection_that_brings_anything_else(sent: bytes) -> None:
    async with listener() as (_, reader, writer):
        writer.write(sent)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
