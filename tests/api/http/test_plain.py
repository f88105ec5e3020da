"""A plain request, answered past ASGI, is answered as the ordinary way answers it: byte for byte."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.types import ASGIApp
from structlog.testing import capture_logs

from tollkeeper.api.http import payments
from tollkeeper.api.http import plain as plain_module
from tollkeeper.api.http.app import payment_links, plain_payments, public_app, service_of
from tollkeeper.api.http.forward import Forwarder
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.plain import AnswerPlain, PlainPayments, answering
from tollkeeper.api.http.serve import Server, configuration
from tollkeeper.api.http.settings import Settings
from tollkeeper.api.http.shard_requests import ShardRequests
from tollkeeper.api.http.shards import Shards
from tollkeeper.api.http.taken_payments import PaymentLinks
from tollkeeper.engine.publish.accounts import CreateAccount, CreateKey, SuspendAccount
from tollkeeper.engine.publish.verbs import Verb
from tollkeeper.tests.api.http.service import Service, open_service, payment
from tollkeeper.tests.service.process import PATIENCE_S

LIMITS = Settings(key_reports=10**6, account_reports=10**6, body_bytes=4096, head_bytes=4096)
RULE = """rule checkout
  let cards = distinct(payments.method.card.fingerprint by user.id over 24h)
  condition many when count(payments by user.id over 1h) > 3 then challenge
  condition odd when cards > 9 or amount > 1000 then deny
