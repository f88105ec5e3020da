"""HTTP as clients really speak it: broken off, malformed, of 1.0, kept alive, expecting."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.service.process import PATIENCE_S, Running, new_key, serving_within
from tollkeeper.tests.service.wire import connected, head, read_answer, read_some

BODY = json.dumps(payment()).encode()
LIVE = b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n"


@dataclass(frozen=True)
class Served:
    service: Running
    headers: dict[str, str]
    log: Path

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()


@contextmanager
def serving_small(folder: Path, **limits: int) -> Iterator[Served]:
    """A service that takes small requests alone."""
    headers = {"authorization": f"Bearer {new_key(folder, 'payments')}"}
    with serving_within(folder, head_bytes=4096, body_bytes=4096, **limits) as service:
        yield Served(service, headers, folder.parent / "serve.log")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """It waits for clients as long as any machine may hold them up."""
    folder, long = tmp_path_factory.mktemp("wire") / "data", int(PATIENCE_S)
    with serving_small(folder, body_seconds=long, idle_seconds=long) as patient:
        yield patient


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """It waits for no client for long."""
    folder = tmp_path_factory.mktemp("hurried") / "data"
    with serving_small(folder, body_seconds=1, idle_seconds=2) as impatient:
        yield impatient


def spoken(served: Served, *parts: bytes) -> bytes:
    """What comes back on one connection until the service closes it."""
    with connected(served.service) as connection:
        for part in parts:
            connection.sendall(part)
        connection.shutdown(socket.SHUT_WR)
        told = b""
        while chunk := connection.recv(65536):
            told += chunk
        return told


def line_with(served: Served, **members: Any) -> dict[str, Any]:
    """The first log line that has these members; every line is JSON."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for text in served.lines():
            line: dict[str, Any] = json.loads(text)
            if members.items() <= line.items():
                return line
        time.sleep(0.05)
    raise AssertionError(f"no line has {members}")


def test_a_client_that_leaves_within_its_body_is_one_line_without_a_trace(served: Served) -> None:
    with connected(served.service) as leaving:
        leaving.sendall(head(served.headers, len(BODY)) + BODY[:100])
        assert httpx.get(f"{served.service.url}/health/live", timeout=PATIENCE_S).status_code == 200
    line = line_with(served, disconnected=True)
    assert (line["level"], line["route"], line["account"]) == ("info", "/v1/payments", "shop")
    assert "Traceback" not in served.log.read_text()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00ana@shop.example\r\n\r\n",
        b"GET /v1/payments/ana@shop.example HTTP/9.9\r\n\r\n",
        b"GET /ana@shop.example HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST /v1/payments HTTP/1.1\r\nhost: x\r\ncontent-length: ana@shop.example\r\n\r\n",
        b"POST /v1/payments HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST /v1/payments HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nana@\r\n",
        b"FETCH /ana@shop.example HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_what_is_not_http_is_told_so_and_logged_without_its_words(
    served: Served, sent: bytes
) -> None:
    told = spoken(served, sent)
    assert told.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401"))
    if b"400" in told[:20]:
        assert json.loads(told.partition(b"\r\n\r\n")[2])["errors"][0]["type"]
    line_with(served, event="refused", level="warning", status=400)
    assert "ana@" not in served.log.read_text()


