"""What a node copies from the owner of a journal."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from threading import Thread

import pytest

from tollkeeper.api.http import joining
from tollkeeper.api.http.joining import _take

BODY = bytes(range(256)) * 5_000


@contextmanager
def owner_that_answers(answer: bytes) -> Iterator[str]:
    """The address of a node that gives this answer to one request, and ends the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def give() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        giving = Thread(target=give)
        giving.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            giving.join()


def head(length: int, more: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\ntoll-amended: 7\r\n%b\r\n" % (length, more)


@pytest.mark.parametrize("more", [b"", b"connection: close\r\n"])
def test_a_file_arrives_as_it_was_sent_with_what_it_takes_into_account(
    tmp_path: Path, more: bytes
) -> None:
    path = tmp_path / "file"
    with owner_that_answers(head(len(BODY), more) + BODY) as address:
        assert _take([], address, None, b"proof", 1, "file", path, is_checked=False) == 7
    assert path.read_bytes() == BODY
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "answer",
    [
        head(len(BODY)) + BODY[:-1],
        head(len(BODY)),
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
        b"nothing like an answer\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntoll-amended: x\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ncontent-length: -3\r\ntoll-amended: 7\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntoll-amended: 7\r\n\r\nabc",
        b"",
    ],
)
def test_a_file_that_does_not_arrive_whole_is_refused(tmp_path: Path, answer: bytes) -> None:
    with (
        owner_that_answers(answer) as address,
        pytest.raises((OSError, HTTPException)),
    ):
        _take([], address, None, b"proof", 1, "file", tmp_path / "file", is_checked=True)


def test_an_owner_whose_address_no_name_service_would_take_is_not_asked(tmp_path: Path) -> None:
    address = f"http://{'a' * 64}.example:80"
    with pytest.raises(OSError, match="no name of a host"):
        _take([], address, None, b"proof", 1, "file", tmp_path / "file", is_checked=True)


@contextmanager
def taking_from_an_owner(
    path: Path, sockets: list[socket.socket]
) -> Iterator[tuple[socket.socket, list[Exception]]]:
    """The owner's end of a connection on which a thread takes a file, and what the thread raised; it
    has ended when the context is left.
    """
    raised: list[Exception] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"

        def take() -> None:
            try:
                _take(sockets, address, None, b"proof", 1, "file", path, is_checked=True)
            except (OSError, HTTPException) as error:
                raised.append(error)

        taking = Thread(target=take)
        taking.start()
        connection, _ = server.accept()
        with connection:
            yield connection, raised
            taking.join()


def test_an_owner_that_is_silent_within_a_file_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "_PART_S", 0.05)
    with taking_from_an_owner(tmp_path / "file", []) as (connection, raised):
        connection.sendall(head(len(BODY)) + BODY[:1])
    assert isinstance(raised[0], TimeoutError)


def test_a_node_that_ends_waits_for_no_owner(tmp_path: Path) -> None:
    sockets: list[socket.socket] = []
    with taking_from_an_owner(tmp_path / "file", sockets) as (connection, raised):
        connection.recv(1 << 16)
        sockets[0].shutdown(socket.SHUT_RDWR)
    assert raised
