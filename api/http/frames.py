"""Frames: payments that one node sends to another on one connection, and their answers.

The connection begins with an HTTP request to upgrade it. Then each direction is a sequence of
frames, big-endian. A payment's frame has a number, which its answer repeats, and refers to a head:
clients repeat their heads, so most are sent once.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from tollkeeper.api.http.node_connection import SHARD
from tollkeeper.api.http.plain import HeaderLines

UPGRADE: Final = (b"upgrade", b"toll-payments-1")
"""The header that requests the upgrade; another number for frames with another meaning."""
ACCEPTED: Final = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\r\n"
NOT_DONE: Final = 0
"""The status of a payment that was not executed, as the node doesn't own the journal."""
MOST_HEADS: Final = 1024
"""Heads are numbered from 1 to this, and a number may later stand for another head. 0 stands for a
head that is sent once."""
_LARGEST = 1 << 24
"""The most bytes of a frame: no node sends a longer one."""
# The bytes behind these numbers; the payment's number; its head's number; the bytes of the head,
# if it is there, before the body.
_SENT = Struct("!IQII")
# The bytes behind these numbers; the payment's number; the status.
_ANSWERED = Struct("!IQI")
_NOBODY = b"-"


class SentFrame(NamedTuple):
    """A payment: `head` is empty if it was sent before under this number."""

    number: int
    head_number: int
    head: bytes
    body: bytes


class AnsweredFrame(NamedTuple):
    """An answer: the `rest` of it behind its first line."""

    number: int
    status: int
    rest: bytes


def upgrade_request(shard: bytes) -> bytes:
    """Return the request for a connection that takes payments of this shard."""
    lines = ((b"host", b"tollkeeper"), (b"connection", b"upgrade"), UPGRADE, (SHARD, shard))
    return b"GET /v1/payments HTTP/1.1\r\n%b\r\n" % _encode_lines(lines)


def encode_head(method: str, path: str, peer: str | None, sent: HeaderLines) -> bytes:
    """Encode the head of a request, with its client's address."""
    client = _NOBODY if peer is None else peer.encode()
    # The parser accepts no header that could end its line.
    return b"%b %b %b\r\n%b" % (method.encode(), path.encode(), client, _encode_lines(sent))


def decode_head(head: bytes) -> tuple[bytes, bytes, str | None, HeaderLines]:
    """Return method, path, the client's address and the headers. Raises `ValueError`."""
    first, *lines, _ = head.split(b"\r\n")
    method, path, client = first.split(b" ")
    sent = []
    for line in lines:
        name, _, value = line.partition(b": ")
        sent.append((name, value))
    return method, path, None if client == _NOBODY else client.decode(), sent


def encode_sent(number: int, head_number: int, head: bytes, body: bytes) -> bytes:
    """Encode a payment's frame."""
    size = len(head) + len(body)
    return b"%b%b%b" % (_SENT.pack(size, number, head_number, len(head)), head, body)


def encode_answered(number: int, status: int, rest: bytes) -> bytes:
    """Encode an answer's frame."""
    return _ANSWERED.pack(len(rest), number, status) + rest


LEAVING: Final = encode_answered(0, NOT_DONE, b"")
"""The last frame of a node that leaves in order: what it didn't answer, it didn't execute."""


def take_sent(received: bytes) -> tuple[list[SentFrame], bytes]:
    """Return the payments that have arrived, and the rest. Raises `ValueError`."""
    frames, end = [], 0
    for start, end, (_, number, head_number, head) in _whole(_SENT, received):
        at = start + head
        frames.append(SentFrame(number, head_number, received[start:at], received[at:end]))
    return frames, received[end:]


def take_answered(received: bytes) -> tuple[list[AnsweredFrame], bytes]:
    """Return the answers that have arrived, and the rest. Raises `ValueError`."""
    frames, end = [], 0
    for start, end, (_, number, status) in _whole(_ANSWERED, received):
        frames.append(AnsweredFrame(number, status, received[start:end]))
    return frames, received[end:]


def _whole(numbers: Struct, received: bytes) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield where each whole frame's bytes start and end, with the numbers before them."""
    end = 0
    while len(received) - end >= numbers.size:
        unpacked = numbers.unpack_from(received, end)
        start, end = end + numbers.size, end + numbers.size + unpacked[0]
        if unpacked[0] > _LARGEST:
            raise ValueError("a frame is longer than any that a node sends")
        if end > len(received):
            return
        yield start, end, unpacked


def _encode_lines(headers: HeaderLines) -> bytes:
    return b"".join(b"%b: %b\r\n" % each for each in headers)
