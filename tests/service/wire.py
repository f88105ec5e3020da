"""Requests written to a socket piece by piece, as no client library would."""

from __future__ import annotations

import socket

import httpx

from tollkeeper.tests.service.process import PATIENCE_S, Running


def connected(service: Running) -> socket.socket:
    url = httpx.URL(service.url)
    assert url.port is not None
    return socket.create_connection((url.host, url.port), timeout=PATIENCE_S)


def head(headers: dict[str, str], size: int) -> bytes:
    """The head of a payment's creation whose body has `size` bytes."""
    lines = [
        "POST /v1/payments HTTP/1.1",
        "host: localhost",
        f"content-length: {size}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def read_some(connection: socket.socket) -> bytes:
    """What has arrived of an answer. Raises `EOFError` once the service has closed."""
    if not (told := connection.recv(65536)):
        raise EOFError
    return told


def read_answer(connection: socket.socket) -> bytes:
    """One whole answer, which tells its length. Raises `EOFError` for one that is cut off."""
    told = b""
    while b"\r\n\r\n" not in told:
        told += read_some(connection)
    start, _, rest = told.partition(b"\r\n\r\n")
    (length,) = (
        int(line.split(b":")[1])
        for line in start.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    while len(rest) < length:
        rest += read_some(connection)
    return start + b"\r\n\r\n" + rest