"""
ALONE, OWNER, OTHER = "a service alone", "the owner", "another node"
LEFT = {b"date", b"ratelimit-remaining", b"ratelimit-reset"}
"""Headers whose values are those of a moment."""


@dataclass
class Way:
    """A service that listens, `keys` of its accounts by what they are good for."""

    port: int
    keys: dict[str, str]
    plain: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Sent:
    """A request as it goes over the wire, but for the key; `cut` is where it is sent in two parts."""

    method: str
    target: str
    key: str | None
    headers: tuple[tuple[str, str], ...]
    body: bytes
    version: str
    framing: str
    cut: int | None

    def encoded(self, keys: dict[str, str]) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/{self.version}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.key is not None:
            lines.append(f"Authorization: {keys[self.key]}")
        body = self.body
        if self.framing == "chunked":
            lines.append("Transfer-Encoding: chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        elif self.framing == "length":
            lines.append(f"Content-Length: {len(body)}")
        else:
            body = b""
        return "\r\n".join([*lines, "", ""]).encode() + body


@contextmanager
def both_ways(folder: Path, place: str) -> Iterator[tuple[Way, Way]]:
    """The same service twice, each on a folder of its own: one that knows plain requests, one that
    does not. `place` is where requests come to: a service alone, or a node of two."""
    begun: list[tuple[Way, Way]] = []
    ready, loop_of = threading.Event(), []

    async def serve() -> None:
        ended = asyncio.Event()
        loop_of.append((asyncio.get_running_loop(), ended))
        async with AsyncExitStack() as stack:
            plain = await _serve(stack, folder / "plain", place, is_plain=True)
            ordinary = await _serve(stack, folder / "ordinary", place, is_plain=False)
            begun.append((plain, ordinary))
            ready.set()
            await ended.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve())
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait()
    try:
        yield begun[0]
    finally:
        for loop, ended in loop_of:
            loop.call_soon_threadsafe(ended.set)
        thread.join()


async def _serve(stack: AsyncExitStack, folder: Path, place: str, *, is_plain: bool) -> Way:
    service = await stack.enter_async_context(open_service(folder))
    made = await service.client.post("/v1/rules/checkout/versions?publish=true", content=RULE)
    assert made.status_code == 201, made.text
    way = Way(0, await _keys(service))
    shared = service_of(service.engine, LIMITS, jobs=service.jobs)

    async def listen(app: ASGIApp, payments: PlainPayments) -> int:
        return await _listen(stack, app, payments if is_plain else None)

    def noted(answer: AnswerPlain) -> PlainPayments:
        payments = plain_payments(answer)
        payments.find = _noting(payments.find, way.plain)  # type: ignore[method-assign]
        return payments

    app, answer = public_app(shared), answering(shared)
    if place == ALONE:
        way.port = await listen(app, noted(answer))
        return way
    owner, other = (ShardRequests(Forwarder(None, 30), Figures()) for _ in range(2))
    for node in (owner, other):
        node.serve(service.engine, app, answer)
    owner.decides = True
    shards = Shards([owner])
    if place == OWNER:
        way.port = await listen(shards.public, noted(shards.plain))
        return way
    links = payment_links(shards.taking, LIMITS) if is_plain else None
    between = await _listen(stack, shards.from_nodes, links=links)
    other.learn("owner", f"http://127.0.0.1:{between}")
    passing_on = Shards([other])
    way.port = await listen(passing_on.public, noted(passing_on.plain))
    return way


async def _listen(
    stack: AsyncExitStack,
    app: ASGIApp,
    payments: PlainPayments | None = None,
    links: PaymentLinks | None = None,
) -> int:
    config = configuration(app, LIMITS, payments, links)
    config.lifespan = "off"
    server = Server(config)
    bound = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    serving = asyncio.create_task(server.serve(sockets=[bound]))

    async def stop() -> None:
        server.should_exit = True
        await serving

    stack.push_async_callback(stop)
    while not server.started:
        await asyncio.sleep(0.01)
    return int(bound.getsockname()[1])


def _noting(find: Callable[..., Any], found: list[str]) -> Callable[..., Any]:
    """Notes what is found to be plain, so that a test can tell which way was gone."""

    def noting(method: bytes, *rest: Any) -> Any:
        plain = find(method, *rest)
        if plain is not None:
            found.append(method.decode())
        return plain

    return noting


async def _keys(service: Service) -> dict[str, str]:
    async def perform(verb: Verb) -> Any:
        return await verb.perform(service.engine, "test", lambda _share: None)

    await perform(CreateAccount("closed"))
    closed = await service.key("closed", "payments")
    await perform(SuspendAccount("closed"))
    test = (await perform(CreateKey("shop", ("payments",), test=True))).key
    good = await service.key("shop", "payments")
    return {
        "good": f"Bearer {good}",
        "good, in another case": f"bearer  {good}",
        "of a test account": f"Bearer {test}",
        "of a suspended account": f"Bearer {closed}",
        "without the scope": f"Bearer {await service.key('shop', 'payments:read')}",
        "wrong": "Bearer toll_wrong",
        "no bearer": f"Basic {good}",
        "too long": "Bearer " + "x" * 300,
        "twice": f"Bearer {good}\r\nAuthorization: Bearer {good}",
    }


@pytest.fixture(scope="module", params=[ALONE, OWNER, OTHER])
def ways(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Way, Way]]:
    with both_ways(tmp_path_factory.mktemp("ways"), request.param) as both:
        yield both


def talk(way: Way, requests: list[Sent]) -> list[Any]:
    """What the requests of one connection are answered, then what is logged of them."""
    told: list[Any] = []
    with (
        capture_logs() as lines,
        socket.create_connection(("127.0.0.1", way.port), timeout=PATIENCE_S) as connection,
    ):
        for request in requests:
            whole = request.encoded(way.keys)
            cut = len(whole) if request.cut is None else min(request.cut, len(whole))
            with suppress(OSError):
                connection.sendall(whole[:cut])
                if cut < len(whole):
                    time.sleep(0.005)
                    connection.sendall(whole[cut:])
            answers = list(_answers(connection, request.method))
            told += answers
            if not answers or b"connection: close" in answers[-1][0]:
                told.append(connection.recv(1))
                break
        # An answer is on its way before its line is.
        answered = sum(isinstance(each, tuple) and b" 100 " not in each[0][:14] for each in told)
        deadline = time.monotonic() + PATIENCE_S
        while sum(line["event"] in ("request", "refused") for line in lines) < answered:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    return [*map(_lasting_answer, told), *map(_lasting_line, lines)]


def _answers(connection: socket.socket, method: str) -> Iterator[tuple[bytes, bytes]]:
    """The answer to one request, and those that go before it to say that more may be sent."""
    told = b""
    while True:
        while b"\r\n\r\n" not in told:
            received = connection.recv(65536)
            if not received:
                return
            told += received
        head, _, told = told.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        size = 0 if length is None or method == "HEAD" else int(length[1])
        while len(told) < size:
            told += connection.recv(65536)
        yield head, told[:size]
        told = told[size:]
        if b" 100 " not in head[:14]:
            return


def _lasting_answer(answer: Any) -> Any:
    """Without what is another each time."""
    if isinstance(answer, bytes):
        return answer
    head, body = answer
    lines = [line.partition(b": ") for line in head.split(b"\r\n")]
    shown = [name if name in LEFT else (name, _nameless(value)) for name, _, value in lines]
    return shown, _nameless(body)


def _nameless(text: bytes) -> bytes:
    """Ids that the service makes are random."""
    text = re.sub(rb"\b[0-9a-f]{24}\b", b"REQUEST", text)
    return re.sub(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", b"PAYMENT", text)


def _lasting_line(line: Any) -> Any:
    shown = {name: value for name, value in line.items() if name not in ("ms", "key")}
    return json.loads(_nameless(json.dumps(shown, sort_keys=True).encode()))


def alike(ways: tuple[Way, Way], requests: list[Sent]) -> list[Any]:
    plain, ordinary = (talk(way, requests) for way in ways)
    assert plain == ordinary
    return plain


BODIES: list[bytes] = [
    json.dumps(each).encode()
    for each in (
        payment(),
        payment(id="p-1"),
        payment(id="p-2", analyze={"bot_behaviour": True, "rule": {"name": "checkout"}}),
        payment(id="p-3", amount=5000, analyze={"rule": {"name": "checkout"}}),
        payment(analyze={"bot_behaviour": True, "rule": {"name": "unknown"}}),
        payment(type="gift", currency="XXX"),
        payment(device={"ip_address": "10.0.0.1"}, merchant={}),
        payment(metadata={"toll_test": {"status": 503}}),
        payment(metadata={"toll_test": {"action": "deny", "delay_ms": 5}}),
        payment(metadata={"note": "4111 1111 1111 1111"}),
        payment(metadata={"long": "x" * 5000}),
        {"payment": {"status": "failed"}},
        {"payment": {"status": "succeeded"}},
    )
] + [b"", b"{", b"null", b'{"payment": 1, "payment": 2}', b'{"payment": "\xff"}', b"x" * 5000]
HEADERS = [
    ("Content-Type", "application/json"),
    ("Content-Type", "application/json; charset=utf-8"),
    ("Content-Type", "text/plain"),
    ("Content-Encoding", "identity"),
    ("Content-Encoding", "gzip"),
    ("Connection", "keep-alive"),
    ("Connection", "close"),
    ("Connection", "Upgrade"),
    ("Upgrade", "h2c"),
    ("Expect", "100-continue"),
    ("Expect", "a miracle"),
    ("Idempotency-Key", "one"),
    ("Idempotency-Key", "two"),
    ("Idempotency-Key", ""),
    ("X-Request-Id", "mine"),
    ("X-Request-Id", "not a name"),
    ("Host", "another"),
    ("X-Filler", "f" * 5000),
]
TARGETS = [
    "/v1/payments",
    "/v1/payments?x=1",
    "/v1/payments/",
    "/v1/payments/p-1",
    "/v1/payments/p%2D2",
    "/v1/payments/p%ff",
    "/v1/payments/nobody",
    "/v1/payments/count",
    "/v1/payments/c%6funt",
    "/v1/payments/p-1/explanation",
    "http://shop/v1/payments",
    "/v1//payments",
    "/nowhere",
]


KEYS = [
    "good, in another case",
    "of a test account",
    "of a suspended account",
    "without the scope",
    "wrong",
    "no bearer",
    "too long",
    "twice",
]


def _mostly(usual: Any, others: list[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(*[st.just(usual)] * 3, st.sampled_from(others))


# Made once: Hypothesis looks through a strategy that is new, which takes longer than to draw from it.
METHODS = ["POST", "PATCH", "PUT", "GET", "HEAD", "OPTIONS"]
SHOPS_OWN = st.sampled_from([("POST", "/v1/payments")] * 2 + [("PATCH", "/v1/payments/p-1")])
METHODS_TO = {each: _mostly(each, METHODS) for each in ("POST", "PATCH")}
TARGETS_TO = {each: _mostly(each, TARGETS) for each in ("/v1/payments", "/v1/payments/p-1")}
MORE_HEADERS = st.lists(st.sampled_from(HEADERS), max_size=3)
WITHOUT_HOST = _mostly(0, [0, 1])
WHOSE_KEY = _mostly("good", [*KEYS, None])
WHICH_BODY = st.sampled_from(BODIES)
VERSIONS = _mostly("1.1", ["1.1", "1.0"])
FRAMINGS = _mostly("length", ["length", "chunked", "none"])
CUTS = _mostly(None, [10, 120, 200, 700])


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    """Mostly what a shop sends; each part of it may be odd."""
    method, target = draw(SHOPS_OWN)
    headers = [("Host", "shop"), *draw(MORE_HEADERS)]
    return Sent(
        method=draw(METHODS_TO[method]),
        target=draw(TARGETS_TO[target]),
        key=draw(WHOSE_KEY),
        headers=tuple(headers[draw(WITHOUT_HOST) :]),
        body=draw(WHICH_BODY),
        version=draw(VERSIONS),
        framing=draw(FRAMINGS),
        cut=draw(CUTS),
    )


@settings(max_examples=150)
@given(sent=st.lists(requests(), min_size=1, max_size=4))
def test_whatever_is_sent_both_ways_answer_alike(ways: tuple[Way, Way], sent: list[Sent]) -> None:
    alike(ways, sent)


def usual(body: bytes, **changed: Any) -> Sent:
    sent: dict[str, Any] = {
        "method": "POST",
        "target": "/v1/payments",
        "key": "good",
        "headers": (("Host", "shop"), ("Content-Type", "application/json")),
        "body": body,
        "version": "1.1",
        "framing": "length",
        "cut": None,
    }
    return Sent(**(sent | changed))


def test_the_requests_of_a_shop_are_plain_and_answered_alike(ways: tuple[Way, Way]) -> None:
    plain, ordinary = ways
    plain.plain.clear()
    ended = usual(b'{"payment": {"status": "failed"}}', method="PATCH", target="/v1/payments/s-1")
    first, *others, last = alike(
        ways,
        [
            usual(json.dumps(payment(id="s-1")).encode()),
            usual(json.dumps(payment(id="s-2", metadata={"a": "b"})).encode()),
            usual(json.dumps(payment(id="s-2")).encode()),
            ended,
        ],
    )
    assert first[0][0] == (b"HTTP/1.1 201 Created", b"")
    assert [each[0][0][0][9:12] for each in others[:3]] == [b"201", b"422", b"200"]
    assert (last["event"], last["became"]) == ("request", "failed")
    # A head that comes again, whatever its body's length, isn't taken apart again.
    assert plain.plain == ["POST", "PATCH"]
    assert ordinary.plain == []


def test_heads_of_clients_that_share_connections_are_recognised_on_each(
    ways: tuple[Way, Way],
) -> None:
    plain, _ = ways

    def ask(*clients: str) -> list[str]:
        plain.plain.clear()
        body = json.dumps(payment()).encode()
        alike(
            ways,
            [usual(body + b" " * n, headers=(("Host", each),)) for n, each in enumerate(clients)],
        )
        return list(plain.plain)

    assert ask("one", "two", "one", "two", "two") == ["POST", "POST"]
    # The first request of a connection is always taken apart.
    assert ask("one", "two", "one") == ["POST"]


def test_a_client_whose_heads_all_differ_teaches_few_of_them(
    ways: tuple[Way, Way], monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[bytes] = []
    monkeypatch.setattr(PlainPayments, "learn", lambda _self, _plain, sent: learned.append(sent))
    body = json.dumps(payment()).encode()
    alike(ways, [usual(body, headers=(("Host", f"{n}"),)) for n in range(12)])
    assert len(learned) == 8


def test_a_listener_learns_a_bounded_number_of_heads_none_of_them_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plain_module, "_MOST_LEARNED", 3)
    payments = plain_payments(lambda _request: None)  # type: ignore[arg-type,return-value]

    def ask(host: str) -> bool:
        """Whether the head was learned already."""
        request = b"POST /v1/payments HTTP/1.1\r\nhost: %b\r\ncontent-length: 2\r\n\r\n{}"
        whole = request % host.encode()
        if (learned := payments.find_learned(whole)) is not None:
            assert learned[1] == b"{}"
            return True
        headers = [(b"host", host.encode()), (b"content-length", b"2")]
        found = payments.find(b"POST", b"/v1/payments", headers)
        assert found is not None
        payments.learn(found, whole)
        return False

    assert [ask(host) for host in "abcabc"] == [False] * 3 + [True] * 3
    assert [ask(host) for host in "dda"] == [False, True, False]
    assert [ask("x" * 2048) for _ in range(2)] == [False, False]


@pytest.mark.parametrize(
    "other",
    [
        b"POST /v1/payments HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n{}",
        b"POST /v1/payments HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}{}",
        b"POST /v1/payments HTTP/1.1\r\nhost: a\r\ncontent-length: 2x\r\n\r\n{}",
        b"POST /v1/payments HTTP/1.1\r\nhost: a\r\ncontent-length: -2\r\n\r\n{}",
        b"POST /v1/payments HTTP/1.1\r\nhost: a\r\ncontent-length: 000002\r\n\r\n{}",
        b"POST /v1/payments HTTP/1.1\r\nhost: a\r\ncontent-length: %b\r\n\r\n{}" % (b"2" * 9999),
        b"POST /v1/payments HTTP/1.1\r\nhost: b\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /v1/payments HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n",
        b"POST /v1/payments HTTP/1.1\r\nhost: a\r\n\r\n{}",
        b"",
    ],
)
def test_what_is_not_a_whole_request_with_a_learned_head_is_parsed(other: bytes) -> None:
    payments = plain_payments(lambda _request: None)  # type: ignore[arg-type,return-value]
    whole = b"POST /v1/payments HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}"
    found = payments.find(b"POST", b"/v1/payments", [(b"host", b"a"), (b"content-length", b"2")])
    assert found is not None
    payments.learn(found, whole)
    assert payments.find_learned(whole) is not None
    assert payments.find_learned(other) is None


def test_the_test_account_and_its_delays_are_answered_alike(ways: tuple[Way, Way]) -> None:
    forced = payment(metadata={"toll_test": {"score": 0.7, "delay_ms": 30}})
    (answer, line) = alike(ways, [usual(json.dumps(forced).encode(), key="of a test account")])
    assert b'"score":0.7' in answer[1]
    assert line["account"] == "shop:test"


def test_requests_sent_behind_each_other_are_answered_in_order_both_ways(
    ways: tuple[Way, Way],
) -> None:
    told = []
    for way in ways:
        whole = [
            usual(json.dumps(payment(id=f"behind-{number}")).encode()).encoded(way.keys)
            for number in range(5)
        ]
        with socket.create_connection(("127.0.0.1", way.port), timeout=PATIENCE_S) as connection:
            connection.sendall(b"".join(whole))
            told.append([list(_answers_of(connection, 5))])
    assert told[0] == told[1]
    assert [b"behind-%d" % number in body for number, (_, body) in enumerate(told[0][0])] == [
        True
    ] * 5


def _answers_of(connection: socket.socket, count: int) -> Iterator[Any]:
    """Answers that may come together."""
    told = b""
    for _ in range(count):
        while True:
            head, blank, rest = told.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            if blank and length is not None and len(rest) >= int(length[1]):
                break
            told += connection.recv(65536)
        size = int(length[1])
        yield _lasting_answer((head, rest[:size]))
        told = rest[size:]


def test_a_client_that_leaves_before_its_answer_has_its_payment_kept(
    ways: tuple[Way, Way],
) -> None:
    whole = usual(json.dumps(payment(id="left")).encode()).encoded(ways[0].keys)
    with socket.create_connection(("127.0.0.1", ways[0].port)) as connection:
        connection.sendall(whole)
    again = usual(json.dumps(payment(id="left")).encode())
    deadline = time.monotonic() + PATIENCE_S
    while b"taken" not in talk(ways[0], [again])[0][1]:
        assert time.monotonic() < deadline


def test_a_body_that_comes_behind_its_head_is_answered_however_late(
    ways: tuple[Way, Way],
) -> None:
    for pause in (0.0, 0.05):
        sent = usual(json.dumps(payment()).encode())
        whole = sent.encoded(ways[0].keys)
        behind = whole.index(b"\r\n\r\n") + 4
        with socket.create_connection(("127.0.0.1", ways[0].port), timeout=PATIENCE_S) as talking:
            talking.sendall(whole[:behind])
            time.sleep(pause)
            talking.sendall(whole[behind:])
            ((head, _),) = _answers(talking, "POST")
        assert head.startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize("ways", [ALONE, OWNER], indirect=True, scope="module")
def test_a_wrong_key_is_refused_before_the_body_is_there(ways: tuple[Way, Way]) -> None:
    for way in ways:
        whole = usual(json.dumps(payment()).encode(), key="wrong").encoded(way.keys)
        with socket.create_connection(("127.0.0.1", way.port), timeout=PATIENCE_S) as talking:
            talking.sendall(whole[:-1])
            ((head, _),) = _answers(talking, "POST")
        assert head.startswith(b"HTTP/1.1 401")


def test_of_two_at_once_with_one_idempotency_key_one_is_decided(ways: tuple[Way, Way]) -> None:
    keyed = (("Host", "shop"), ("Idempotency-Key", "both at once"))
    sent = usual(json.dumps(payment()).encode(), headers=keyed).encoded(ways[0].keys)
    with ExitStack() as stack:
        talking = [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", ways[0].port), timeout=PATIENCE_S)
            )
            for _ in range(4)
        ]
        for each in talking:
            each.sendall(sent)
        answers = [next(_answers(each, "POST")) for each in talking]
    assert len({body for _, body in answers}) == 1
    assert sum(b"idempotent-replayed" in head for head, _ in answers) == 3


def test_requests_may_wait_for_one_thing_together_and_give_the_loop_a_turn(
    ways: tuple[Way, Way], monkeypatch: pytest.MonkeyPatch
) -> None:
    decide_payment, waiting = payments.decide_payment, list[asyncio.Future[None]]()

    async def decide_with_the_others(*given: Any) -> Any:
        await asyncio.sleep(0)
        waiting.append(waiting[0] if waiting else asyncio.get_running_loop().create_future())
        if len(waiting) == 3:
            waiting[0].set_result(None)
        await waiting[0]
        return await decide_payment(*given)

    monkeypatch.setattr(payments, "decide_payment", decide_with_the_others)
    with ExitStack() as stack:
        talking = [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", ways[0].port), timeout=PATIENCE_S)
            )
            for _ in range(3)
        ]
        for each in talking:
            each.sendall(usual(json.dumps(payment()).encode()).encoded(ways[0].keys))
        heads = [next(_answers(each, "POST"))[0] for each in talking]
    assert [head.partition(b"\r\n")[0] for head in heads] == 3 * [b"HTTP/1.1 201 Created"]