def test_an_answer_to_http_1_0_ends_the_connection(served: Served) -> None:
    told = spoken(served, b"GET /health/live HTTP/1.0\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in told
    assert told.endswith(b'{"status":"live"}')


def test_a_connection_is_kept_alive_and_pipelined_requests_are_answered_in_order(
    served: Served,
) -> None:
    with connected(served.service) as kept:
        for _ in range(3):
            kept.sendall(LIVE)
            assert read_answer(kept).endswith(b'{"status":"live"}')
    closing = LIVE.replace(b"host: x", b"host: x\r\nconnection: close")
    told = spoken(served, LIVE.replace(b"live", b"ready") + LIVE + closing)
    assert told.count(b"HTTP/1.1 200") == 3
    assert told.index(b'"ready"') < told.index(b'"live"')


def test_a_client_that_closes_its_side_is_answered_still(served: Served) -> None:
    told = spoken(served, head(served.headers, len(BODY)) + BODY)
    assert told.startswith(b"HTTP/1.1 201")
    assert line_with(served, status=201, route="/v1/payments")


def test_head_on_the_wire_has_a_length_and_no_body(served: Served) -> None:
    with connected(served.service) as kept:
        kept.sendall(LIVE.replace(b"GET", b"HEAD") + LIVE)
        told = b""
        while not told.endswith(b'{"status":"live"}'):
            told += read_some(kept)
    first, _, rest = told.partition(b"\r\n\r\n")
    assert b"content-length: 17" in first
    assert rest.startswith(b"HTTP/1.1 200")


def test_a_client_that_expects_100_continue_is_told_to_go_on(served: Served) -> None:
    with connected(served.service) as waiting:
        waiting.sendall(head({**served.headers, "expect": "100-continue"}, len(BODY)))
        assert waiting.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        waiting.sendall(BODY)
        assert read_answer(waiting).startswith(b"HTTP/1.1 201")


def test_a_client_of_http_1_0_is_never_told_to_go_on(served: Served) -> None:
    asked = head({**served.headers, "expect": "100-continue"}, len(BODY)) + BODY
    told = spoken(served, asked.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert told.startswith(b"HTTP/1.1 201")


def test_a_client_that_expects_100_continue_is_refused_before_it_sends(served: Served) -> None:
    for headers, size, status in (
        ({}, len(BODY), b"401"),
        (served.headers, 5000, b"413"),
        ({**served.headers, "content-encoding": "gzip"}, len(BODY), b"415"),
    ):
        with connected(served.service) as waiting:
            waiting.sendall(head({**headers, "expect": "100-continue"}, size))
            assert read_answer(waiting).split()[1] == status


def test_a_body_that_is_refused_unread_does_not_become_the_next_request(served: Served) -> None:
    with connected(served.service) as kept:
        kept.sendall(head({}, len(BODY)) + BODY)
        assert read_answer(kept).startswith(b"HTTP/1.1 401")
        kept.sendall(LIVE)
        assert read_answer(kept).startswith(b"HTTP/1.1 200")


def test_the_bounds_are_those_of_the_settings(served: Served) -> None:
    large = BODY + b" " * 4096
    told = spoken(served, head(served.headers, len(large)) + large)
    assert told.startswith(b"HTTP/1.1 413")
    assert b"4096 bytes" in told
    with connected(served.service) as talker:
        talker.sendall(LIVE[:-2] + b"x-more: " + b"a" * 5000)
        assert read_answer(talker).startswith(b"HTTP/1.1 431")
    line_with(served, event="refused", status=431)


def test_a_body_that_does_not_come_in_time_is_refused(hurried: Served) -> None:
    with connected(hurried.service) as slow:
        slow.sendall(head(hurried.headers, len(BODY)) + BODY[:100])
        told = read_answer(slow)
        assert told.startswith(b"HTTP/1.1 408")
        assert b"within 1 seconds" in told
    late = line_with(hurried, status=408)
    assert (late["event"], late["route"], late["account"]) == ("request", "/v1/payments", "shop")
    assert "disconnected" not in late


def test_a_refused_client_that_goes_on_with_its_body_is_closed_in_time(hurried: Served) -> None:
    with connected(hurried.service) as talker:
        talker.sendall(head({}, 4000))
        assert read_answer(talker).startswith(b"HTTP/1.1 401")
        deadline = time.monotonic() + PATIENCE_S
        with suppress(OSError):
            while time.monotonic() < deadline:
                talker.sendall(b" ")
                time.sleep(0.05)
            raise AssertionError("it could go on for as long as it liked")


def test_a_client_that_sends_no_further_head_is_closed_in_time(hurried: Served) -> None:
    # All at once: each waits for its limit.
    with ExitStack() as clients:
        idle = {}
        for case, first, then in (
            ("the rest of a refused body", head({}, 10), b" " * 10),
            ("an empty line", LIVE, b"\r\n"),
            ("nothing", LIVE, b""),
        ):
            idle[case] = clients.enter_context(connected(hurried.service))
            idle[case].sendall(first)
            assert read_answer(idle[case]).startswith(b"HTTP/1.1"), case
            # If it is held up for longer than the limit, it has been closed before.
            with suppress(ConnectionError):
                idle[case].sendall(then)
        for case, client in idle.items():
            with suppress(ConnectionError):
                assert client.recv(1) == b"", case


def test_a_body_behind_another_request_has_its_time_too(hurried: Served) -> None:
    with connected(hurried.service) as slow:
        slow.sendall(LIVE + head(hurried.headers, len(BODY)) + BODY[:100])
        told = b""
        while chunk := slow.recv(65536):
            told += chunk
        assert told.startswith(b"HTTP/1.1 200")
        assert b"HTTP/1.1 408" in told


def test_every_path_can_be_asked_in_full_and_with_a_query(served: Served) -> None:
    host = served.service.url.removeprefix("http://").encode()
    for target in (b"http://" + host + b"/health/live", b"/health/live?x=%ff&&=", b"/health/live?"):
        told = spoken(served, b"GET " + target + b" HTTP/1.0\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 200"), target
    for target in (b"*", b"/health/live%00", b"/health/live#x", b"//health/live"):
        told = spoken(served, b"OPTIONS " + target + b" HTTP/1.0\r\n\r\n")
        assert told.split()[1] in (b"400", b"404", b"204"), (target, told)


def answer_to(served: Served, request: bytes) -> bytes:
    with connected(served.service) as connection:
        connection.sendall(request)
        return read_answer(connection)


def test_a_request_of_http_1_1_names_its_host(served: Served) -> None:
    said = answer_to(served, b"GET /health/live HTTP/1.1\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b'"field":"host","type":"malformed_request"' in said


@pytest.mark.parametrize("length", [65_530, 65_536, 66_000, 70_000, 300_000])
def test_a_path_that_is_too_long_is_a_head_that_is_too_large(served: Served, length: int) -> None:
    said = answer_to(served, b"GET /v1/rules/" + b"a" * length + b" HTTP/1.1\r\nhost: x\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(("size", "status"), [(4096, b"200"), (4097, b"431"), (200_000, b"431")])
def test_a_head_has_as_many_bytes_as_the_setting_says(
    served: Served, size: int, status: bytes
) -> None:
    around = len(LIVE) + len(b"x-more: \r\n")
    sent = LIVE[:-2] + b"x-more: " + b"a" * (size - around) + b"\r\n\r\n"
    assert len(sent) == size
    assert answer_to(served, sent).split()[1] == status


def test_small_requests_sent_together_are_no_large_head(served: Served) -> None:
    together = LIVE * 200
    with connected(served.service) as kept:
        kept.sendall(together + LIVE[:-2])
        told = b""
        while told.count(b'{"status":"live"}') < 200:
            told += read_some(kept)
        kept.sendall(LIVE[-2:])
        assert read_answer(kept).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("size", [100_000, 4_000_000])
def test_a_client_that_sends_its_whole_body_first_reads_that_it_was_too_large(
    served: Served, size: int
) -> None:
    said = answer_to(served, head(served.headers, size) + b" " * size)
    assert said.startswith(b"HTTP/1.1 413")


def test_a_client_that_goes_on_after_its_refusal_is_closed_in_time(hurried: Served) -> None:
    # Both at once: each waits for its limit.
    with connected(hurried.service) as no_http, connected(hurried.service) as too_long:
        no_http.sendall(b"no http\r\n\r\n")
        too_long.sendall(LIVE[:-2] + b"x-more: " + b"a" * 5000)
        talkers = {400: no_http, 431: too_long}
        for status, talker in talkers.items():
            assert read_answer(talker).startswith(b"HTTP/1.1 %d" % status)
            assert talker.recv(1) == b""
        deadline = time.monotonic() + PATIENCE_S
        while talkers:
            assert time.monotonic() < deadline, (
                f"{[*talkers]} could go on for as long as they liked"
            )
            for status, talker in [*talkers.items()]:
                try:
                    talker.sendall(b" ")
                except OSError:
                    del talkers[status]
            time.sleep(0.05)


@pytest.mark.parametrize("coding", [b"gzip, chunked", b"gzip\r\ntransfer-encoding: chunked"])
def test_a_body_in_a_transfer_coding_is_refused(served: Served, coding: bytes) -> None:
    sent = head(served.headers, 0).replace(b"content-length: 0", b"transfer-encoding: " + coding)
    said = answer_to(served, sent + b"0\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b'"field":"transfer-encoding","type":"malformed_request"' in said


def test_every_answer_is_dated_and_named_also_what_is_no_request(served: Served) -> None:
    for sent in (LIVE, b"no http\r\n\r\n", b"GET /" + b"a" * 300_000):
        said = answer_to(served, sent).lower()
        assert b"\r\ndate: " in said
        assert re.search(rb"\r\nx-request-id: [0-9a-f]{24}\r\n", said)
    refused = line_with(served, event="refused", status=431)
    assert refused["request_id"]


@pytest.mark.parametrize("size", [7, 1000, 65_536])
def test_requests_of_any_kind_sent_ahead_are_each_answered_in_their_order(
    served: Served, size: int
) -> None:
    sent = b""
    for number in range(300):
        named = {**served.headers, "x-request-id": f"r-{number}"}
        match number % 5:
            case 0:
                sent += LIVE[:-2] + b"x-request-id: r-%d\r\n\r\n" % number
            case 1:
                sent += head(named, len(BODY)) + BODY
            case 2:
                chunked = {**named, "transfer-encoding": "chunked"}
                whole = head(chunked, len(BODY)).replace(b"content-length: %d\r\n" % len(BODY), b"")
                sent += whole + b"1\r\n{\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY) - 1, BODY[1:])
            case 3:
                sent += head(named, 4) + b"\r\n\r\n"
            case 4:
                upgrading = {**named, "connection": "upgrade", "upgrade": "h2c"}
                sent += head(upgrading, len(BODY)) + BODY
    told = spoken(served, *(sent[start : start + size] for start in range(0, len(sent), size)))
    assert re.findall(rb"x-request-id: r-(\d+)", told) == [b"%d" % number for number in range(300)]
    statuses = [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", told)]
    assert statuses == [200, 201, 201, 422, 201] * 60


@pytest.mark.parametrize(
    ("within", "before", "after"),
    [
        (b"GET /health/live HTTP/1.1\r\nx-more: ", ["201"], ["200"]),
        (head({}, 4096), ["201", "401"], []),
    ],
    ids=["a header", "a refused body"],
)
def test_a_part_of_a_request_that_equals_the_one_before_is_no_request(
    served: Served, within: bytes, before: list[str], after: list[str]
) -> None:
    def statuses() -> list[str]:
        return re.findall(r"HTTP/1.1 (\d+)", told.decode())

    request = head(served.headers, len(BODY)) + BODY
    with connected(served.service) as client:
        client.sendall(request)
        assert read_answer(client).startswith(b"HTTP/1.1 201 ")
        told = b""
        client.sendall(request + within)
        while len(statuses()) < len(before):
            told += read_some(client)
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        while chunk := client.recv(65536):
            told += chunk
    assert statuses() == before + after


def test_a_client_that_takes_nothing_of_its_answers_is_closed_in_time(hurried: Served) -> None:
    with socket.socket() as greedy:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.settimeout(PATIENCE_S)
        greedy.connect(("127.0.0.1", int(hurried.service.url.rpartition(":")[2])))
        with suppress(ConnectionError):
            while True:
                greedy.sendall(LIVE * 1000)
    line_with(hurried, event="connection_given_up", limit="body_seconds")
    # Behind this line stand those of the request whose answer was not taken.
    answer_to(hurried, LIVE)
    assert "Traceback" not in hurried.log.read_text()


def test_what_follows_a_body_is_no_part_of_the_head(served: Served) -> None:
    (name, secret) = next(iter(served.headers.items()))
    chunked = head({"transfer-encoding": "chunked"}, 0).replace(b"content-length: 0\r\n", b"")
    body = b"%x\r\n%b\r\n0\r\n" % (len(BODY), BODY)
    trailer = f"{name}: {secret}\r\n\r\n".encode()
    told = spoken(served, chunked + body + trailer + LIVE)
    assert re.findall(rb"HTTP/1.1 (\d+)", told) == [b"401", b"200"]


def test_what_follows_a_body_is_bounded_as_a_head_is(served: Served) -> None:
    endless = head({**served.headers, "transfer-encoding": "chunked"}, 0)
    with connected(served.service) as talker:
        talker.sendall(endless.replace(b"content-length: 0\r\n", b"") + b"1\r\n{\r\n0\r\n")
        # The system may take much for a service that is held up.
        with pytest.raises(ConnectionError):
            talker.sendall(b"x-more: a\r\n" * 5_000_000)


@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_the_body_of_a_request_to_upgrade_is_its_own(served: Served, apart: bool) -> None:
    # So asks a client of HTTP/2 that does not know yet what the service speaks.
    asked = {"connection": "upgrade, http2-settings", "upgrade": "h2c", "http2-settings": "AAMA"}
    first = head({**served.headers, **asked}, len(BODY))
    with connected(served.service) as client:
        for part in (first, BODY) if apart else (first + BODY,):
            client.sendall(part)
        assert read_answer(client).startswith(b"HTTP/1.1 201 ")
        # A body that looks like a request is none.
        client.sendall(head({**served.headers, **asked}, len(LIVE)))
        client.sendall(LIVE)
        assert read_answer(client).startswith(b"HTTP/1.1 422 ")
        client.sendall(LIVE)
        assert read_answer(client).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
def test_a_request_to_upgrade_is_answered_and_nothing_to_warn_of(
    served: Served, protocol: bytes
) -> None:
    asked = b"connection: upgrade\r\nupgrade: " + protocol + b"\r\n\r\n"
    said = answer_to(served, LIVE.removesuffix(b"\r\n") + asked)
    assert said.startswith(b"HTTP/1.1 200 ")
    assert not [line for line in served.lines() if "pgrade" in line or "WebSocket" in line]
